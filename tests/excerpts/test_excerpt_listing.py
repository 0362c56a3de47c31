"""Which parts of which segments lie from a start on."""

import shutil
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.excerpts.excerpt_scan import batches_of
from streaming.broker.protocol.consumer_messages import EVERYTHING_SELECTED, Selection
from streaming.common.start_from import StartFrom
from streaming.simulator.log import PartitionLog
from tests.builders import NOW, batch, delete, log_dir, partition
from tests.excerpts.drained import drained, list_excerpts
from tests.scratch import scratch

MIB = 1 << 20


def offsets(log: PartitionLog, start: StartFrom | int, excerpt_bytes: int = MIB) -> list[int]:
    """The base offsets of all batches from a start on, in the order in which they come."""
    dirs = open_log_dirs([log.directory.parent])
    found = []
    for excerpt in list_excerpts(dirs, EVERYTHING_SELECTED, start, excerpt_bytes):
        rows, unread = drained(batches_of(dirs, excerpt))
        assert unread is None
        found += [offset for each in rows for offset in each["base_offset"].to_pylist()]
    return found


def entries(log: PartitionLog) -> list[tuple[int, int]]:
    """(base offset, largest timestamp) of all batches."""
    return [(entry.base_offset, entry.max_timestamp) for segment in log.segments for entry in segment.entries]


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(-9, 9)), min_size=1, max_size=40),
    st.sampled_from([0, 300, 1 << 20]),
    st.sampled_from([100, 700, 3000]),
    st.integers(-12, 60),
    st.booleans(),
    st.booleans(),
)
def test_a_time_is_found_with_and_without_indexes(
    counts: list[tuple[int, int]], interval: int, excerpt_bytes: int, after: int, indexed: bool, preallocate: bool
) -> None:
    """Times go up by a second a batch, more or less: a later batch may be older."""
    with scratch() as directory:
        log = partition(log_dir(Path(directory)), "t", segment_bytes=2000, index_interval_bytes=interval, preallocate=preallocate)
        for item, (count, late) in enumerate(counts):
            log.append(batch(count, timestamp=NOW + 1000 * (item + late)))
        if not indexed:
            for path in [*log.directory.glob("*.index"), *log.directory.glob("*.timeindex")]:
                path.unlink()
        time = NOW + 1000 * after
        first = next((offset for offset, largest in entries(log) if largest >= time), None)
        expected = [] if first is None else [offset for offset, _ in entries(log) if offset >= first]
        assert offsets(log, time, excerpt_bytes) == expected
        assert offsets(log, StartFrom.EARLIEST, excerpt_bytes) == [offset for offset, _ in entries(log)]


def test_starts(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "orders")
    log.append(batch(3), batch(2))
    log.roll()
    log.append(batch(1))
    assert offsets(log, StartFrom.EARLIEST) == [0, 3, 5]
    assert offsets(log, StartFrom.ACTIVE) == [5]
    assert offsets(log, StartFrom.LATEST) == []


def test_deleted_records_are_left_out(tmp_path: Path) -> None:
    """Those of a batch of which some are left are in it: a batch is on disk as a whole."""
    log = partition(log_dir(tmp_path), "orders")
    log.append(batch(3), batch(2), batch(2))
    log.roll()
    log.append(batch(1))
    checkpoint = tmp_path / "d0" / "log-start-offset-checkpoint"
    for start, expected in ((3, [3, 5, 7]), (4, [3, 5, 7]), (5, [5, 7]), (7, [7]), (8, [])):
        checkpoint.write_text(f"0\n1\norders 0 {start}\n")
        assert offsets(log, StartFrom.EARLIEST) == expected
        assert offsets(log, NOW - 1) == expected
    checkpoint.unlink()
    log.delete_records(5)
    assert offsets(log, StartFrom.EARLIEST) == [5, 7]


def test_the_excerpts_of_a_segment_join(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "orders")
    for _ in range(50):
        log.append(batch(1))
    found = list_excerpts(open_log_dirs([tmp_path / "d0"]), EVERYTHING_SELECTED, StartFrom.EARLIEST, 1000)
    assert found[0].begin == 0
    assert found[-1].end == log.active.size
    assert all(before.end == after.begin for before, after in pairwise(found))
    assert all(each.begin % 1000 == 0 and each.bytes == each.end - each.begin for each in found)


def test_the_zeros_of_a_preallocated_segment_are_nothing_to_read(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "orders", preallocate=True)
    log.append(batch(1))
    (found,) = list_excerpts(open_log_dirs([tmp_path / "d0"]), EVERYTHING_SELECTED, StartFrom.EARLIEST, MIB)
    assert found.bytes < 1000


def test_a_selection_and_logs_that_live(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    for topic, number in (("orders", 0), ("orders", 1), ("pay", 0), ("gone", 0), ("__cluster_metadata", 0)):
        log = partition(disk, topic, number)
        log.append(batch(1))
        if topic == "gone":
            delete(disk, log)
    partition(disk, "empty").append(batch(1))
    shutil.rmtree(tmp_path / "d0" / "empty-0")
    (tmp_path / "d0" / "empty-0").mkdir()

    def listed(selection: Selection) -> list[tuple[str, int]]:
        found = list_excerpts(open_log_dirs([tmp_path / "d0"]), selection, StartFrom.EARLIEST, MIB)
        return [(each.topic, each.partition) for each in found]

    assert listed(EVERYTHING_SELECTED) == [("orders", 0), ("orders", 1), ("pay", 0)]
    assert listed(Selection(topics=("orders",), partitions=(1,))) == [("orders", 1)]
    assert listed(Selection(pattern="p.*")) == [("pay", 0)]
    assert listed(Selection(pattern="__cluster.*")) == []
    assert listed(Selection(topics=("__cluster_metadata",))) == [("__cluster_metadata", 0)]


@pytest.mark.parametrize("damage", [b"", b"\xff" * 24])
def test_a_damaged_time_index_misleads_nobody(tmp_path: Path, damage: bytes) -> None:
    log = partition(log_dir(tmp_path), "orders")
    log.append(batch(1, timestamp=NOW), batch(1, timestamp=NOW + 5000))
    log.roll()
    log.append(batch(1, timestamp=NOW + 9000))
    (log.directory / "00000000000000000000.timeindex").write_bytes(damage)
    assert offsets(log, NOW + 1) == [1, 2]
