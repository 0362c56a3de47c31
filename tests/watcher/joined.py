"""Joining without waiting."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from streaming.broker.journal import forgetting
from streaming.broker.journal.forgetting import Forgetting
from streaming.broker.journal.journal import Journal


@contextmanager
def at_once() -> Iterator[None]:
    """Whatever can be joined is, however little it is and however new."""
    with patch.object(forgetting, "LEAST", 2), patch.object(forgetting, "LOOKS", 0), patch.object(forgetting, "WAIT_MS", 0):
        yield


def join(journal: Journal) -> None:
    """Join all that a journal holds."""
    joining = Forgetting(journal)
    with at_once():
        while joining.join(journal.now_ms()):
            pass
