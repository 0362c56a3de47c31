from dataclasses import fields, replace

from hypothesis import given
from hypothesis import strategies as st

from streaming.common.rows import TIME_UNKNOWN
from streaming.rules.cleaning import CompactionRule
from streaming.rules.retention_rule import BLOCKED, LogFacts, RetentionRule, SegmentColumns
from tests.rules.logs import TIMES, any_log, log_facts
from tests.tables import each_row
from tests.worlds.kafka_retention import naive_deletable

POLICIES = ("delete", "compact,delete", "compact", "")
DAY = 86_400_000
TWO_CHECKS = 600_000


@given(st.lists(any_log(POLICIES), max_size=5), TIMES)
def test_the_segments_that_kafkas_own_walk_would_delete_are_deletable(logs, now):
    found = RetentionRule(SegmentColumns(logs)).at(now)
    assert found.deletable.tolist() == [naive_deletable(log, now) for log in logs]
    for log, count, size in zip(logs, found.deletable.tolist(), found.reclaimable.tolist(), strict=True):
        assert size == (int(log.segments["size"][:count].sum()) if log.limits.deletes else -1)


@given(any_log(("delete",)), TIMES)
def test_the_next_deletion_is_the_moment_from_which_the_first_segment_is_deletable(log, now):
    rule = RetentionRule(SegmentColumns([log]))
    next_deletion = int(rule.at(now).next_deletion[0])
    if next_deletion > now:
        assert not rule.at(next_deletion - 1).deletable[0]
        assert bool(rule.at(next_deletion).deletable[0]) == (log.high_watermark >= naive_upper(log))
    elif next_deletion >= 0:
        assert bool(rule.at(now).deletable[0]) == (log.high_watermark >= naive_upper(log))


def naive_upper(log: LogFacts) -> int:
    return int(log.segments["base_offset"][1]) if len(log.segments) > 1 else log.log_end_offset


@given(any_log(("delete", "compact,delete")), TIMES)
def test_only_what_the_next_check_leaves_is_blocked(log, now):
    found = RetentionRule(SegmentColumns([log])).at(now)
    if found.blocked[0] >= 0:
        assert found.deletable[0] == 0


@given(any_log(POLICIES), TIMES, st.data())
def test_what_depends_on_a_time_that_is_not_known_has_no_value(log, now, draw):
    """Whatever is decided in spite of that would be decided if it were known."""
    hidden = log.segments.copy()
    hidden["largest_timestamp"][draw.draw(st.lists(st.integers(0, len(hidden) - 1)))] = TIME_UNKNOWN
    known, found = at(now, log), at(now, replace(log, segments=hidden))
    for name in (field.name for field in fields(known)):
        assert getattr(found, name)[0] in (-1, getattr(known, name)[0]), name
    clean, dark = (CompactionRule(SegmentColumns([replace(log, segments=each)])).at(now) for each in (log.segments, hidden))
    assert dark.dirty_bytes[0] in (-1, clean.dirty_bytes[0])
    assert dark.uncleanable[0][0] in (-1, clean.uncleanable[0][0])
    assert dark.uncleanable[1][0] in (-1, clean.uncleanable[1][0])


def test_a_segment_of_unknown_time_ends_what_can_be_stated_of_those_behind_it():
    log = log_facts([(0, 10, 100, 0), (5, 10, TIME_UNKNOWN, 0), (9, 10, 300, 0), (12, 10, 400, 0)], retention_ms=1000)
    assert (at(1050, log).deletable[0], at(1050, log).next_deletion[0]) == (0, 1101)
    assert (at(5000, log).deletable[0], at(5000, log).reclaimable[0], at(5000, log).overdue[0]) == (-1, -1, 3900)
    assert at(5000, log).ahead[0] == -1
    first = log_facts([(0, 10, TIME_UNKNOWN, 0), (5, 10, 300, 0)], retention_ms=1000)
    assert (at(5000, first).overdue[0], at(5000, first).next_deletion[0]) == (-1, -1)


def at(now: int, *logs: LogFacts):
    return RetentionRule(SegmentColumns(logs)).at(now)


def blocked(now: int, log: LogFacts) -> str:
    reason = int(at(now, log).blocked[0])
    return BLOCKED[reason] if reason >= 0 else ""


def test_no_logs_are_judged_too():
    assert len(at(0).deletable) == 0


def test_a_segment_stays_at_its_limit_and_goes_a_millisecond_later():
    log = log_facts([(0, 10, 1000, 0), (10, 10, 9000, 0)], retention_ms=500)
    assert at(1500, log).deletable.tolist() == [0]
    assert at(1501, log).deletable.tolist() == [1]
    assert at(1501, log).overdue.tolist() == [1]


def test_lag_counts_from_the_oldest_record_and_overdue_from_the_last_one_of_the_first_segment():
    log = log_facts([(0, 10, 4000, 0), (10, 10, 9000, 0)], retention_ms=500, oldest_record_ms=1000)
    found = at(5000, log)
    assert (found.retention_lag[0], found.overdue[0], found.next_deletion[0]) == (3500, 500, 4501)


