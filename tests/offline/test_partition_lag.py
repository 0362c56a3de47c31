"""What is left of a partition, beside counting offset by offset, and beside the arithmetic of a job."""

from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streaming.ladder.positions import Position, PositionState
from streaming.metrics.group_lag import KNOWN, Committed, Places, lags
from streaming.metrics.group_lag import Ends as EndColumns
from streaming.offline.partition_lag import Ends, offsets_of, stake_offsets, with_lag, with_loss
from streaming.protocol.group_json import GroupPartition

DATA, ABORTED, MARKER, CLEANED = "data", "aborted", "marker", "cleaned"
BYTES = 10


@dataclass(frozen=True)
class Log:
    """What is at each offset, a batch each."""

    kinds: list[str]
    ends: Ends

    def count(self, begin: int, end: int, *kinds: str) -> int:
        return sum(kind in kinds for kind in self.kinds[begin:end])

    def position(self, offset: int) -> Position:
        following = [at for at in range(offset, self.ends.high_watermark) if self.kinds[at] == DATA]
        return Position(
            offset,
            PositionState.KNOWN,
            data=self.count(0, offset, DATA, ABORTED),
            aborted=self.count(0, offset, ABORTED),
            control=self.count(0, offset, MARKER),
            bytes=BYTES * self.count(0, offset, DATA, ABORTED, MARKER),
            next_offset=following[0] if following else -1,
        )


@st.composite
def a_log(draw: st.DrawFn) -> Log:
    kinds = draw(st.lists(st.sampled_from([DATA, ABORTED, MARKER, CLEANED]), max_size=12))
    start, stable, high_watermark = sorted(draw(st.tuples(*[st.integers(0, len(kinds))] * 3)))
    # what is after the last stable offset is not known to be aborted
    kinds = [DATA if kind == ABORTED and at >= stable else kind for at, kind in enumerate(kinds)]
    return Log(kinds, Ends(log_start=start, log_end=len(kinds), high_watermark=high_watermark, last_stable=stable))


def measured(log: Log, committed: int) -> GroupPartition:
    of = GroupPartition(topic="t", partition=0, committed=committed)
    asked = set(offsets_of(of, log.ends))
    return with_lag(of, log.ends, {offset: log.position(offset) for offset in asked}.__getitem__)


@given(a_log(), st.integers(0, 14))
def test_what_is_left_is_what_lies_between(log: Log, committed: int) -> None:
    of, ends = measured(log, committed), log.ends
    if committed > ends.log_end:
        assert (of.unknown, of.lag_offsets, of.lag_records_read_committed, of.lag_bytes) == ("beyond_end", -1, -1, -1)
        return
    begin = max(committed, ends.log_start)
    assert of.lag_records_read_committed == log.count(begin, ends.last_stable, DATA)
    assert of.lag_records_read_uncommitted == log.count(begin, ends.high_watermark, DATA, ABORTED)
    assert of.lag_bytes == BYTES * log.count(begin, ends.high_watermark, DATA, ABORTED, MARKER)
    assert of.lag_offsets == max(0, ends.high_watermark - committed)
    assert of.lost_offsets == max(0, ends.log_start - committed)
    assert of.lost_records == log.count(committed, ends.log_start, DATA)
    assert of.held == (of.lag_records_read_committed == 0 and of.next_offset >= 0)


@given(a_log(), st.integers(0, 14), st.integers(0, 14))
def test_what_is_at_stake_is_what_lies_before_the_end_of_the_loss(log: Log, committed: int, end: int) -> None:
    of = measured(log, committed)
    if of.next_offset < 0 or end <= of.next_offset:
        return
    asked = stake_offsets(of, end)
    of = with_loss(of, 5, end, {offset: log.position(offset) for offset in asked}.__getitem__)
    assert of.loss_ms == 5
    assert of.loss_records == log.count(of.next_offset, min(end, log.ends.high_watermark), DATA)
    assert of.loss_bytes == BYTES * log.count(of.next_offset, min(end, log.ends.high_watermark), DATA, ABORTED, MARKER)


@given(a_log(), st.integers(0, 14))
def test_a_job_computes_the_same(log: Log, committed: int) -> None:
    of, ends = measured(log, committed), log.ends
    begin = max(committed, ends.log_start)
    first, stable, last = (log.position(min(offset, ends.log_end)) for offset in (begin, ends.last_stable, ends.high_watermark))
    known = np.array([KNOWN])
    found = lags(
        Committed(**_columns(offset=committed, beyond=True, share=False, delivered=0), reason=known),
        EndColumns(
            **_columns(
                log_start=ends.log_start,
                log_end=ends.log_end,
                high_watermark=ends.high_watermark,
                last_stable=ends.last_stable,
                edition=1,
                data=last.data,
                kept=stable.data - stable.aborted,
                end_kept=last.data - last.aborted,
                bytes=last.bytes,
            ),
            reason=known,
            counted=known,
        ),
        Places(
            **_columns(
                offset=begin,
                edition=1,
                data=first.data,
                aborted=first.aborted,
                bytes=first.bytes,
                next_offset=first.next_offset,
                next_timestamp_ms=-1,
                next_append_ms=-1,
            ),
            reason=known,
        ),
    )
    job = (found.read_committed, found.read_uncommitted, found.bytes, found.offsets, found.next_offset)
    own = (of.lag_records_read_committed, of.lag_records_read_uncommitted, of.lag_bytes, of.lag_offsets, of.next_offset)
    assert tuple(int(each[0]) for each in job) == own


def _columns(**values: int) -> dict[str, np.ndarray]:
    return {name: np.array([value]) for name, value in values.items()}


def test_what_is_undecided_when_it_is_deleted_is_lost_too() -> None:
    log = Log([DATA, DATA, DATA, DATA], Ends(log_start=0, log_end=4, high_watermark=4, last_stable=2))
    of = measured(log, 1)
    at_stake = with_loss(of, 5, 4, {offset: log.position(offset) for offset in stake_offsets(of, 4)}.__getitem__)
    assert (of.lag_records_read_committed, at_stake.loss_records, at_stake.loss_bytes) == (1, 3, 3 * BYTES)
