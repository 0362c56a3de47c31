"""Positions against every record of the log, one by one."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.disk.scanning import window
from streaming.ladder.count_log import count_log
from streaming.ladder.positions import Position, PositionState
from streaming.simulator.log import Appendable
from tests.builders import abort, batch, commit, log_dir, partition
from tests.ladder.logs import Entry, Real, listed, parse, steps, write

BUFFER = window()


def expected(real: Sequence[Real], entries: Sequence[Entry], offset: int, upto: int) -> Position:
    """A position, the plain way."""
    before = [one for one in real if one.offset < offset]
    following = next((one for one in real if offset <= one.offset < upto and not one.control and not one.aborted), None)
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
    monkeypatch.setattr("streaming.ladder.rung_builder.RUNG_BYTES", 300)


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