def test_lag_counts_from_older_records_behind_a_newer_one_too():
    """The newest record of a segment is as old as its time: the oldest of its log is not younger, whatever the first batch holds."""
    future = log_facts([(0, 10, 9_000_000, 0), (10, 10, 1000, 0), (20, 10, 5000, 0)], retention_ms=500, oldest_record_ms=9_000_000)
    assert (blocked(5000, future), at(5000, future).retention_lag[0]) == ("future_timestamp", 3500)
    younger = log_facts([(0, 10, 4900, 0), (10, 10, 1000, 0), (20, 10, 5000, 0)], retention_ms=500, oldest_record_ms=4800)
    assert (blocked(5000, younger), at(5000, younger).retention_lag[0]) == ("head_of_line", 3500)


def test_lag_does_not_count_from_what_readers_do_not_get_or_what_is_not_known():
    segments = [(0, 10, 1000, 0), (10, 10, TIME_UNKNOWN, 0), (20, 10, 4900, 0), (30, 0, -1, 100)]
    assert at(5000, log_facts(segments, log_start_offset=12, retention_ms=500, oldest_record_ms=4600)).retention_lag[0] == 0
    assert at(5000, log_facts([(0, 0, -1, 100)], retention_ms=500)).retention_lag[0] == -1


def test_a_log_without_limits_has_no_lag_and_no_next_deletion():
    found = at(10 * DAY, log_facts([(0, 10, 1000, 0), (10, 10, 2000, 0)], retention_ms=-1, oldest_record_ms=5))
    assert (found.retention_lag[0], found.overdue[0], found.next_deletion[0], found.reclaimable[0]) == (-1, -1, -1, 0)


def test_a_log_that_is_only_compacted_has_nothing_of_retention_but_how_far_it_is_ahead():
    found = at(2000, log_facts([(0, 10, 1000, 0), (10, 10, 2500, 0)], cleanup_policy="compact", retention_ms=1, oldest_record_ms=5))
    assert (found.retention_lag[0], found.overdue[0], found.next_deletion[0], found.reclaimable[0], found.blocked[0]) == (-1,) * 5
    assert found.ahead[0] == 500


def test_surplus_is_overdue_at_least_since_the_segment_was_written_that_made_it_so():
    # 10 bytes too many: the first could go since the third, of ten bytes, was begun; and nothing in the fourth was needed for it
    log = log_facts([(0, 10, 1, 100), (10, 10, 2, 200), (20, 10, 3, 300), (30, 10, 4, 400)], retention_bytes=20, retention_ms=-1)
    found = at(1000, log)
    assert (found.deletable[0], found.overdue[0], found.next_deletion[0]) == (2, 700, 300)


def test_what_delete_records_has_passed_goes_although_nobody_knows_since_when():
    log = log_facts([(0, 10, 1, 100), (10, 10, 2, 200), (20, 0, -1, 300)], log_start_offset=15, retention_ms=DAY)
    found = at(1000, log)
    assert (found.deletable[0], found.overdue[0], found.next_deletion[0], found.reclaimable[0]) == (1, 0, -1, 10)


def test_a_future_timestamp_in_the_first_segment_blocks_old_data_behind_it():
    log = log_facts([(0, 10, 9_000_000, 0), (10, 10, 1000, 0), (20, 10, 2000, 0)], retention_ms=500, oldest_record_ms=1000)
    assert blocked(5000, log) == "future_timestamp"
    assert at(5000, log).ahead[0] == 9_000_000 - 5000


def test_a_future_timestamp_blocks_nothing_while_no_data_is_past_the_limit():
    assert blocked(5000, log_facts([(0, 10, 9_000_000, 0), (10, 10, 5000, 0)], retention_ms=500, oldest_record_ms=4900)) == ""


def test_the_time_of_a_file_is_no_future_timestamp():
    log = log_facts([(0, 10, -1, 9000), (10, 10, 1000, 0), (20, 10, 2000, 0)], retention_ms=500, oldest_record_ms=1000)
    assert blocked(5000, log) == "head_of_line"


def test_the_high_watermark_blocks_a_first_segment_past_any_limit():
    segments = [(0, 10, 1000, 0), (10, 10, 2000, 0)]
    now = 1501 + TWO_CHECKS
    assert blocked(now, log_facts(segments, retention_ms=500, high_watermark=9)) == "high_watermark"
    assert blocked(now - 1, log_facts(segments, retention_ms=500, high_watermark=9)) == ""
    assert blocked(now, log_facts(segments, retention_ms=-1, retention_bytes=5, high_watermark=9)) == "high_watermark"
    assert blocked(now, log_facts(segments, retention_ms=500, high_watermark=10)) == ""


