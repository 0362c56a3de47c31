"""A broker without a process deletes nothing: what it would delete has no time, waits for its start, and is not overdue."""

from dataclasses import fields

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streaming.rules.group_loss import losses
from streaming.rules.retention_rule import BLOCKED, Bound, LogFacts, Retention, RetentionRule, SegmentColumns, away_of, not_growing
from tests.rules.logs import any_log, log_facts

_RUNS, _AWAY = np.array([-1]), np.array([7])
_OF_THE_TIME = ("next_deletion", "next_deletion_if_it_grows", "next_start_of", "overdue", "blocked")


def test_only_brokers_that_are_away_are_named() -> None:
    assert away_of(np.array([1, 2, 1, 3]), {1, 9}).tolist() == [1, -1, 1, -1]
    assert away_of(np.array([1]), ()).tolist() == [-1]


@given(any_log(("delete", "compact,delete", "compact")), st.integers(0, 60))
def test_the_next_deletion_waits_for_the_start_and_all_that_is_there_stays_as_it_is(log: LogFacts, now: int) -> None:
    rule = RetentionRule(SegmentColumns([log]))
    runs, away = rule.at(now, away=_RUNS), rule.at(now, away=_AWAY)
    assert (away.next_deletion[0], away.next_start_of[0]) == (-1, 7 if runs.next_deletion[0] != -1 else -1)
    assert (runs.next_start_of[0], away.overdue[0]) == (-1, min(runs.overdue[0], 0))
    others = [each.name for each in fields(Retention) if each.name not in _OF_THE_TIME]
    assert [getattr(away, name).tolist() for name in others] == [getattr(runs, name).tolist() for name in others]


@given(any_log(("delete", "compact,delete")), st.integers(0, 60), st.data())
def test_a_loss_waits_for_the_start_and_what_is_due_goes_with_it(log: LogFacts, now: int, data: st.DataObject) -> None:
    offset = np.array([data.draw(st.integers(log.log_start_offset, log.log_start_offset + 40))])
    logs = SegmentColumns([log])
    runs, away = (losses(logs, not_growing(logs), np.array([0]), offset, now, each) for each in (None, _AWAY))
    foretold, due = bool(runs.at_ms[0] != -1), bool(0 <= runs.at_ms[0] <= now)
    assert (away.at_ms[0], away.latest_ms[0], away.last_end[0], away.pace[0]) == (-1, -1, -1, -1.0)
    assert (away.start_of[0], away.at_start[0]) == (7 if foretold else -1, due)
    assert away.first_end[0] == (runs.first_end[0] if due else -1)
    assert (runs.start_of[0], runs.at_start[0]) == (-1, False)


def test_what_a_broker_that_is_away_has_not_deleted_was_not_passed_over_by_any_check() -> None:
    """Neither is its high watermark what blocks it: no check has come."""
    bounded: list[list[bool]] = []

    def bound(_judged, deletable, overdue, _interval):  # type: ignore[no-untyped-def]
        bounded.append(deletable.tolist())
        return overdue

    late: Bound = bound
    due = log_facts([(0, 10, 50, 50), (10, 10, 90, 90)], retention_ms=100)
    found = [RetentionRule(SegmentColumns([due])).at(1_000_000, late, away=each) for each in (_RUNS, _AWAY)]
    assert bounded == [[True], [False]]
    assert [int(each.overdue[0]) for each in found] == [999_850, 0]
    unreplicated = log_facts([(0, 10, 50, 50), (10, 10, 90, 90)], retention_ms=100, high_watermark=5)
    blocked = [int(RetentionRule(SegmentColumns([unreplicated])).at(1_000_000, away=each).blocked[0]) for each in (_RUNS, _AWAY)]
    assert blocked == [BLOCKED.index("high_watermark"), -1]
