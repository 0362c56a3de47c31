"""Between which times a record was appended, for whoever watches a log: what was seen around it narrows what its files show."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from streaming.broker.disk.scanning import window
from streaming.broker.ladder.log_ladder import LadderView
from streaming.broker.ladder.positions import Position, count_log, positions
from streaming.simulator.log import PartitionLog
from tests.builders import NOW, batch, log_dir, partition
from tests.file_times import written_at
from tests.ladder.logs import listed

HOUR = 3_600_000
DAY = 24 * HOUR


@pytest.fixture(autouse=True)
def _a_stretch_for_each_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streaming.broker.ladder.segment_ladder.RUNG_BYTES", 1)


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    return partition(log_dir(tmp_path), "orders")


def watched(log: PartitionLog, seen_ms: list[int], *offsets: int) -> list[Position]:
    """Positions by a ladder whose stretches were seen at these times, -1 where they were not; the last segment has all of them."""
    counted = count_log(listed(log), 0, window())
    last = counted.ladder.segments[-1]
    rungs = last.rungs.copy()
    rungs["seen_ms"] = np.array(seen_ms)
    view = LadderView("e", (*counted.ladder.segments[:-1], replace(last, rungs=rungs)), counted.ladder.before, counted.ladder.aborted)
    return positions(listed(log), view, offsets, log.log_end_offset, now_ms=NOW)


def bounds(position: Position) -> tuple[int, int, int]:
    return position.next_append_ms, position.next_earliest_ms, position.next_latest_ms


@pytest.mark.parametrize("stamp_ms", [NOW - DAY, NOW + DAY, -1])
def test_what_was_not_seen_came_before_what_was_and_after_what_was_seen_before(log: PartitionLog, stamp_ms: int) -> None:
    for _ in range(4):
        log.append(batch(1, timestamp=stamp_ms))
    written_at(log, NOW - 1_000)
    first, second, third, fourth = watched(log, [-1, NOW - 3 * HOUR, -1, NOW - HOUR], 0, 1, 2, 3)
    assert bounds(first)[2] == NOW - 3 * HOUR
    assert bounds(second) == (NOW - 3 * HOUR, -1, -1)
    assert bounds(third) == (-1, NOW - 3 * HOUR, NOW - HOUR)
    assert bounds(fourth) == (NOW - HOUR, -1, -1)


def test_a_stamp_is_believed_where_what_was_seen_agrees_with_its_own(log: PartitionLog) -> None:
    """The file was written a moment ago, and the ladder is behind it."""
    for ago in (2 * HOUR, HOUR):
        log.append(batch(1, timestamp=NOW - ago))
    written_at(log, NOW)
    (right,) = watched(log, [-1, NOW - HOUR + 500], 0)
    (wrong,) = watched(log, [-1, NOW], 0)
    assert bounds(right) == (-1, NOW - 2 * HOUR, NOW - 2 * HOUR)
    assert bounds(wrong)[2] == NOW
    assert bounds(wrong)[1] < NOW - 2 * HOUR


def test_it_is_not_looked_up_unless_that_is_asked(log: PartitionLog) -> None:
    log.append(batch(1, timestamp=NOW - HOUR))
    (position,) = count_log(listed(log), 0, window()).positions([0], 1)
    assert bounds(position) == (-1, -1, -1)
