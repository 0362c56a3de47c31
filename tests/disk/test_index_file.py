"""What an index names, read from its file."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.broker.disk.index_file import last_entry_below, last_entry_upto, positions_between
from streaming.broker.disk.segment_files import OpenSegment
from streaming.simulator.log import PartitionLog
from tests.builders import batch, log_dir, partition


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> PartitionLog:
    """One segment of 30 batches of two records, base offset 100; all but the first are indexed. The index is preallocated."""
    made = partition(log_dir(tmp_path_factory.mktemp("index")), "t", base_offset=100, index_interval_bytes=0)
    made.append(*[batch(2)] * 30)
    return made


def index_of(log: PartitionLog) -> Path:
    return log.active.path("index")


@given(st.data())
def test_positions_in_a_range(log: PartitionLog, draw: st.DataObject) -> None:
    start = draw.draw(st.integers(0, log.active.size + 10))
    end = draw.draw(st.integers(start, log.active.size + 10))
    expected = [position for position in log.active.positions[1:] if start <= position < end]
    assert positions_between(index_of(log), start, end)[0].tolist() == expected


@given(st.data())
def test_one_range_after_the_other_wherever_the_look_before_ended(log: PartitionLog, draw: st.DataObject) -> None:
    near = draw.draw(st.integers(0, 60))
    for _ in range(3):
        start = draw.draw(st.integers(0, log.active.size + 10))
        end = draw.draw(st.integers(start, log.active.size + 10))
        expected, _ = positions_between(index_of(log), start, end)
        found, near = positions_between(index_of(log), start, end, near)
        assert found.tolist() == expected.tolist()


@given(st.integers(-5, 70))
def test_the_last_entry_below_an_offset(log: PartitionLog, offset: int) -> None:
    entries = [(entry.last_offset - 100, position) for entry, position in zip(log.active.entries, log.active.positions, strict=True)][1:]
    below = [entry for entry in entries if entry[0] < offset]
    assert last_entry_below(index_of(log), offset) == (below[-1] if below else None)
    file = OpenSegment(log.active.path("log"), 100)
    assert file.indexed(100 + offset) == ((below[-1][0] + 100, below[-1][1]) if below else None)
    file.close()


def test_the_last_entry_of_all(log: PartitionLog) -> None:
    assert last_entry_below(index_of(log), None) == (59, log.active.positions[-1])


def test_more_entries_than_are_read_at_once(tmp_path: Path) -> None:
    path, count = tmp_path / "00000000000000000000.index", 20_000
    entries = np.arange(1, count + 1)
    path.write_bytes(np.stack([entries, entries * 100], 1).astype(">i4").tobytes() + bytes(80))
    assert positions_between(path, 0, 10**9)[0].tolist() == (entries * 100).tolist()
    assert positions_between(path, 819_250, 1_700_000)[0].tolist() == [
        position for position in (entries * 100).tolist() if 819_250 <= position < 1_700_000
    ]


@pytest.mark.parametrize("count", [0, 1, 511, 512, 513, 1024, 20_000])
@pytest.mark.parametrize("zeros", [0, 8, 4096, 1 << 20])
def test_the_last_entry_in_an_index_of_any_length(tmp_path: Path, count: int, zeros: int) -> None:
    """Preallocated or not: what follows the entries is a block of zeros, or a part of one."""
    path = tmp_path / "00000000000000000000.index"
    entries = np.arange(1, count + 1)
    path.write_bytes(np.stack([entries * 3, entries * 100], 1).astype(">i4").tobytes() + bytes(zeros))
    assert last_entry_below(path, None) == ((count * 3, count * 100) if count else None)
    for last in {0, 1, 2, 510, 511, 512, 513, count // 2, count - 1, count}:
        expected = (last * 3, last * 100) if 0 < last <= count else None
        if last <= count:
            assert last_entry_below(path, last * 3 + 1) == expected
            assert last_entry_upto(path, last * 100) == expected


def test_a_damaged_index_names_some_entry_of_it_or_none(tmp_path: Path) -> None:
    """A page that was never written, stale entries at the end: what it names is proven before it is believed."""
    path, entries = tmp_path / "00000000000000000000.index", np.arange(1, 5001)
    sound = bytearray(np.stack([entries, entries * 100], 1).astype(">i4").tobytes())
    for page in range(9):
        data = bytearray(sound)
        data[page * 4096 : (page + 1) * 4096] = bytes(4096)
        path.write_bytes(data + sound[:4096])
        for offset in (None, 1, 600, 4000):
            found = last_entry_below(path, offset)
            assert found is None or found[1] == found[0] * 100


def test_a_segment_without_an_index_has_no_seeds(tmp_path: Path) -> None:
    missing = tmp_path / "00000000000000000000.index"
    assert positions_between(missing, 0, 100)[0].tolist() == []
    assert last_entry_below(missing, None) is None


def test_an_empty_and_a_cut_index(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.index"
    path.touch()
    assert last_entry_below(path, None) is None
    path.write_bytes(bytes.fromhex("0000000100000064 0000"))
    assert last_entry_below(path, None) == (1, 100)
    assert positions_between(path, 0, 1000)[0].tolist() == [100]
