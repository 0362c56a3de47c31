from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.rules.retention_rule import LogFacts, RetentionRule, SegmentColumns
from streaming.rules.space_outlook import HORIZON_MS, LEAST_MS, NEVER, WINDOW_MS, carried_until, growth_of, mean_rates, outlook_of
from tests.rules.logs import TIMES, any_log, log_facts
from tests.tables import each_row

HOUR, DAY = 3_600_000, 86_400_000
GB = 1 << 30


def outlook(log: LogFacts, now_ms: int, growth: float = 0.0, active_first_ms: int = -1, *, compacted_grow: bool = False):
    return outlook_of(SegmentColumns([log]), np.array([growth]), np.array([active_first_ms]), now_ms, compacted_grow=compacted_grow)


def late(log: LogFacts) -> int:
    return log.limits.check_interval_ms + log.limits.file_delete_delay_ms


def replicated(log: LogFacts) -> LogFacts:
    return replace(log, high_watermark=log.log_end_offset)


@given(any_log(("delete", "compact,delete", "compact")).map(replicated), TIMES, st.integers(0, 110))
def test_what_is_gone_by_a_time_is_what_the_rule_would_delete_then(log, now, later):
    found = outlook(log, now)
    at = now + later
    gone = int(np.count_nonzero(found.gone - late(log) <= at))
    assert gone == int(RetentionRule(SegmentColumns([log])).at(at).deletable[0])
    assert found.freed_by(at + late(log))[0] == int(log.segments["size"][:gone].sum())


@given(st.lists(any_log(("delete",)).map(replicated), min_size=1, max_size=4), TIMES)
def test_logs_together_are_as_each_alone(logs, now):
    pace = np.arange(len(logs)) % 3 * 0.5
    together = outlook_of(SegmentColumns(logs), pace, np.full(len(logs), -1), now)
    alone = [outlook(log, now, float(each)) for log, each in zip(logs, pace, strict=True)]
    assert together.gone.tolist() == [at for each in alone for at in each.gone.tolist()]
    assert together.level.tolist() == [each.level[0] for each in alone]


def naive_full(free: float, size: float, pace: float, segment_bytes: float, retention_ms: float, step: float) -> float | None:
    """A log that begins now with a segment of ``size`` bytes, segment by segment, in small steps."""
    closed: list[tuple[float, float]] = []
    active, time, total = size, 0.0, size
    limit = size + free
    while time < 400 * DAY:
        time += step
        active += pace * step
        total += pace * step
        if active >= segment_bytes:
            closed.append((time, active))
            active = 0.0
        while closed and time - closed[0][0] > retention_ms:
            total -= closed.pop(0)[1]
        if total >= limit:
            return time
    return None


@each_row("free", [3 * GB, 30 * GB, 100 * GB])
@each_row("retention", [DAY, 7 * DAY])
def test_a_disk_is_full_when_a_log_that_is_written_segment_by_segment_has_filled_it(free, retention):
    pace = 10 * GB / DAY
    log = log_facts([(0, 0, -1, 0)], retention_ms=retention, segment_bytes=GB)
    found = outlook(log, 0, pace, 0).full_at(np.array([True]), free, 0)
    naive = naive_full(free, 0, pace, GB, retention, 60_000)
    steady = pace * retention
    if free < steady - GB:
        assert naive is not None
        assert found == pytest.approx(naive, abs=2 * 60_000)
    elif free > steady + 1.5 * GB:
        assert (naive, found) == (None, NEVER)


def test_a_log_limited_by_its_size_stops_growing_at_its_limit():
    pace = 10 * GB / DAY
    log = log_facts([(0, GB, 0, 0), (10, 0, -1, 0)], retention_ms=-1, retention_bytes=5 * GB, segment_bytes=GB)
    found = outlook(log, 0, pace, 0)
    assert found.full_at(np.array([True]), 3 * GB, 0) == pytest.approx(3 * GB / pace)
    assert found.full_at(np.array([True]), 8 * GB, 0) == NEVER
    assert found.gone[0] == pytest.approx(5 * GB / pace + late(log))


@each_row("retention", [HOUR, 6 * HOUR, 3 * DAY])
def test_what_is_deleted_again_within_the_day_is_what_grows_less_what_is_there_at_its_end(retention):
    pace = 10 * GB / DAY
    log = log_facts([(0, 0, -1, 0)], retention_ms=retention, segment_ms=HOUR, segment_bytes=GB)
    again = float(outlook(log, 0, pace, 0).deleted_again_by(DAY, 0)[0])
    assert again == pytest.approx(max(0, DAY - retention) * pace, abs=GB)


