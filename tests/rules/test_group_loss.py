"""When an offset will be deleted, beside Kafka's rule walked forward in time."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.common.rows import SEGMENTS, TIME_UNKNOWN
from streaming.rules.group_loss import losses
from streaming.rules.retention_rule import Growth, LogFacts, RetentionRule, SegmentColumns
from streaming.rules.space_outlook import growth_now, mean_rates
from tests.rules.logs import any_log, log_facts
from tests.tables import each_row
from tests.worlds.kafka_retention import naive_deletable

END_OF_TIME = 102  # later than every time and limit of `any_log` together
HOUR, DAY = 3_600_000, 86_400_000


def still(count: int) -> Growth:
    return Growth(rate=np.zeros(count), active_first_ms=np.full(count, -1))


def lost_at(log: LogFacts, offset: int, now: int, *, rate: float = 0.0, active_first_ms: int = -1) -> tuple[int, int, bool]:
    growth = Growth(rate=np.array([rate]), active_first_ms=np.array([active_first_ms]))
    found = losses(SegmentColumns([log]), growth, np.array([0]), np.array([offset]), now)
    return int(found.at_ms[0]), int(found.last_end[0]), bool(found.by_size[0])


def following(log: LogFacts) -> list[int]:
    return [*log.segments["base_offset"][1:].tolist(), log.log_end_offset]


def first_deleted(log: LogFacts, offset: int, now: int, late: int) -> tuple[int, int]:
    """Walk on in time with a check at every millisecond; when the offset is gone, and what a check so much later takes. -1 if it stays."""
    if log.high_watermark > log.segments["base_offset"][-1]:
        log = replace(log, high_watermark=log.log_end_offset)
    for then in range(now, END_OF_TIME):
        while count := int(RetentionRule(SegmentColumns([log])).at(then).deletable[0]):
            ends = following(log)
            if offset < ends[count - 1]:
                return then, ends[int(RetentionRule(SegmentColumns([log])).at(then + late).deletable[0]) - 1]
            log = replace(log, segments=log.segments[count:])
            if not len(log.segments):
                return -1, -1
    return -1, -1


@given(any_log(("delete", "compact,delete", "compact", "")), st.integers(0, 60), st.integers(0, 30), st.data())
def test_without_appends_an_offset_goes_when_the_rule_walked_forward_deletes_it(log, now, late, data):
    log = replace(log, limits=replace(log.limits, check_interval_ms=late))
    if log.log_start_offset >= log.log_end_offset:
        return
    offset = data.draw(st.integers(log.log_start_offset, log.log_end_offset - 1))
    at_ms, end, _ = lost_at(log, offset, now)
    expected, expected_end = first_deleted(log, offset, now, late)
    assert (max(at_ms, now) if at_ms >= 0 else at_ms, end) == (expected, expected_end)


@given(st.lists(any_log(("delete",)), max_size=4), st.integers(0, 60), st.data())
def test_offsets_of_many_logs_are_judged_at_once_as_one_by_one(logs, now, data):
    asked = data.draw(st.lists(st.tuples(st.integers(0, len(logs) - 1), st.integers(0, 40)), max_size=8)) if logs else []
    owner, offset = np.array([log for log, _ in asked], np.int64), np.array([offset for _, offset in asked], np.int64)
    found = losses(SegmentColumns(logs), still(len(logs)), owner, offset, now)
    together = list(zip(found.at_ms.tolist(), found.last_end.tolist(), found.by_size.tolist(), strict=True))
    assert together == [lost_at(logs[log], offset, now) for log, offset in asked]


def loses(log: LogFacts, offset: int, pace: float, now: int) -> bool:
    """Whether a reader of that pace, in offsets a second, meets a log start beyond it, if a check comes at every millisecond."""
    if log.high_watermark > log.segments["base_offset"][-1]:
        log = replace(log, high_watermark=log.log_end_offset)
    ends = following(log)
    for then in range(now, END_OF_TIME):
        read = offset + pace * (then - now) / 1000
        gone = [int(RetentionRule(SegmentColumns([log])).at(then).deletable[0])]
        if gone[0] and read < ends[gone[0] - 1]:
            return True
    return False


@given(any_log(("delete", "compact,delete")), st.integers(0, 60), st.data())
def test_the_pace_is_the_least_at_which_a_reader_loses_nothing(log, now, data):
    if log.log_start_offset >= log.log_end_offset:
        return
    offset = data.draw(st.integers(log.log_start_offset, log.log_end_offset - 1))
    pace = float(losses(SegmentColumns([log]), still(1), np.array([0]), np.array([offset]), now).pace[0])
    if pace < 0:
        return
    assert (pace == 0 and not loses(log, offset, 0.0, now)) or loses(log, offset, 0.98 * pace, now)
    if not loses(log, offset, 1e9, now):  # what is due now is lost to everybody
        assert not loses(log, offset, 1.02 * pace, now)


@st.composite
def growing(draw: st.DrawFn) -> tuple[LogFacts, int, int]:
    """A log that was written at a steady rate, its rate in bytes a millisecond, and an offset of it."""
    rate = draw(st.integers(1, 8))
    segment_ms, segment_bytes = draw(st.integers(20, 400)), draw(st.integers(100, 3000))
    retention_bytes = draw(st.one_of(st.just(-1), st.integers(0, 8000)))
    age = draw(st.integers(1, 1500))
    log = log_facts(
        [(0, 0, -1, 0)],
        log_end_offset=0,
        retention_ms=draw(st.one_of(st.just(-1), st.integers(1, 800))) if retention_bytes >= 0 else draw(st.integers(1, 800)),
        retention_bytes=retention_bytes,
        segment_ms=segment_ms,
    )
    log = replace(log, limits=replace(log.limits, segment_bytes=segment_bytes))
    return Written(log, rate).write(age), rate, draw(st.integers(0, age - 1))


class Written:
    """A log to which one record is appended every millisecond."""

    def __init__(self, log: LogFacts, rate: int, now: int = 0) -> None:
        self.rate, self.log, self.now = rate, log, now

    def write(self, until: int) -> LogFacts:
        segments = [list(each) for each in self.log.segments.tolist()]
        for now in range(self.now, until):
            first, size = segments[-1][:2]  # the first record's offset is its time
            if size and (size + self.rate > self.log.limits.segment_bytes or now - first > self.log.limits.roll_ms):
                segments.append([now, 0, -1, 0])
                size = 0
            segments[-1][1:] = [size + self.rate, now, now]
        self.now = until
        self.log = replace(
            self.log, segments=np.array([tuple(each) for each in segments], SEGMENTS), log_end_offset=until, high_watermark=until
        )
        return self.log

    def check(self) -> int:
        """Delete what retention deletes; up to which offset that is, -1 nothing."""
        ends, count = following(self.log), naive_deletable(self.log, self.now)
        self.log = replace(self.log, segments=self.log.segments[count:])
        return ends[count - 1] if count else -1


@given(growing())
def test_with_steady_appends_an_offset_goes_when_the_growing_log_deletes_it(drawn):
    log, rate, offset = drawn
    now = log.log_end_offset
    active_first_ms = int(log.segments["base_offset"][-1])
    growth = Growth(rate=np.array([rate * 1000.0]), active_first_ms=np.array([active_first_ms]))
    found = losses(SegmentColumns([log]), growth, np.array([0]), np.array([offset]), now)
    at_ms, latest_ms = int(found.at_ms[0]), int(found.latest_ms[0]) - log.limits.check_interval_ms
    written = Written(log, rate, now)
    while offset >= written.check():
        assert written.now <= latest_ms + 3
        written.write(written.now + 1)
    # the rule counts in bytes and milliseconds, the log grows by whole records: one may not fit into a segment, one may come just before
    assert abs(latest_ms - written.now) <= 3
    assert at_ms <= written.now + 3
    assert found.silent_ms[0] < 0 or at_ms >= written.now - 3, "nothing is due before that, as records go on to come"


@each_row(
    ("every", "silent", "retention", "written_to"),
    [
        (2_000, 2_000, 60_000, True),  # Kafka compares the newest record, which moves on
        (2_000, 29_000, 60_000, True),
        (2_000, 30_000, 60_000, False),  # it may have stopped
        (6_000, 1_000, 60_000, True),
        (7_000, 1_000, 60_000, False),  # now and then a minute may pass without a record
        (40_000, 1_000, 7 * DAY, True),
    ],
)
@pytest.mark.parametrize("watched", [-1.0, 0.0, 5.0])
def test_nothing_of_a_log_that_is_written_to_is_due_before_its_segment_is_rolled(every, silent, retention, written_to, watched):
    """However fast it was seen to grow: a job, which has watched it for long, and a command that looks once say the same."""
    now, count = 100 * DAY, 200
    first = now - silent - every * count
    log = log_facts([(0, 10 * count, now - silent, now - silent)], log_end_offset=count + 1, retention_ms=retention, segment_bytes=1 << 30)
    growth = growth_now(SegmentColumns([log]), np.array([watched]), np.array([first]), now)
    (found,) = (losses(SegmentColumns([log]), growth, np.array([0]), np.array([5]), now),)
    due = now - silent + retention + 1
    rolled = first + log.limits.roll_ms + retention + 1
    latest = due if watched == 0 and not written_to else rolled
    assert found.latest_ms[0] == latest + log.limits.check_interval_ms
    assert (found.at_ms[0], found.silent_ms[0]) == ((rolled, due) if written_to else (due, -1))
    (retained,) = RetentionRule(SegmentColumns([log])).at(now, growth=growth).next_deletion.tolist()
    assert retained == found.at_ms[0], "the list of partitions says the same"


def test_a_segment_of_unknown_time_leaves_it_unknown_unless_its_size_decides() -> None:
    log = log_facts([(0, 10, TIME_UNKNOWN, 5), (10, 10, 50, 50)], retention_ms=100)
    assert lost_at(log, 3, 60) == (-1, -1, False)
    assert lost_at(log, 12, 60) == (-1, -1, False)
    by_size = log_facts([(0, 10, TIME_UNKNOWN, 5), (10, 10, 50, 50)], retention_ms=100, retention_bytes=5)
    assert lost_at(by_size, 3, 60) == (50, 20, True)


def test_nothing_is_stated_of_a_log_whose_records_are_also_in_remote_storage_or_whose_high_watermark_is_unknown() -> None:
    assert lost_at(log_facts([(0, 10, 50, 50)], retention_ms=100), 3, 60) == (151, 10, False)
    assert lost_at(log_facts([(0, 10, 50, 50)], retention_ms=100, remote_storage_enable="true"), 3, 60)[0] == -1
    assert lost_at(log_facts([(0, 10, 50, 50)], retention_ms=100, high_watermark=-1), 3, 60)[0] == -1


def test_a_log_that_keeps_everything_loses_nothing_and_neither_does_one_with_the_longest_limits() -> None:
    longest = str(2**63 - 1)
    assert lost_at(log_facts([(0, 10, 50, 50)], retention_ms=-1), 3, 60)[0] == -1
    assert lost_at(log_facts([(0, 10, 50, 50)], retention_ms=longest, retention_bytes=longest), 3, 60, rate=1.0)[0] == -1


def test_the_mean_rate_is_what_came_after_the_first_segment_until_now() -> None:
    two = log_facts([(0, 70, 1000, 1000), (10, 20, 3000, 3000), (20, 30, 6000, 6000)])
    one = log_facts([(0, 70, 1000, 1000)])
    assert mean_rates(SegmentColumns([two, one]), 11_000).tolist() == [5.0, 0.0]


def test_a_log_that_has_stopped_has_no_rate_and_loses_nothing_by_size() -> None:
    stopped = log_facts([(0, 4096, 1000, 1000), (10, 4096, 2000, 2000), (20, 1124, 3000, 3000)], retention_bytes=8192, retention_ms=-1)
    minute = 60_000
    for idle_ms, grows in ((5 * minute, True), (5 * minute + 1, False), (DAY, False)):
        now = 3000 + idle_ms
        rate = float(mean_rates(SegmentColumns([stopped]), now)[0])
        assert (rate > 0) is grows
        assert (lost_at(stopped, 3, now, rate=rate)[0] > now) is grows
    slow = log_facts([(0, 4096, 0, 0), (10, 4096, DAY, DAY), (20, 1124, 2 * DAY, 2 * DAY)])
    assert mean_rates(SegmentColumns([slow, slow]), 3 * DAY).tolist() == [5220 / (3 * DAY / 1000)] * 2
    assert mean_rates(SegmentColumns([slow]), 3 * DAY + 1).tolist() == [0.0]


def test_how_fast_a_log_grows_does_not_depend_on_how_far_its_stamps_are_behind() -> None:
    now, every = 1000 * DAY, 10_000
    for behind in (0, 1000, 45_000, 59_000, HOUR, DAY, 7 * DAY):
        written = [now - (5 - number) * every for number in range(6)]
        segments = [(10 * number, 20_000, at - behind, at) for number, at in enumerate(written)]
        assert mean_rates(SegmentColumns([log_facts(segments)]), now).tolist() == [pytest.approx(2000, rel=0.03)], behind


def test_a_backfill_of_a_week_within_a_minute_grows_as_it_is_written() -> None:
    now = 1000 * DAY
    segments = [(10 * number, 20_000, now - (7 - number) * DAY, now - (6 - number) * 10_000) for number in range(7)]
    assert mean_rates(SegmentColumns([log_facts(segments)]), now).tolist() == [2000.0]


def test_files_of_a_time_to_come_show_nothing_of_how_fast_a_log_grows() -> None:
    """A copy of log dirs without its times, judged as of the time at which it was made."""
    segments = [(0, 70, 1000, 99_000), (10, 20, 3000, 99_000), (20, 30, 6000, 99_000)]
    assert mean_rates(SegmentColumns([log_facts(segments)]), 11_000).tolist() == [5.0]


def test_old_timestamps_of_a_backfill_are_no_sign_that_it_has_stopped() -> None:
    backfill = log_facts([(0, 4096, 1000, 10 * DAY), (10, 4096, 2000, 10 * DAY)])
    assert mean_rates(SegmentColumns([backfill]), 10 * DAY + 1000)[0] > 0


def test_the_limit_that_deletes_it_is_that_of_the_segment_that_goes_last() -> None:
    # the first segment holds a record of later than the second's, and goes by its size; the second would go earlier, by its time
    log = log_facts([(0, 10, 90, 90), (10, 10, 12, 12), (20, 10, 30, 30)], retention_ms=50, retention_bytes=25)
    at_ms, _, by_size = lost_at(log, 12, 60, rate=1000.0)
    assert (at_ms, by_size) == (65, True)


def test_what_is_due_within_a_check_interval_goes_with_it() -> None:
    log = log_facts([(0, 10, 50, 50), (10, 10, 60, 60), (20, 10, 80, 80)], retention_ms=100)
    ends = []
    for interval in (0, 9, 10, 29, 30):
        ends.append(lost_at(replace(log, limits=replace(log.limits, check_interval_ms=interval)), 3, 60)[1])
    assert ends == [10, 10, 20, 20, following(log)[-1]]
    late = replace(log, limits=replace(log.limits, check_interval_ms=5))
    assert [lost_at(late, 3, now)[:2] for now in (155, 156, 176)] == [(151, 10), (151, 20), (151, following(log)[-1])]


def test_the_active_segment_goes_as_soon_as_its_first_record_is_replicated() -> None:
    for high_watermark, found in ((9, (-1, -1)), (10, (-1, -1)), (11, (151, 20)), (20, (151, 20))):
        log = log_facts([(0, 10, 50, 50), (10, 10, 50, 50)], retention_ms=100, high_watermark=high_watermark)
        assert lost_at(log, 12, 60)[:2] == found


def test_what_goes_with_a_segment_to_which_more_comes_has_no_upper_bound() -> None:
    log = log_facts([(0, 10, 50, 50), (10, 10, 60, 60)], retention_ms=100, segment_ms=5, segment_bytes=1 << 20)
    for rate, grows in ((0.0, False), (1.0, True)):
        growth = Growth(rate=np.array([rate]), active_first_ms=np.array([50]))
        found = losses(SegmentColumns([log]), growth, np.array([0, 0]), np.array([3, 12]), 70)
        assert found.first_end.tolist() == [10, 20]
        assert found.last_end.tolist() == ([20, 20] if not grows else [-1, -1])
