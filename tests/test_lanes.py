"""Threads for one kind of work."""

import threading

import pytest

from streaming.common.lanes import BusyError, Lane
from tests.limits import SECONDS


def test_what_is_too_much_is_refused_and_what_waits_is_done() -> None:
    lane, go_on = Lane("test", 1, 2), threading.Event()
    first, second = lane.do(lambda: go_on.wait(SECONDS)), lane.do(lambda: 2)
    with pytest.raises(BusyError):
        lane.do(lambda: 3)
    go_on.set()
    assert (first.result(SECONDS), second.result(SECONDS)) == (True, 2)
    lane.close()


def test_what_nobody_waits_for_any_more_is_not_done_and_an_error_is_raised_where_it_is_wanted() -> None:
    lane, go_on, done = Lane("test", 1, 5), threading.Event(), list[int]()
    lane.do(lambda: go_on.wait(SECONDS))
    given_up, failing = lane.do(lambda: done.append(1)), lane.do(lambda: 1 / 0)
    assert given_up.cancel()
    go_on.set()
    with pytest.raises(ZeroDivisionError):
        failing.result(SECONDS)
    assert done == []
    lane.close()
    with pytest.raises(BusyError):
        lane.do(lambda: 1)


def test_the_thread_that_ended_last_works_next() -> None:
    lane = Lane("test", 4, 4)
    names = set[str]()
    for _ in range(20):
        names.add(lane.do(lambda: threading.current_thread().name).result(SECONDS))
    lane.close()
    assert len(names) == 1
