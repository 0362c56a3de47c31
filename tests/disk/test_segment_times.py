"""The times of segments, read cheaply, against the inventory that opens every one of them."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.broker.disk.dir_usage import read_usage
from streaming.broker.disk.log_inventory import Inventory
from streaming.broker.disk.logdirs import list_partitions, open_log_dirs
from streaming.broker.disk.segment_times import LogTimes, SegmentTimes
from streaming.common.rows import TIME_UNKNOWN
from tests.builders import NOW, batch, log_dir, partition


def read(path: Path, name: str = "t-0") -> LogTimes:
    return SegmentTimes().of_log(f"{path}/{name}", read_usage(path).segments)


def check(path: Path) -> LogTimes:
    (opened,) = open_log_dirs([path])
    (there,) = list_partitions(opened)
    slow = Inventory(thorough=True).look(there)
    assert slow is not None
    quick = read(path)
    assert quick.largest.tolist() == slow.segments["largest_timestamp"].tolist()
    assert (quick.end_offset, quick.active_first_ms) == (slow.end_offset, slow.active_first_ms)
    assert quick.active_bytes == int(slow.segments["size"][-1])
    return quick


APPENDS = st.lists(st.tuples(st.integers(0, 50_000), st.integers(1, 4), st.booleans()), min_size=1, max_size=60)


@settings(max_examples=60)
@given(APPENDS, st.booleans(), st.sampled_from([200, 4096]))
def test_quick_times_are_those_of_the_inventory(tmp_path_factory, appends, preallocate, interval):
    disk = log_dir(tmp_path_factory.mktemp("d"))
    log = partition(disk, "t", preallocate=preallocate, index_interval_bytes=interval)
    for later, records, rolls in appends:
        log.append(batch(records, timestamp=NOW + later, value_bytes=400))
        if rolls:
            log.roll()
    check(disk.path)


def test_the_first_batch_of_a_log_is_that_of_its_first_segment_with_one(tmp_path: Path) -> None:
    """Compaction may take all records of a segment, and leaves it empty."""
    disk = log_dir(tmp_path)
    log = partition(disk, "t")
    for hour in range(3):
        log.append(batch(3, timestamp=NOW + 1000 * hour))
        log.roll()
    (disk.path / "t-0" / f"{0:020}.log").write_bytes(b"")
    assert read(disk.path).first_ms == NOW + 1000 + 2


def test_a_missing_time_index_has_its_segment_scanned_while_a_budget_lasts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, "t")
    for hour in range(3):
        log.append(batch(3, timestamp=NOW + hour))
        log.roll()
    for index in disk.path.glob("t-0/*.timeindex"):
        index.unlink()
    assert check(disk.path).largest.tolist()[:-1] == [NOW + 2, NOW + 3, NOW + 4]
    monkeypatch.setattr("streaming.broker.disk.segment_times._SCAN_BYTES", 500)
    times = SegmentTimes()
    largest = times.of_log(f"{disk.path}/t-0", read_usage(disk.path).segments).largest.tolist()
    assert (largest[0], largest[1:3], times.undated) == (NOW + 2, [TIME_UNKNOWN, TIME_UNKNOWN], 2)


def test_an_active_segment_that_ends_in_garbage_ends_there(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, "t")
    log.append(batch(3))
    whole = read(disk.path)
    with (disk.path / "t-0" / f"{0:020}.log").open("ab") as file:
        file.write(b"\xff" * 100)
    found = read(disk.path)
    assert (found.end_offset, found.active_bytes, found.largest.tolist()) == (whole.end_offset, whole.active_bytes, whole.largest.tolist())


def test_a_batch_that_is_not_all_there_yet_does_not_count(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, "t")
    log.append(batch(3))
    whole = read(disk.path)
    log.append(batch(3, timestamp=NOW + 1000))
    os.truncate(disk.path / "t-0" / f"{0:020}.log", log.active.size - 1)
    found = read(disk.path)
    assert (found.end_offset, found.active_bytes, found.largest.tolist()) == (whole.end_offset, whole.active_bytes, whole.largest.tolist())


def test_a_stale_index_of_an_active_segment_is_not_believed(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, "t", index_interval_bytes=100)
    for n in range(20):
        log.append(batch(2, timestamp=NOW + n))
    expected = check(disk.path)
    index = disk.path / "t-0" / f"{0:020}.index"
    data = bytearray(index.read_bytes())
    data[4:8] = (7).to_bytes(4, "big")
    for at in range(0, len(data) - 8, 8):
        if any(data[at : at + 8]):
            data[at + 4 : at + 8] = (13 + at).to_bytes(4, "big")
    index.write_bytes(bytes(data))
    found = read(disk.path)
    assert (found.end_offset, found.largest.tolist()) == (expected.end_offset, expected.largest.tolist())
