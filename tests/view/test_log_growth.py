"""How fast logs grow, as they were watched to."""

import numpy as np
import pytest

from streaming.cluster.view.page_context import LogGrowth
from streaming.rules.retention_rule import SegmentColumns
from tests.rules.logs import Segment, log_facts

MINUTE = 60_000
RATE = 5.0
"""Bytes a second."""


def rates(memory: LogGrowth, steady_ms: int, *logs: list[Segment], slots: list[int] | None = None, names: list[int] | None = None):
    given = [*range(len(logs))] if slots is None else slots
    columns = SegmentColumns([log_facts(each) for each in logs])
    return memory.rates(np.array(given), np.array(given if names is None else names), columns, steady_ms).tolist()


def size_at(steady_ms: int) -> int:
    return round(1000 + RATE * steady_ms / 1000)


def watched(memory: LogGrowth, until_ms: int) -> None:
    for at in range(0, until_ms + 1, 10_000):
        rates(memory, at, [(0, size_at(at), 0, 0)])


def test_a_rate_is_known_when_a_log_was_watched_for_a_minute() -> None:
    memory = LogGrowth()
    watched(memory, 50_000)
    assert rates(memory, 59_999, [(0, size_at(59_999), 0, 0)]) == [-1]
    assert rates(memory, 61_000, [(0, size_at(61_000), 0, 0)]) == [pytest.approx(RATE, rel=0.01)]


def test_a_log_that_rolls_grows_on_and_what_is_deleted_takes_nothing_of_that() -> None:
    memory = LogGrowth()
    watched(memory, 60_000)
    grown = size_at(70_000) - 1000
    assert rates(memory, 70_000, [(0, 1000, 0, 0), (50, grown - 20, 0, 0), (60, 20, 0, 0)]) == [pytest.approx(RATE, rel=0.01)]
    grown = size_at(80_000) - size_at(70_000)
    assert rates(memory, 80_000, [(60, 20 + grown, 0, 0)]) == [pytest.approx(RATE, rel=0.01)]


def test_what_is_cut_off_or_replaced_is_no_growth() -> None:
    memory = LogGrowth()
    watched(memory, 2 * MINUTE)
    assert rates(memory, 2 * MINUTE + 1, [(0, 10, 0, 0)])[0] <= RATE * 1.01
    assert rates(memory, 2 * MINUTE + 2, [(500, 1 << 30, 0, 0)])[0] <= RATE * 1.01


def test_a_log_to_which_nothing_comes_for_five_minutes_has_no_rate() -> None:
    memory = LogGrowth()
    watched(memory, MINUTE)
    still: list[Segment] = [(0, size_at(MINUTE), 0, 0)]
    assert rates(memory, 6 * MINUTE, still)[0] > 0
    assert rates(memory, 6 * MINUTE + 1, still) == [-1]


def test_another_log_in_the_same_slot_is_a_new_one() -> None:
    memory = LogGrowth()
    watched(memory, 2 * MINUTE)
    assert rates(memory, 2 * MINUTE + 1, [(0, 1 << 30, 0, 0)], slots=[0], names=[7]) == [-1]


def test_logs_come_and_go_without_touching_each_other() -> None:
    memory = LogGrowth()
    for at in range(0, 70_000, 10_000):
        one: list[Segment] = [(0, size_at(at), 0, 0)]
        other: list[list[Segment]] = [[(0, 10 * size_at(at), 0, 0)]] if at >= 20_000 else []
        rates(memory, at, one, *other)
    slow, fast = rates(memory, 90_000, [(0, size_at(90_000), 0, 0)], [(0, 10 * size_at(90_000), 0, 0)])
    assert (slow, fast) == (pytest.approx(RATE, rel=0.01), pytest.approx(10 * RATE, rel=0.01))
    assert rates(memory, 91_000, [(0, 10 * size_at(91_000), 0, 0)], slots=[1]) == [pytest.approx(10 * RATE, rel=0.01)]
    assert rates(memory, 92_000, [(0, size_at(92_000), 0, 0)]) == [-1]  # it was not there a look ago


def test_a_look_at_an_earlier_moment_changes_nothing() -> None:
    memory = LogGrowth()
    watched(memory, 70_000)
    assert rates(memory, 65_000, [(0, 1 << 30, 0, 0)])[0] == pytest.approx(RATE, rel=0.1)
    assert rates(memory, 80_000, [(0, size_at(80_000), 0, 0)]) == [pytest.approx(RATE, rel=0.01)]