def test_without_a_limit_a_disk_is_full_when_its_free_bytes_are_written():
    log = log_facts([(0, 100, 0, 0)], retention_ms=-1)
    found = outlook(log, 1000, 2.0)
    assert found.full_at(np.array([True]), 5000, 1000) == 3500
    assert found.full_at(np.array([False]), 5000, 1000) == NEVER
    assert found.full_at(np.array([True]), 5000, 1000, others=3.0) == 2000
    assert found.full_at(np.array([False]), 5000, 1000, others=1.0) == 6000
    assert found.full_at(np.array([True]), 0, 1000) == 1000
    assert found.full_at(np.array([True]), 3 * HORIZON_MS, 1000) == NEVER


def test_what_expires_tonight_puts_off_when_the_disk_is_full():
    """200 bytes go after two hours at the latest; without them 100 would be full in one hour more than with them."""
    segments = [(0, 200, 0, 0), (10, 0, -1, 0)]
    pace = 100 / (3 * HOUR)
    kept, gone = (log_facts(segments, retention_ms=each, segment_bytes=GB) for each in (-1, 2 * HOUR))
    assert outlook(kept, HOUR, pace).full_at(np.array([True]), 100, HOUR) == pytest.approx(4 * HOUR)
    assert outlook(gone, HOUR, pace).full_at(np.array([True]), 100, HOUR) > 9 * HOUR


def test_a_compacted_log_grows_or_stays_by_choice():
    log = log_facts([(0, 100, 0, 0)], cleanup_policy="compact")
    assert outlook(log, 0, 1.0).full_at(np.array([True]), 500, 0) == NEVER
    assert outlook(log, 0, 1.0, compacted_grow=True).full_at(np.array([True]), 500, 0) == 500


def test_an_idle_active_segment_goes_by_its_records_and_one_that_grows_after_its_roll():
    log = log_facts([(0, 100, 50, 60)], retention_ms=1000, segment_ms=400, segment_bytes=GB)
    assert outlook(log, 100).gone[0] == 50 + 1000 + 1 + late(log)
    grows = outlook(log, 100, 2.0, active_first_ms=20)
    assert grows.gone[0] == 420 + 1000 + 1 + late(log)
    assert (grows.present[0], grows.appended[0], grows.appended_gone[0]) == (100, 2.0 * 320, grows.gone[0])
    assert grows.freed_by(grows.gone[0])[0] == 100  # what is there, and not what will come


def test_an_active_segment_that_is_older_than_the_limit_goes_at_the_next_check_and_what_comes_later_as_ever():
    log = log_facts([(0, 100, 50, 60)], retention_ms=1000, segment_ms=400, segment_bytes=GB)
    found = outlook(log, 1051, 2.0, active_first_ms=20)
    assert RetentionRule(SegmentColumns([log])).at(1051).reclaimable[0] == 100
    assert found.gone[0] == 1051 + late(log)
    assert found.freed_by(1051 + late(log))[0] == 100
    assert outlook(log, 1050, 2.0, active_first_ms=20).gone[0] > 1051 + late(log)
    assert found.appended_gone[0] == 1051 + 1000 + 1 + late(log)


def test_an_idle_active_segment_beyond_a_limit_that_was_lowered_is_judged_without_a_warning():
    """No byte is left of it, and a log that does not grow fills none."""
    idle = log_facts([(0, 500, 10, 10)], segment_bytes=400)
    with np.errstate(all="raise", divide="ignore"):
        assert outlook(idle, 20).level.tolist() == outlook(replace(idle, limits=replace(idle.limits, segment_bytes=600)), 20).level.tolist()


def test_what_waits_to_be_unlinked_is_free_soon():
    log = log_facts([(0, 100, 0, 0)], retention_ms=-1)
    found = outlook(log, 1000, 2.0)
    assert found.full_at(np.array([True]), 5000, 1000, waiting=1000, unlinked_ms=2000) == 4000
    assert found.full_at(np.array([True]), 1000, 1000, waiting=1000, unlinked_ms=2000) == 1500


