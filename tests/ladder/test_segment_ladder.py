"""The ladder of a segment in storage, and what thinning leaves of it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.broker.ladder.counts import Aborted, Pending
from streaming.broker.ladder.log_ladder import ActiveLadder
from streaming.broker.ladder.segment_ladder import RUNGS, SegmentLadder
from streaming.errors import FormatError
from streaming.kafka.formats.segment_indexes import ABORTED
from streaming.kafka.scan.headers import Batches, read_headers
from tests.builders import NOW, batch
from tests.formats.segments import written

longs = st.integers(0, 2**62)
pending = st.builds(
    lambda producer, items: Pending(
        producer, items[0][0], np.array([end for end, _ in items], np.int64), np.array([count for _, count in items], np.int64)
    ),
    longs,
    st.lists(st.tuples(longs, st.integers(0, 2**31)), min_size=1, max_size=4),
)
ladders = st.builds(
    SegmentLadder,
    longs,
    st.lists(st.tuples(st.integers(-1, 2**62), *[st.integers(0, 2**32 - 1)] * 5), max_size=5).map(lambda rows: np.array(rows, RUNGS)),
    st.lists(pending, max_size=3).map(tuple),
    st.text(max_size=20),
    st.booleans(),
    st.integers(-1, 2**62),
)


@given(ladders)
def test_what_is_packed_is_unpacked(ladder: SegmentLadder) -> None:
    found = SegmentLadder.unpack(ladder.pack())
    assert (found.base_offset, found.damage) == (ladder.base_offset, ladder.damage)
    assert (found.cut, found.sound_from) == (ladder.cut, ladder.sound_from)
    assert found.rungs.tobytes() == ladder.rungs.tobytes()
    assert [(one.producer_id, one.first_offset, one.ends.tolist(), one.records.tolist()) for one in found.pending] == [
        (one.producer_id, one.first_offset, one.ends.tolist(), one.records.tolist()) for one in ladder.pending
    ]


@given(ladders, st.data())
def test_damaged_bytes_are_refused(ladder: SegmentLadder, data: st.DataObject) -> None:
    packed = bytearray(ladder.pack())
    place = data.draw(st.integers(0, len(packed) - 1))
    packed[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(FormatError):
        SegmentLadder.unpack(bytes(packed))
    with pytest.raises(FormatError):
        SegmentLadder.unpack(ladder.pack()[:place])


def one_batch(offset: int, records: int = 1) -> Batches:
    content = written([batch(records)], base_offset=offset)
    return read_headers(content.buffer, np.zeros(1, np.int64))


@given(st.lists(st.integers(0, 4_000_000) | st.integers(0, 2_000), min_size=1, max_size=400))
def test_thinning_keeps_times_within_a_twentieth_of_their_age(pauses: list[int]) -> None:
    ladder, now, true = ActiveLadder(0, {}), NOW, []
    for pause in pauses:
        now += pause
        true.append(now)
        ladder.append(one_batch(len(true) - 1), now)
    found = ladder.closed(now)
    seen = [int(found.rungs["seen_ms"][found.stretch_of(offset)]) for offset in range(len(true))]
    assert all(0 <= one - exact <= max(5_000, 0.05 * (now - exact)) for one, exact in zip(seen, true, strict=True))
    assert found.totals.data == len(true)
    assert len(ladder.rungs) <= len(true)


def test_old_appends_have_few_rungs() -> None:
    ladder = ActiveLadder(0, {})
    for offset in range(20_000):  # one a second, for five and a half hours
        ladder.append(one_batch(offset), NOW + 1_000 * offset)
    assert len(ladder.closed(NOW + 20_000_000).rungs) < 300


def test_pending_data_that_was_aborted_is_settled() -> None:
    ladder = ActiveLadder(100, {})
    content = written([batch(2, producer=7, transactional=True), batch(1), batch(1, producer=8, transactional=True)], base_offset=100)
    ladder.append(read_headers(content.buffer, np.array(content.positions)))
    aborted = Aborted(np.array([(0, 7, 100, 110, 111), (0, 8, 50, 60, 61)], ABORTED))
    settled = ladder.frozen().settled(aborted)
    assert settled.totals.aborted == 2
    assert [one.producer_id for one in settled.pending] == [8]
