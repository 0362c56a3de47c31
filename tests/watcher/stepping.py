"""Histories that a property test makes up: steps, each a method of what they happen to and its arguments."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import strategies as st

from streaming.broker.watcher import open_at, watcher
from tests.scratch import scratch

Step = tuple[str, tuple[object, ...], dict[str, object]]


class Stepped(Protocol):
    """What steps happen to."""

    def check(self) -> None:
        """Fail if anything is not as it must be behind the last step."""

    def close(self) -> None:
        """End it."""


def step(name: str, *values: st.SearchStrategy[object], **named: st.SearchStrategy[object]) -> st.SearchStrategy[Step]:
    """One that calls this method."""
    return st.tuples(st.just(name), st.tuples(*values), st.fixed_dictionaries(named))


def hold(make: Callable[[Path], Stepped], done: list[Step]) -> None:
    """Do these steps with a new one, and check it."""
    with scratch() as root:
        made = make(Path(root))
        try:
            for name, values, named in done:
                getattr(made, name)(*values, **named)
            made.check()
        finally:
            made.close()


@contextmanager
def piece_by_piece() -> Iterator[None]:
    """A watcher reads one piece a turn, and replays everything."""
    with pytest.MonkeyPatch.context() as slow:
        slow.setattr(open_at, "AT_ONCE_BYTES", -1)
        slow.setattr(watcher, "POLL_BYTES", 1)
        yield