def growth(log: LogFacts, first_ms: int, now_ms: int) -> float:
    return float(growth_of(SegmentColumns([log]), np.array([first_ms]), now_ms)[0])


def test_growth_is_that_of_the_last_day_by_the_times_of_segments():
    log = log_facts([(0, 5000, 10 * DAY, 0), (10, 300, 11 * DAY, 0), (20, 60, 11 * DAY + HOUR, 0)])
    assert growth(log, 9 * DAY, 11 * DAY + HOUR) * DAY == pytest.approx(300 * 23 / 24 + 60)
    assert growth(log, 9 * DAY, 20 * DAY) == 0


def test_growth_of_a_log_that_begins_within_the_day_is_over_the_time_that_is_there():
    log = log_facts([(0, 600, 100 * HOUR, 0), (10, 300, 101 * HOUR, 0)])
    assert growth(log, 98 * HOUR, 101 * HOUR) * HOUR == pytest.approx(300)


def test_growth_of_a_compacted_log_that_begins_with_an_empty_segment_is_since_its_first_batch():
    log = log_facts([(0, 0, -1, 0), (10, 600, 101 * HOUR, 0), (20, 200, 102 * HOUR, 0)])
    assert growth(log, 100 * HOUR, 102 * HOUR) * HOUR == pytest.approx(400)


@each_row(
    ("written", "silent", "expected"),
    [
        (120_000, 0, 600 / 120_000),
        (120_000, 60_000, 600 / 180_000),  # a producer may wait so long
        (120_000, 60_001, np.nan),  # it may have stopped
        (120_000, 120_000, np.nan),
        (120_000, 120_001, 0.0),  # as far as anybody can tell it has
        (9 * HOUR, HOUR, 600 / (10 * HOUR)),
        (9 * HOUR, HOUR + 1000, np.nan),
        (9 * HOUR, 9 * HOUR + 1, 0.0),
        (0, 0, 600 / 1000),
        (0, 60_001, 0.0),  # one batch
    ],
)
def test_a_log_of_less_than_a_day_grows_since_its_first_byte_and_no_more_when_it_has_stopped(written, silent, expected):
    now = 1_000 * HOUR
    first = now - silent - written
    found = growth(log_facts([(0, 600, first + written, 0)]), first, now)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_log_that_is_silent_and_older_than_a_day_writes_again_as_in_all_its_time():
    now = 1_000 * HOUR
    nightly = log_facts([(0, 100, now - 2 * DAY, 0), (10, 100, now - DAY - HOUR, 0), (20, 100, now - HOUR, 0)])
    flooded = log_facts([(0, 100, now - 2 * HOUR, 0), (10, 900, now - HOUR, 0)])
    assert growth(nightly, now - 3 * DAY, now) * DAY == pytest.approx(100, rel=0.05)
    assert growth(flooded, now - 10 * DAY, now) * DAY == pytest.approx(100)


def test_the_file_tells_that_a_log_is_written_whose_records_are_old():
    now = 1_000 * HOUR
    assert growth(log_facts([(0, 600, now - 5 * HOUR, now)]), now - 6 * HOUR, now) == pytest.approx(600 / (6 * HOUR))
    assert growth(log_facts([(0, 600, now - 5 * HOUR, now + 1)]), now - 6 * HOUR, now) == 0, "a copy, with the time of the copy"


def test_growth_is_foretold_for_ten_times_as_long_as_a_young_log_is_there():
    now = 1_000 * HOUR

    def until(first_ms, base=0):
        return float(carried_until(SegmentColumns([log_facts([(base, 600, now, now)])]), np.array([first_ms]), now)[0])

    assert [until(now - age) - now for age in (0, 1_000, 60_000, LEAST_MS - 1)] == [10_000, 10_000, 600_000, 10 * (LEAST_MS - 1)]
    assert [until(now - LEAST_MS), until(-1), until(now - 60_000, base=7)] == [NEVER] * 3


def test_growth_of_a_log_whose_begin_is_not_known():
    now = 1_000 * HOUR
    log = log_facts([(0, 600, now, 0)])
    assert np.isnan(growth(log, -1, now))
    assert np.isnan(growth(log_facts([(0, 0, -1, now)]), now, now)), "nothing has come yet"
    older = log_facts([(0, 600, now - 2 * HOUR, 0)])  # nobody knows since when it was written
    assert (np.isnan(growth(older, -1, now)), np.isnan(growth(older, now - 3 * HOUR, now))) == (True, False)
    assert growth(log_facts([(0, 0, -1, now - 2 * WINDOW_MS)]), -1, now) == 0


