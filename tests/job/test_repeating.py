"""What is done while something else is waited for."""

import threading

import pytest

from streaming.job.repeating import repeated
from tests.limits import SECONDS


def test_it_is_called_again_and_again_and_not_after_the_block() -> None:
    calls, thrice = [], threading.Event()

    def action() -> None:
        calls.append(threading.current_thread())
        if len(calls) == 3:
            thrice.set()

    with repeated(action, 0.001):
        assert thrice.wait(SECONDS)
    count = len(calls)
    assert threading.current_thread() not in calls
    assert not any(thread.is_alive() for thread in calls)
    assert len(calls) == count


def test_it_ends_with_the_block_whatever_ends_that() -> None:
    calls: list[threading.Thread] = []
    with pytest.raises(ValueError, match="no Spark"), repeated(lambda: calls.append(threading.current_thread()), 0.0):
        raise ValueError("no Spark")
    assert not any(thread.is_alive() for thread in calls)
