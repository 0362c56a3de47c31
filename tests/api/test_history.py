"""The last hour of a log: what its counters and offsets were, a number a minute, and whose it is."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streaming.cluster.view.table import Table
from streaming.cluster.view.view import view
from streaming.pages.api.history import MINUTE_MS, MINUTES, History
from streaming.pages.api.look import Look
from streaming.pages.site.judged_looks import KEEP_SECONDS, Looks
from tests.view.rows import log, new_table, removed, states

START = 1_700_000_040.0 // 60 * 60
"""The beginning of a minute, Unix seconds."""


def seen(table: Table, at: float) -> Look:
    snapshot = table.snapshot(at)
    return Look(view(snapshot), snapshot)


def looked(history: History, table: Table, at: float) -> Look:
    found = seen(table, at)
    history.sample(found.snapshot)
    history.record(found)
    return found


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=80))
def test_each_minute_has_the_rate_of_what_was_appended_in_it(appended: list[int]) -> None:
    history, table, total = History(), new_table(log(appended_bytes=0, log_end_offset=0)), 0
    last = looked(history, table, START)
    for minute, size in enumerate(appended, 1):
        total += size
        table.apply(states(log(appended_bytes=total, appended_records=2 * total, log_end_offset=total)))
        last = looked(history, table, START + 60 * minute)
    (rates,) = history.hours(last, [0])
    assert len(rates) == MINUTES
    kept = np.array(appended[-MINUTES:], np.float64) / 60
    np.testing.assert_allclose(rates[-len(kept) :], kept, rtol=1e-6)
    minutes = history.minutes(last, 0)
    assert [each.at_ms for each in minutes] == [round(START * 1000) + each * MINUTE_MS for each in range(len(appended) + 1)[-MINUTES:]]
    assert minutes[-1].log_end_offset == total
    np.testing.assert_allclose([each.records_rate for each in minutes[1:]], 2 * kept[-len(minutes) + 1 :], rtol=1e-6)


def test_a_minute_that_nobody_saw_is_not_known() -> None:
    history, table = History(), new_table(log(appended_bytes=0))
    looked(history, table, START)
    table.apply(states(log(appended_bytes=600)))
    looked(history, table, START + 60)
    table.apply(states(log(appended_bytes=1_000_000)))
    last = looked(history, table, START + 360)
    assert history.hours(last, [0])[0][-6:] == [10.0, -1.0, -1.0, -1.0, -1.0, -1.0]
    assert [each.at_ms / 1000 - START for each in history.minutes(last, 0)] == [0, 60, 360]


def test_the_rate_of_now_is_that_of_the_last_minute_or_as_long_as_is_known() -> None:
    history, table = History(), new_table(log(appended_bytes=100, appended_records=10))
    first = looked(history, table, START)
    assert history.bytes_rate(first).tolist() == [-1.0]
    for second in range(10, 130, 10):
        table.apply(states(log(appended_bytes=100 + 7 * second, appended_records=10 + second)))
        now = looked(history, table, START + second)
        assert history.bytes_rate(now).tolist() == [7.0]
        assert history.records_rate(now).tolist() == [1.0]


def test_a_counter_that_is_not_known_or_falls_has_no_rate() -> None:
    history, table = History(), new_table(log(appended_bytes=100, settled=False))
    looked(history, table, START)
    table.apply(states(log(appended_bytes=900)))  # its backlog has just been read
    assert history.bytes_rate(looked(history, table, START + 60)).tolist() == [-1.0]
    table.apply(states(log(appended_bytes=5)))
    assert history.bytes_rate(looked(history, table, START + 120)).tolist() == [-1.0]


def test_another_log_in_the_same_slot_has_a_history_of_its_own() -> None:
    history, table = History(), new_table(log("old", appended_bytes=0))
    looked(history, table, START)
    table.apply(states(log("old", appended_bytes=60)))
    looked(history, table, START + 60)
    table.apply(states(removed("old")))
    table.apply(states(log("new", appended_bytes=0)))
    now = seen(table, START + 90)
    assert history.hours(now, [0]) == [[]]
    assert history.minutes(now, 0) == []
    assert history.hours(looked(history, table, START + 120), [0]) == [[]]


def test_a_log_that_came_after_the_last_look_has_no_history_yet() -> None:
    history, table = History(), new_table(log("old", appended_bytes=0))
    looked(history, table, START)
    table.apply(states(log("young", appended_bytes=0)))
    now = seen(table, START + 1)
    young = now.topics.index("young")
    assert history.hours(now, [young]) == [[]]
    assert history.minutes(now, young) == []
    assert len(history.minutes(now, now.topics.index("old"))) == 1


def test_a_log_keeps_its_history_when_another_one_goes() -> None:
    history, table = History(), new_table(log("gone", appended_bytes=0), log("stays", appended_bytes=0))
    looked(history, table, START)
    table.apply(states(log("stays", appended_bytes=60)))
    looked(history, table, START + 60)
    table.apply(states(removed("gone")))
    now = seen(table, START + 90)
    assert list(now.topics) == ["stays"]
    assert [each.bytes_rate for each in history.minutes(now, 0)] == [-1.0, 1.0]
    assert [rate for rate in history.hours(now, [0])[0] if rate >= 0] == [1.0]


def test_time_that_goes_back_begins_anew() -> None:
    history, table = History(), new_table(log(appended_bytes=0))
    looked(history, table, START + 7200)
    last = looked(history, table, START)
    assert [each.at_ms for each in history.minutes(last, 0)] == [round(START * 1000)]


def test_a_look_is_shared_for_two_seconds_and_kept_for_a_minute() -> None:
    now = [START]
    looks = Looks(new_table(log()), lambda: now[0])
    assert looks.new() is not looks.recent()
    first = looks.recent()
    now[0] += 2
    assert looks.recent() is first
    now[0] += 0.1
    assert looks.recent() is not first
    assert looks.is_wanted
    now[0] += KEEP_SECONDS + 1
    looks.remember()
    assert not looks.is_wanted


def test_what_nobody_looks_at_is_remembered_all_the_same() -> None:
    now, table = [START], new_table(log(appended_bytes=0))
    looks = Looks(table, lambda: now[0])
    for step in range(1, 13):
        looks.remember()
        now[0] += 10
        table.apply(states(log(appended_bytes=step * 100)))
    looks.remember()
    assert not looks.is_wanted
    last = looks.new()
    assert looks.history.hours(last, [0])[0][-3:] == [-1.0, 10.0, 10.0]