def test_times_in_the_future_count_as_now():
    now = 1_000 * HOUR
    log = log_facts([(0, 600, now + 400 * HOUR, 0), (10, 300, now, 0)])
    assert growth(log, now - 10 * HOUR, now) * HOUR == pytest.approx(90)


@given(st.lists(any_log(("delete",)), min_size=1, max_size=4), st.lists(TIMES, min_size=4, max_size=4), st.integers(61, 200))
def test_growth_of_logs_together_is_that_of_each_alone(logs, firsts, now):
    together = growth_of(SegmentColumns(logs), np.array(firsts[: len(logs)]), now + LEAST_MS)
    alone = [growth(log, first, now + LEAST_MS) for log, first in zip(logs, firsts, strict=False)]
    np.testing.assert_array_equal(together, alone)
    total = np.array([int(log.segments["size"].sum()) for log in logs])
    known = ~np.isnan(together)
    assert (together[known] * LEAST_MS <= total[known] + 1e-6).all()


def test_no_logs_at_all():
    logs = SegmentColumns([])
    found = outlook_of(logs, growth_of(logs, np.empty(0, np.int64), 0), np.empty(0, np.int64), 0)
    assert found.full_at(np.empty(0, np.bool_), 100, 0) == NEVER


@given(st.lists(any_log(("delete", "compact")), min_size=1, max_size=5), st.data())
def test_some_of_the_logs_are_as_if_the_others_had_never_been_there(logs, data):
    chosen = sorted(data.draw(st.sets(st.integers(0, len(logs) - 1), min_size=1)))
    whole = SegmentColumns(logs)
    assert len(whole.total) == len(whole.following[whole.last]) == len(whole.active[whole.last])
    taken, expected = whole.take(np.array(chosen)), SegmentColumns([logs[item] for item in chosen])
    one, other = RetentionRule(taken).at(30), RetentionRule(expected).at(30)
    for name in ("deletable", "reclaimable", "next_deletion", "blocked"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()
    assert taken.total.tolist() == expected.total.tolist()
    assert taken.following.tolist() == expected.following.tolist()


def test_a_log_that_moves_frees_nothing_for_a_day():
    log = log_facts([(0, GB, 0, 0), (10, GB, DAY, 0)], retention_ms=HOUR)
    still, moving = (outlook(replace(log, moving=each), DAY, GB / DAY) for each in (False, True))
    assert (still.freed_by(2 * DAY)[0], moving.freed_by(2 * DAY)[0], moving.freed_by(3 * DAY)[0]) == (2 * GB, 0, 2 * GB)
    assert moving.level[0] > still.level[0]


@each_row("stamp", [2**63 - 1, 2**63 - 2, 2**62])
@each_row("place", [0, 1, 2])
def test_a_record_of_a_clock_that_no_log_reaches_is_as_one_of_the_year_2109(stamp, place):
    now = 1_700_000_000_000

    def found(at):
        times = [now - 3 * DAY, now - 2 * DAY, now - DAY]
        times[place] = at
        # the first file is the newest, as the cleaner leaves it, so that the stamps tell how long the log took
        log = log_facts([(number * 10, GB, time, now - (number + 1) * HOUR) for number, time in enumerate(times)], retention_ms=7 * DAY)
        columns, every = SegmentColumns([log]), np.array([True])
        future = outlook_of(columns, np.array([GB / DAY]), np.array([at]), now)
        return mean_rates(columns, now).tolist(), growth_of(columns, np.array([at]), now).tolist(), future.full_at(every, 3 * GB, now)

    assert repr(found(stamp)) == repr(found(1 << 42))  # there is a nan


def test_a_log_that_has_stopped_does_not_grow_whatever_its_last_record_says():
    now = 1_700_000_000_000
    for stamp in (now - 9 * DAY, 1 << 42, 2**63 - 1):
        times = [(now - 11 * DAY, now - 11 * DAY), (now - 10 * DAY, now - 10 * DAY), (stamp, now - 9 * DAY)]
        log = log_facts([(number * 10, GB, time, written) for number, (time, written) in enumerate(times)])
        assert mean_rates(SegmentColumns([log]), now).tolist() == [0.0], stamp