def test_what_was_past_its_limit_when_it_was_appended_is_due_since_then():
    """A backfill, a day behind the clock: while it goes on, the high watermark is a record behind. The broker's next check deletes it."""
    written = 2 * DAY
    one = [(0, 10, DAY, written)]
    assert at(written + 11_000, log_facts(one, retention_ms=500)).overdue[0] == 11_000
    assert blocked(written + 11_000, log_facts(one, retention_ms=500, high_watermark=9)) == ""
    assert blocked(written + TWO_CHECKS, log_facts(one, retention_ms=500, high_watermark=9)) == ""
    assert blocked(written + TWO_CHECKS + 1, log_facts(one, retention_ms=500, high_watermark=9)) == "high_watermark"
    closed = log_facts([*one, (10, 10, DAY, written + DAY)], retention_ms=500, high_watermark=9)
    assert blocked(written + TWO_CHECKS + 1, closed) == "high_watermark"


def test_a_file_written_in_the_future_shows_nothing_of_when_it_was_written():
    log = log_facts([(0, 10, DAY, 9 * DAY)], retention_ms=500)
    assert at(2 * DAY, log).overdue[0] == DAY - 500


def test_a_high_watermark_behind_the_end_of_a_log_within_its_limits_blocks_nothing():
    assert blocked(1100, log_facts([(0, 10, 1000, 0), (10, 10, 1050, 0)], retention_ms=500, high_watermark=3)) == ""


def test_a_newer_first_segment_blocks_an_older_closed_one():
    log = log_facts([(0, 10, 4900, 0), (10, 10, 1000, 0), (20, 10, 5000, 0)], retention_ms=500, oldest_record_ms=4800)
    assert blocked(5000, log) == "head_of_line"


def test_old_records_in_the_only_segment_wait_for_its_newest():
    log = log_facts([(0, 10, 4900, 0)], retention_ms=500, oldest_record_ms=1000)
    assert blocked(5000, log) == "active_segment"
    assert at(5401, log).deletable[0] == 1


def test_old_records_in_a_closed_segment_are_late_and_blocked_by_nothing():
    log = log_facts([(0, 10, 4900, 0), (10, 10, 5000, 0)], retention_ms=500, oldest_record_ms=1000)
    assert at(5000, log).retention_lag[0] == 3500
    assert blocked(5000, log) == ""


def test_with_remote_storage_what_stays_for_longer_than_two_checks_waits_for_its_copy():
    remote = {"remote_storage_enable": "true", "local_retention_ms": 500, "retention_ms": DAY}
    log = log_facts([(0, 10, 1000, 0), (10, 10, 900_000, 0)], **remote)
    assert blocked(1501 + TWO_CHECKS, log) == "remote_copy"
    assert blocked(1500 + TWO_CHECKS, log) == ""
    assert at(900_000, log).reclaimable[0] == -1


def test_a_clock_that_stepped_back_makes_nothing_negative():
    found = at(10, log_facts([(0, 10, 1000, 5000), (10, 10, 2000, 6000)], retention_ms=500, retention_bytes=5, oldest_record_ms=1000))
    assert (found.retention_lag[0], found.overdue[0], found.deletable[0]) == (0, 0, 1)


def test_numbers_at_the_end_of_their_range_do_not_wrap():
    huge = 2**63 - 1
    log = log_facts([(0, 10, huge, huge), (10, 10, 1000, 0)], retention_ms=huge, retention_bytes=huge, oldest_record_ms=1000)
    found = at(5000, log)
    assert (found.deletable[0], found.retention_lag[0], found.overdue[0], found.next_deletion[0]) == (0, 0, 0, -1)


@given(any_log(POLICIES), TIMES)
def test_of_a_log_that_moves_the_next_check_deletes_nothing_and_what_it_would_have_deleted_is_blocked(log, now):
    """Whatever else holds it back: `LogManager.cleanupLogs` does not come to it."""
    still, moving = at(now, log), at(now, replace(log, moving=True))
    assert (moving.deletable[0], moving.overdue[0] > 0, moving.reclaimable[0] > 0) == (0, False, False)
    assert blocked(now, replace(log, moving=True)) == ("moving" if still.deletable[0] > 0 and log.limits.deletes else blocked(now, log))
    assert moving.next_deletion[0] in (-1, still.next_deletion[0])
    assert not 0 <= moving.next_deletion[0] <= now
    assert moving.retention_lag[0] == still.retention_lag[0]


@each_row(
    ("segments", "blocked"),
    [
        ([(0, 100_000, 50, 50)], "active_segment"),  # size deletes no segment that is needed, and never the only one
        ([(0, 9_999, 50, 50)], ""),
        ([(0, 9_999, 50, 50), (10, 9_999, 60, 60)], ""),  # the first is needed: without it too little would be left
    ],
)
def test_a_single_segment_above_the_limit_of_size_stays_and_says_why(segments, blocked):
    log = log_facts(segments, retention_ms=-1, retention_bytes=10_000)
    found = RetentionRule(SegmentColumns([replace(log, high_watermark=log.log_end_offset)])).at(100)
    assert (BLOCKED[found.blocked[0]] if found.blocked[0] >= 0 else "", int(found.deletable[0])) == (blocked, 0)
