"""Positions against every record of the log, one by one."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.broker.disk.scanning import window
from streaming.broker.ladder.counts import Aborted
from streaming.broker.ladder.positions import CountedLog, Position, PositionState, count_log, positions
from streaming.broker.ladder.stretch import OpenedBatches, Stretch
from streaming.kafka.formats.records import MAX_TIMED_BYTES
from streaming.simulator.batch_writer import Batch, Codec, Record
from streaming.simulator.log import Appendable
from tests.builders import NOW, abort, batch, commit, log_dir, partition
from tests.ladder.logs import Entry, Real, listed, parse, steps, write

BUFFER = window()


def expected(real: Sequence[Real], entries: Sequence[Entry], offset: int, upto: int, *, reads_uncommitted: bool = False) -> Position:
    """A position, the plain way."""
    before = [one for one in real if one.offset < offset]
    readable = (one for one in real if not one.control and (reads_uncommitted or not one.aborted))
    following = next((one for one in readable if offset <= one.offset < upto), None)
    holding = next((entry for entry in entries if entry.last_offset >= offset), None)
    found = Position(
        offset,
        PositionState.KNOWN,
        data=sum(not one.control for one in before),
        aborted=sum(one.aborted for one in before),
        control=sum(one.control for one in before),
        bytes=sum(entry.size for entry in entries) if holding is None else holding.bytes_before,
    )
    if following is None:
        return found
    return Position(
        found.offset,
        found.state,
        found.data,
        found.aborted,
        found.control,
        found.bytes,
        next_offset=following.offset,
        next_timestamp_ms=following.timestamp,
        next_append_ms=following.append_ms,
        next_batch_bytes=following.size,
        next_segment=following.segment,
        next_position=following.position,
    )


@pytest.fixture(autouse=True)
def _small_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streaming.broker.ladder.segment_ladder.RUNG_BYTES", 300)


@given(steps, st.data())
def test_every_offset_of_a_log_that_was_counted(
    tmp_path_factory: pytest.TempPathFactory, content: list[tuple[Appendable, int, int]], data: st.DataObject
) -> None:
    log = write(tmp_path_factory.mktemp("log"), content)
    segments = listed(log)
    real, entries = parse(segments)
    upto = data.draw(st.integers(0, log.log_end_offset))
    offsets = range(log.log_end_offset + 1)
    counted = count_log(segments, 0, BUFFER[: data.draw(st.sampled_from([200, 1_000, 1 << 20]))])
    assert counted.end_offset == log.log_end_offset
    assert counted.positions(offsets, upto) == [expected(real, entries, offset, upto) for offset in offsets]
    uncommitted = counted.positions(offsets, upto, reads_uncommitted=True)
    assert uncommitted == [expected(real, entries, offset, upto, reads_uncommitted=True) for offset in offsets]
    assert counted.positions([log.log_end_offset + 1], upto)[0].state is PositionState.BEYOND


def test_a_log_that_begins_beyond_the_numbers_of_a_rung_is_counted_as_any_other(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "t", base_offset=1 << 40)
    for epoch in range(6):
        end = (abort, commit)[epoch % 2](7, epoch=epoch)
        log.append(batch(3), batch(2, producer=7, epoch=epoch, transactional=True), end)
    segments = listed(log)
    real, entries = parse(segments)
    offsets = range(1 << 40, log.log_end_offset + 1)
    counted = count_log(segments, 1 << 40, BUFFER)
    assert counted.positions(offsets, log.log_end_offset) == [expected(real, entries, offset, log.log_end_offset) for offset in offsets]


def bombed(path: Path, *, missing: int = 0) -> CountedLog:
    """A log whose only batch has a record behind many zeros."""
    log = partition(log_dir(path), "orders")
    records = (Record(value=bytes(MAX_TIMED_BYTES + 1), timestamp=NOW), Record(value=b"v", timestamp=NOW + 5, offset_delta=1 + missing))
    log.append(Batch(records=records, codec=Codec.ZSTD))
    return count_log(listed(log), 0, BUFFER)


def test_a_time_behind_what_is_too_large_to_be_opened_is_not_known_and_nothing_else_is_missing(tmp_path: Path) -> None:
    log, opened = bombed(tmp_path), OpenedBatches()
    (found,) = positions(log.segments, log.ladder, [1], 2, opened)
    assert (found.state, found.data, found.next_offset, found.next_timestamp_ms) == (PositionState.KNOWN, 1, 1, -1)
    assert opened.refused == 1


def test_where_records_are_missing_a_batch_that_is_too_large_hides_the_position(tmp_path: Path) -> None:
    log, opened = bombed(tmp_path, missing=3), OpenedBatches()
    assert [found.state for found in positions(log.segments, log.ladder, [0, 3], 5, opened)] == [PositionState.KNOWN, PositionState.DAMAGED]
    assert opened.refused == 1


def test_nothing_is_opened_again_for_the_same_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, opened = bombed(tmp_path), OpenedBatches()
    small = partition(log_dir(tmp_path / "other"), "orders")
    small.append(Batch(records=tuple(Record(value=b"v", timestamp=NOW + at) for at in range(5)), codec=Codec.ZSTD))
    other = count_log(listed(small), 0, BUFFER)
    times, count = Stretch.record_times, Counter[int]()

    def counting(stretch: Stretch, item: int) -> Iterator[tuple[int, int]]:
        count[item] += 1
        return times(stretch, item)

    monkeypatch.setattr(Stretch, "record_times", counting)
    for _ in range(3):
        positions(log.segments, log.ladder, [1], 2, opened)
        (found,) = positions(other.segments, other.ladder, [3], 5, opened)
        assert found.next_timestamp_ms == NOW + 3
    assert count[0] == 2
    assert opened.refused == 1


def test_what_is_remembered_of_opened_batches_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streaming.broker.ladder.stretch.MOST_ANSWERS", 2)
    log, opened, asked = bombed(tmp_path), OpenedBatches(), list[int]()
    stretch = Stretch.read(log.segments[0], log.ladder.segments[0], 0, Aborted.none())
    for number in (1, 2, 3, 3, 1):
        opened.ask(stretch, 0, ("record", number), lambda number=number: (asked.append(number) or number, 0))  # type: ignore[misc]
    assert asked == [1, 2, 3, 1]
