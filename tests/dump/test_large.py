"""Segments of many windows, which other processes walk ahead: the same as one after the other, whatever the index says."""

import os
import signal
import struct
import threading
import zlib
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from streaming.broker.disk import segment_walk
from streaming.broker.disk.kafka_files import find_files
from streaming.broker.disk.segment_walk import FormatFlaw, SegmentReader
from streaming.kafka.scan.walk import Positions
from tests.builders import NOW, batch
from tests.dump.writing import batch_positions, damage, log_of, segment_name

SEGMENT = segment_name()


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small parts, and processors to walk them."""
    monkeypatch.setattr(segment_walk, "PART_BYTES", 2000)
    monkeypatch.setattr(segment_walk, "SEEDED_BYTES", 0)
    monkeypatch.setattr(segment_walk, "WINDOW_BYTES", 4000)
    monkeypatch.setattr(segment_walk, "processors", lambda: 2)
    monkeypatch.setattr(segment_walk, "processors", lambda: 2)


@pytest.fixture
def log(tmp_path: Path, parts: None) -> Path:
    """A segment of some forty parts."""
    return log_of(tmp_path, [batch(2) for _ in range(300)])


@dataclass
class Found:
    positions: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    wrong: list[int] = field(default_factory=list)
    findings: list[FormatFlaw] = field(default_factory=list)
    ahead: int = 0
    """Windows that another process found."""


def found_in(log: Path, *, whole: bool = False) -> Found:
    found = Found()
    (file,) = (file for file in find_files(log) if file.path.name == SEGMENT)
    with SegmentReader(file, found.findings.append, np.empty(4000, np.uint8), whole=whole, crcs=True, ticks=lambda _: None) as reader:
        for window in reader.windows(0):
            positions = window.batches.positions + window.position
            found.positions += positions.tolist()
            found.offsets += window.batches.last_offset.tolist()
            found.wrong += positions[window.wrong].tolist()
            found.ahead += not len(window.buffer)
    return found


def test_all_batches_are_found_once_and_in_order_by_other_processes(log: Path) -> None:
    found, alone = found_in(log), found_in(log, whole=True)
    assert found.positions == alone.positions == batch_positions(log / SEGMENT)
    assert found.offsets == alone.offsets
    assert (found.findings, found.wrong) == ([], [])
    assert found.ahead > 20
    assert alone.ahead == 0


def test_old_messages_are_reported_by_all_of_their_bytes(tmp_path: Path, parts: None) -> None:
    log = tmp_path / "t-0"
    log.mkdir()
    messages = [old_message(offset) for offset in range(600)]
    (log / SEGMENT).write_bytes(b"".join(messages))
    entries = [(offset, offset * len(messages[0])) for offset in range(10, 600, 10)]
    (log / SEGMENT).with_suffix(".index").write_bytes(np.array(entries, ">i4").tobytes())
    found = found_in(log)
    assert (found.wrong, found.findings) == ([], [])
    assert found.offsets == list(range(600))
    assert found.ahead > 5


@pytest.mark.parametrize("step", [1, 7, 64])
def test_an_index_that_is_wrong_everywhere_changes_nothing(log: Path, step: int) -> None:
    index = (log / SEGMENT).with_suffix(".index")
    entries = np.frombuffer(index.read_bytes(), ">i4").reshape(-1, 2).copy()
    entries[:, 1] += step
    index.write_bytes(entries.tobytes())
    assert found_in(log).positions == batch_positions(log / SEGMENT)


def test_an_index_that_ends_early_changes_nothing(log: Path) -> None:
    index = (log / SEGMENT).with_suffix(".index")
    index.write_bytes(index.read_bytes()[:80])
    assert found_in(log).positions == batch_positions(log / SEGMENT)


@pytest.mark.parametrize("item", [0, 1, 150, 298, 299])
def test_damage_is_reported_as_one_after_the_other_shows_it(log: Path, item: int) -> None:
    position = batch_positions(log / SEGMENT)[item]
    damage(log / SEGMENT, position + 16, b"\x09")
    found, alone = found_in(log), found_in(log, whole=True)
    assert (found.positions, found.findings) == (alone.positions, alone.findings)
    assert [finding.position for finding in found.findings] == [position]


@pytest.mark.parametrize("item", [0, 1, 150, 298, 299])
def test_a_wrong_crc_is_found_in_every_part(log: Path, item: int) -> None:
    position = batch_positions(log / SEGMENT)[item]
    damage(log / SEGMENT, position + 70, b"\xff")
    assert found_in(log).wrong == [position]


@pytest.mark.parametrize("number", [0, 1, 7])
def test_where_a_process_ends_early_the_reader_goes_on_alone(log: Path, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    walk_part, end = SegmentReader._walk_part, (log / SEGMENT).stat().st_size * number // 10

    def killed_at(self: SegmentReader, seeds: Positions, start: int, stop: int) -> segment_walk.Part:
        if start <= end < stop:
            os.kill(os.getpid(), signal.SIGKILL)
        return walk_part(self, seeds, start, stop)

    monkeypatch.setattr(SegmentReader, "_walk_part", killed_at)
    found = found_in(log)
    assert (found.positions, found.findings) == (batch_positions(log / SEGMENT), [])
    assert (found.ahead > 0) == (number > 0)


def test_without_more_processes_the_reader_goes_on_alone(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_fork() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", no_fork)
    assert found_in(log).positions == batch_positions(log / SEGMENT)


def test_a_reader_that_wants_no_more_leaves_no_process_behind(log: Path) -> None:
    (file,) = (file for file in find_files(log) if file.path.name == SEGMENT)
    others = children()
    with SegmentReader(file, lambda _: None, np.empty(4000, np.uint8), whole=False, crcs=False, ticks=lambda _: None) as reader:
        windows = reader.windows(0)
        assert isinstance(windows, Generator)
        next(windows)
        assert children() - others
        windows.close()
    assert not children() - others


def old_message(offset: int) -> bytes:
    """One of magic 1, with a value and no key."""
    checked = struct.pack(">bbqii3s", 1, 0, NOW, -1, 3, b"abc")
    return struct.pack(">qiI", offset, 4 + len(checked), zlib.crc32(checked)) + checked


def children() -> set[str]:
    return set(Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text().split())
