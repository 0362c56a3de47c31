"""Work done once for all who ask at the same moment."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from streaming.pages.site.exporter import Shared
from tests.limits import SECONDS


class Work:
    """Begins, says so, and ends when it is let."""

    def __init__(self) -> None:
        self.began, self.may_end, self.times = Event(), Event(), 0

    def __call__(self) -> int:
        self.times += 1
        self.began.set()
        assert self.may_end.wait(SECONDS)
        return self.times


class Key:
    """Equal to any of its kind, and says when it was found: then whoever asked with it has joined."""

    def __init__(self) -> None:
        self.found = Event()

    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, Key)
        self.found.set()
        other.found.set()
        return True


def test_who_asks_while_it_is_worked_out_gets_the_same() -> None:
    shared: Shared[Key, int] = Shared()
    work = Work()
    with ThreadPoolExecutor() as pool:
        first = pool.submit(shared.get, Key(), work)
        assert work.began.wait(SECONDS)
        keys = [Key() for _ in range(3)]
        others = [pool.submit(shared.get, key, work) for key in keys]
        assert all(key.found.wait(SECONDS) for key in keys)
        work.may_end.set()
        assert [each.result(SECONDS) for each in (first, *others)] == [1, 1, 1, 1]


def test_nothing_is_kept() -> None:
    shared: Shared[str, int] = Shared()
    results = iter((1, 2))
    assert [shared.get("page", lambda: next(results)) for _ in range(2)] == [1, 2]


def test_another_key_does_not_wait() -> None:
    shared: Shared[str, int] = Shared()
    work = Work()
    with ThreadPoolExecutor() as pool:
        first = pool.submit(shared.get, "slow", work)
        assert work.began.wait(SECONDS)
        assert shared.get("fast", lambda: 7) == 7
        work.may_end.set()
        assert first.result(SECONDS) == 1


def test_a_failure_is_everybodys_and_forgotten() -> None:
    shared: Shared[str, int] = Shared()

    def fail() -> int:
        raise ValueError("no page")

    with pytest.raises(ValueError, match="no page"):
        shared.get("page", fail)
    assert shared.get("page", lambda: 7) == 7
