"""The rule of what a check deletes now, beside the forecast of it: of one log both say the same, now and at every time to come."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streaming.common.rows import SEGMENTS, TIME_UNKNOWN
from streaming.rules.group_loss import Losses, losses
from streaming.rules.retention_rule import Growth, LogFacts, RetentionRule, SegmentColumns
from tests.rules.logs import TIMES, any_log, log_facts

HOUR, DAY = 3_600_000, 86_400_000
END = 300  # of the times that a forecast is held against the rule at


def forecast(log: LogFacts, offset: int, now: int, rate: float = 0.0, first_ms: int = -1) -> Losses:
    growth = Growth(rate=np.array([rate]), active_first_ms=np.array([first_ms]))
    return losses(SegmentColumns([log]), growth, np.array([0]), np.array([offset]), now)


def deleted_up_to(log: LogFacts, now: int) -> int:
    """The end of what a check deletes, -1 for nothing, or if that is not known."""
    count = int(RetentionRule(SegmentColumns([log])).at(now).deletable[0])
    return int(SegmentColumns([log]).following[count - 1]) if count > 0 else -1


@st.composite
def growing(draw: st.DrawFn) -> tuple[LogFacts, int, int]:
    """A log with any times, some of them perhaps not known, its bytes a millisecond, and the first time in its active segment."""
    log = draw(any_log(("delete", "compact,delete", "compact", "")))
    segments = log.segments.copy()
    segments["largest_timestamp"][draw(st.lists(st.integers(0, len(segments) - 1), max_size=1))] = TIME_UNKNOWN
    limits = replace(log.limits, segment_bytes=draw(st.integers(1, 40)), segment_ms=draw(st.integers(1, 60)), check_interval_ms=0)
    return replace(log, segments=segments, limits=limits), draw(st.integers(0, 3)), draw(st.one_of(st.just(-1), TIMES))


@given(growing(), TIMES)
def test_what_a_check_deletes_now_is_lost_now(drawn, now):
    log, rate, first_ms = drawn
    end = deleted_up_to(log, now)
    if not log.limits.remote_storage and log.limits.deletes:
        for offset in range(log.log_start_offset, end):
            found = forecast(log, offset, now, rate * 1000.0, first_ms)
            assert 0 <= found.at_ms[0] <= now
            assert found.first_end[0] >= end


class Grown:
    """A log as it is forecast to be: as many bytes and one record a millisecond, stamped as far behind the clock as its newest record."""

    def __init__(self, log: LogFacts, rate: int, first_ms: int, now: int) -> None:
        self.log, self.rate, self.now = log, rate, now
        base, self.size, recorded, modified = log.segments[-1].tolist()
        self.largest = recorded if recorded >= 0 else modified
        self.behind = max(now - self.largest, 0)
        begun = first_ms + self.behind if first_ms >= 0 and self.size else now
        self.followed = log.high_watermark > base
        self.rolled = next(
            at
            for at in range(now, now + 200)
            if self.size + rate * (at - now) >= log.limits.segment_bytes or at - begun >= log.limits.roll_ms
        )

    def at(self, then: int) -> LogFacts:
        if not self.rate or then == self.now:
            return self.log
        until = min(then, self.rolled)
        segments = self.log.segments.tolist()
        known = segments[-1][2] != TIME_UNKNOWN
        if until > self.now:
            newest = max(self.largest, until - self.behind) if known else TIME_UNKNOWN
            segments[-1] = (segments[-1][0], self.size + self.rate * (until - self.now), newest, until)
        if then > self.rolled:
            rolled_at = self.log.log_end_offset + self.rolled - self.now
            segments.append((rolled_at, self.rate * (then - self.rolled), then - self.behind, then))
        end = self.log.log_end_offset + then - self.now
        return replace(
            self.log,
            segments=np.array(segments, SEGMENTS),
            log_end_offset=end,
            high_watermark=end if self.followed else self.log.high_watermark,
        )


@given(growing(), TIMES, st.data())
def test_a_forecast_is_the_rule_of_the_log_whether_it_grows_or_not_whichever_comes_first(drawn, now, data):
    log, rate, first_ms = drawn
    if log.log_start_offset >= log.log_end_offset or not log.segments["size"][-1]:
        return
    if log.high_watermark > log.segments["base_offset"][-1]:
        log = replace(log, high_watermark=log.log_end_offset)
    offset = data.draw(st.integers(log.log_start_offset, log.log_end_offset - 1))
    found = forecast(log, offset, now, rate * 1000.0, first_ms)
    every = Grown(log, rate, first_ms, now), Grown(log, 0, first_ms, now)
    moments = (then for then in range(now, now + END) if any(offset < deleted_up_to(each.at(then), then) for each in every))
    first = next(moments, -1) if log.limits.deletes else -1
    if found.silent_ms[0] >= 0:
        assert found.at_ms[0] + log.limits.check_interval_ms == found.latest_ms[0], "surely written to, so it goes as a log that grows"
        found = replace(found, at_ms=found.silent_ms)
    expected = max(int(found.at_ms[0]), now) if found.at_ms[0] >= 0 else -1
    if (log.segments["largest_timestamp"] == TIME_UNKNOWN).any():  # one of the two may not know it, or only later
        assert -1 in (first, expected) or first >= expected
    else:
        assert first == expected
        assert not expected >= 0 or rate or found.first_end[0] == deleted_up_to(log, first)


def late(behind: int, limit: int, now: int, first_behind: int = -1) -> int:
    """When the first record of a log goes that goes on to grow by 1 kB a second, with stamps so far behind."""
    log = log_facts([(0, 4096, now - behind, now)], retention_ms=limit)
    found = forecast(log, 0, now, 1000.0, now - first_behind if first_behind >= 0 else -1)
    silent_ms = found.silent_ms if found.silent_ms[0] >= 0 else found.at_ms
    assert silent_ms[0] == now - behind + limit + 1, "whoever appends may stop"
    return int(found.latest_ms[0]) - log.limits.check_interval_ms


def test_stamps_that_are_late_by_more_than_the_limit_are_due_as_long_as_they_come() -> None:
    now = 1000 * DAY
    for behind, limit in ((2 * DAY, DAY), (90 * 60_000, HOUR), (8 * DAY, 7 * DAY)):
        for first_behind in (behind + 1000, -1):
            assert late(behind, limit, now, first_behind) <= now


def test_stamps_that_are_late_by_less_than_the_limit_go_when_the_segment_is_rolled_and_old() -> None:
    now = 1000 * DAY
    # the roll comes a week after the first record, by the stamps; then the newest is half a day old, and goes when it is a day
    assert late(DAY // 2, DAY, now, DAY // 2 + HOUR) == now + 7 * DAY - HOUR + DAY // 2 + 1
    assert late(DAY // 2, DAY, now) == now + 7 * DAY + DAY // 2 + 1  # rolled just now, for all that is known


def test_a_stamp_ahead_of_the_clock_does_not_move_on_with_it() -> None:
    now = 1000 * DAY
    assert late(-30 * DAY, DAY, now, HOUR) == now + 31 * DAY + 1
    assert late(-HOUR, DAY, now, HOUR) == now - HOUR + 8 * DAY + 1


def test_a_loss_is_between_the_earliest_check_and_the_one_after_it() -> None:
    log = log_facts([(0, 10, 50, 50), (10, 10, 60, 60), (20, 10, 80, 80)], retention_ms=100)
    log = replace(log, limits=replace(log.limits, check_interval_ms=12))
    for now, expected in ((60, (151, 163, 10, 20)), (155, (151, 167, 10, 20)), (165, (151, 177, 20, 20)), (170, (151, 182, 20, 30))):
        found = forecast(log, 3, now)
        assert (found.at_ms[0], found.latest_ms[0], found.first_end[0], found.last_end[0]) == expected


@given(growing(), TIMES)
def test_the_next_deletion_of_a_log_is_the_loss_of_its_first_offset(drawn, now):
    """The lists of partitions and those of groups tell of one deletion, with the limit that makes it."""
    log, rate, first_ms = drawn
    logs = SegmentColumns([log])
    growth = Growth(rate=np.array([rate * 1000.0]), active_first_ms=np.array([first_ms]))
    found = RetentionRule(logs).at(now, growth=growth)
    lost = forecast(log, int(log.segments["base_offset"][0]), now, rate * 1000.0, first_ms)
    if lost.at_ms[0] > 0 and log.segments["size"][0] and log.segments["largest_timestamp"][0] != TIME_UNKNOWN:
        assert (int(found.next_deletion[0]), bool(found.next_by_size[0])) == (int(lost.at_ms[0]), bool(lost.by_size[0]))
