"""Scans by headers alone: the same as a scan of the bytes, or none."""

import os
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.broker.disk.opening import bytes_read
from streaming.broker.disk.scanning import scan_headers_on, scan_on, window
from streaming.broker.disk.segment_files import LARGE_BYTES, OpenSegment
from streaming.kafka.formats.layout import HEADER_BYTES
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.pieces import Scanned
from streaming.kafka.scan.walk import Stop
from streaming.simulator.log import PartitionLog
from tests.builders import batch, commit, log_dir, partition
from tests.scratch import scratch

BUFFER = window()
LARGE = LARGE_BYTES + 100
LOG = "00000000000000000000.log"


def shown(scanned: Scanned) -> tuple[object, ...]:
    columns = [getattr(scanned.batches, each.name).tolist() for each in fields(Batches)]
    return scanned.end, scanned.stop, scanned.flaw, scanned.sums, columns


@pytest.fixture(autouse=True)
def cached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not every file system says what is in the page cache."""
    monkeypatch.setattr(OpenSegment, "_cached", lambda *_: True)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(1, 3), st.integers(4, 30_000)), min_size=1, max_size=12), st.integers(0, 1000), st.integers(0, 1000))
def test_it_finds_what_a_scan_of_the_bytes_finds(sizes: list[tuple[int, int]], permille: int, cut: int) -> None:
    """``permille`` of the log are the window, and the last bytes of the file may not be written yet."""
    with scratch() as name, pytest.MonkeyPatch.context() as patched:
        patched.setattr(OpenSegment, "_cached", lambda *_: True)
        log = partition(log_dir(Path(name)), "t", segment_bytes=1 << 30)
        log.append(batch(1, value_bytes=LARGE), *(batch(records, value_bytes=size) for records, size in sizes))
        entries, path = log.active.entries, log.directory / LOG
        log.close()
        written = path.stat().st_size - cut
        with path.open("r+b") as file:
            file.truncate(written)
        size = max(HEADER_BYTES, written * permille // 1000)
        opened = OpenSegment(path, 0)
        try:
            found, expected = scan_headers_on(opened, 0, 0, size, plain=True), scan_on(opened, 0, 0, BUFFER[:size])
        finally:
            opened.close()
        if found is not None:
            assert shown(found) == shown(expected)
            return
        half_a_header = size >= written and 0 < written - expected.end < HEADER_BYTES
        assert entries[0].size > min(size, written) or half_a_header


@pytest.fixture
def large(tmp_path: Path) -> Iterator[PartitionLog]:
    """A log of large batches."""
    log = partition(log_dir(tmp_path), "t", segment_bytes=1 << 30)
    log.append(*[batch(2, value_bytes=LARGE)] * 8)
    yield log
    log.close()


def by_headers(log: PartitionLog, *, plain: bool = True) -> Scanned | None:
    opened = OpenSegment(log.directory / LOG, 0)
    try:
        return scan_headers_on(opened, 0, 0, len(BUFFER), plain=plain)
    finally:
        opened.close()


def test_of_large_batches_the_bytes_count_as_read(large: PartitionLog) -> None:
    before = bytes_read()
    found = by_headers(large)
    assert found is not None
    assert (found.stop, found.end, bytes_read() - before) == (Stop.END, large.active.size, large.active.size)


def _damage(log: PartitionLog) -> None:
    log.append(batch(value_bytes=LARGE), base_offset=3)


@pytest.mark.parametrize(
    "surprise",
    [
        pytest.param(lambda log: log.append(batch(producer=1, transactional=True, value_bytes=LARGE)), id="a transaction"),
        pytest.param(lambda log: log.append(commit(1)), id="a marker"),
        pytest.param(lambda log: log.append(*[batch()] * 60), id="many small batches"),
        pytest.param(_damage, id="an offset that was there before"),
    ],
)
def test_what_is_anything_else_has_to_be_scanned(large: PartitionLog, surprise: Callable[[PartitionLog], None]) -> None:
    before = bytes_read()
    surprise(large)
    assert by_headers(large) is None
    assert bytes_read() == before


def test_a_file_that_may_be_preallocated_is_scanned_at_its_end(large: PartitionLog) -> None:
    assert by_headers(large, plain=False) is None


def test_small_batches_are_scanned(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "t")
    log.append(batch(), batch(value_bytes=LARGE))
    assert by_headers(log) is None
    log.close()


@pytest.mark.parametrize("known", [False, None])
def test_what_is_not_known_to_be_in_the_page_cache_is_read_whole(
    large: PartitionLog, monkeypatch: pytest.MonkeyPatch, known: bool | None
) -> None:
    monkeypatch.setattr(OpenSegment, "_cached", lambda *_: known)
    assert by_headers(large) is None


def test_before_anything_is_read_the_page_cache_is_asked(large: PartitionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read, however small, may bring in megabytes, which then seem to be there for somebody else."""
    monkeypatch.setattr(OpenSegment, "_cached", lambda *_: False)
    monkeypatch.setattr(os, "pread", lambda *_: pytest.fail("bytes are read"))
    assert by_headers(large) is None


def test_a_batch_that_goes_on_behind_the_window_is_left(large: PartitionLog) -> None:
    opened, first = OpenSegment(large.directory / LOG, 0), large.active.entries[0].size
    try:
        found = scan_headers_on(opened, 0, 0, 2 * first + 1, plain=False)
        assert found is not None
        assert (found.end, found.stop, np.diff(found.batches.positions).tolist()) == (2 * first, Stop.SHORT, [first])
        assert scan_headers_on(opened, 0, 0, first - 1, plain=False) is None
    finally:
        opened.close()
