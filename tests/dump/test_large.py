"""Segments of many windows, which threads walk ahead: the same as one after the other, whatever the index says."""

from pathlib import Path

import numpy as np
import pytest

from streaming.disk.files import find_files
from streaming.dump import ahead, segment
from streaming.dump.finding import Finding
from streaming.dump.segment import SegmentReader
from tests.builders import batch
from tests.dump.writing import batch_positions, damage, log_of, segment_name

SEGMENT = segment_name()


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A segment of some forty parts."""
    monkeypatch.setattr(segment, "PART_BYTES", 2000)
    monkeypatch.setattr(segment, "SEEDED_BYTES", 0)
    monkeypatch.setattr(segment, "WINDOW_BYTES", 4000)
    monkeypatch.setattr(segment, "processors", lambda: 2)
    monkeypatch.setattr(ahead, "processors", lambda: 2)
    return log_of(tmp_path, [batch(2) for _ in range(300)])


def positions_of(log: Path, *, whole: bool = False) -> tuple[list[int], list[Finding]]:
    findings: list[Finding] = []
    (file,) = (file for file in find_files(log) if file.path.name == SEGMENT)
    reader = SegmentReader(file, findings.append, np.empty(4000, np.uint8), whole=whole, ticks=lambda _: None)
    try:
        return [window.position + at for window in reader.windows(0) for at in window.batches.positions.tolist()], findings
    finally:
        reader.close()


def test_all_batches_are_found_once_and_in_order(log: Path) -> None:
    assert positions_of(log) == (batch_positions(log / SEGMENT), [])
    assert positions_of(log, whole=True) == (batch_positions(log / SEGMENT), [])


@pytest.mark.parametrize("extension", [".index"])
@pytest.mark.parametrize("step", [1, 7, 64])
def test_an_index_that_is_wrong_everywhere_changes_nothing(log: Path, extension: str, step: int) -> None:
    index = (log / SEGMENT).with_suffix(extension)
    entries = np.frombuffer(index.read_bytes(), ">i4").reshape(-1, 2).copy()
    entries[:, 1] += step
    index.write_bytes(entries.tobytes())
    assert positions_of(log) == (batch_positions(log / SEGMENT), [])


@pytest.mark.parametrize("item", [0, 1, 150, 298, 299])
def test_damage_is_told_as_one_after_the_other_tells_it(log: Path, item: int) -> None:
    position = batch_positions(log / SEGMENT)[item]
    damage(log / SEGMENT, position + 16, b"\x09")
    found, findings = positions_of(log)
    assert (found, findings) == positions_of(log, whole=True)
    assert [finding.position for finding in findings] == [position]


def test_what_goes_wrong_in_a_thread_is_raised_where_the_windows_are_read() -> None:
    def walk_part(_start: int, _end: int) -> ahead.Part:
        raise OSError(5, "Input/output error")

    with pytest.raises(OSError, match="Input/output"):
        list(ahead.walk_ahead([0, 1, 2], walk_part, 3))
