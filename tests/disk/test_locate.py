"""Finding a place in a log, by the index where it can be believed."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.broker.disk import segment_files
from streaming.broker.disk.locate import BatchBoundary, batches_between, find_offset, start_boundary, start_near, walk_on, window
from streaming.broker.disk.opening import bytes_read
from streaming.broker.disk.segment_files import OpenSegment, list_segments
from streaming.errors import FormatError
from streaming.kafka.formats.layout import HEADER_BYTES
from streaming.kafka.scan.pieces import Scanned
from streaming.kafka.scan.walk import Bytes
from streaming.simulator.batch_writer import Codec, Record
from streaming.simulator.log import PartitionLog
from tests.builders import NOW, batch, log_dir, partition
from tests.dump.writing import damage
from tests.formats.segments import Content, contents, tails
from tests.legacy_messages import Messages
from tests.scratch import scratch
from tests.tables import each_row

BUFFER = window()


def places(log: PartitionLog) -> dict[int, tuple[int, int, int]]:
    """For every offset a batch may end before: (segment, position, next offset) of what must be found."""
    found: dict[int, tuple[int, int, int]] = {}
    for segment in log.segments:
        last, position = segment.base_offset, 0
        for entry in segment.entries:
            for offset in range(last, entry.last_offset + 1):
                found[offset] = (segment.base_offset, position, last)
            position += entry.size
            last = entry.last_offset + 1
        found[last] = (segment.base_offset, position, last)
    return found


def shown(boundary: BatchBoundary) -> tuple[int, int, int]:
    return boundary.segment.base_offset, boundary.position, boundary.next_offset


@settings(max_examples=30)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=30),
    st.sampled_from([0, 200, 1 << 20]),
    st.integers(0, 1000),
    st.integers(0, 9),
    st.booleans(),
)
def test_every_offset_is_found_whatever_the_index_says(
    tmp_path_factory: pytest.TempPathFactory, counts: list[int], interval: int, permille: int, regrown: int, preallocate: bool
) -> None:
    """After a truncation the index of the active segment holds stale entries."""
    log = partition(
        log_dir(tmp_path_factory.mktemp("locate")), "t", segment_bytes=2000, index_interval_bytes=interval, preallocate=preallocate
    )
    for count in counts:
        log.append(batch(count))
    log.truncate(log.log_end_offset * permille // 1000)
    for _ in range(regrown):
        log.append(batch(3, value_bytes=31), leader_epoch=1)
    segments = list_segments(log.directory)
    expected = places(log)
    for offset in range(segments[0].base_offset, log.log_end_offset + 3):
        boundary = find_offset(segments, offset, BUFFER)
        assert shown(boundary) == expected.get(offset, expected[log.log_end_offset])
        assert boundary.last == (offset >= log.log_end_offset)
    assert shown(find_offset(segments, None, BUFFER)) == expected[log.log_end_offset]
    log.close()


def test_the_anchor_is_the_header_of_the_batch_before(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "t")
    log.append(batch(2), batch(3), leader_epoch=7)
    boundary = find_offset(list_segments(log.directory), 5, BUFFER)
    data = log.active.path("log").read_bytes()
    assert (boundary.anchor_position, boundary.anchor, boundary.log_epoch) == (
        log.active.positions[1],
        data[log.active.positions[1] :][:61],
        7,
    )
    first = find_offset(list_segments(log.directory), 0, BUFFER)
    assert (first.anchor, first.anchor_position, first.log_epoch) == (b"", 0, -1)


def test_an_offset_before_the_log_finds_its_beginning(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "t", base_offset=100)
    log.append(batch())
    assert shown(find_offset(list_segments(log.directory), 7, BUFFER)) == (100, 0, 100)


def test_where_a_reader_begins(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "t", base_offset=100)
    log.append(batch(2))
    log.roll()
    log.append(batch(3))
    segments = list_segments(log.directory)
    assert shown(start_boundary(segments, "earliest", BUFFER)) == (100, 0, 100)
    assert shown(start_boundary(segments, "active", BUFFER)) == (102, 0, 102)
    assert shown(start_boundary(segments, "latest", BUFFER)) == (102, log.active.size, 105)


class Reads(OpenSegment):
    """Counts what is read."""

    total = 0

    def read_into(self, buffer: Bytes, position: int, *, spare_cache: bool = False) -> int:
        size = super().read_into(buffer, position, spare_cache=spare_cache)
        Reads.total += size
        return size


def test_the_end_of_a_large_log_is_found_without_reading_it_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = partition(log_dir(tmp_path), "t", segment_bytes=1 << 30)
    for _ in range(20):
        log.append(*[batch(1, value_bytes=50_000)] * 20)
    monkeypatch.setattr(segment_files, "OpenSegment", Reads)
    monkeypatch.setattr(Reads, "total", 0)
    assert shown(find_offset(list_segments(log.directory), None, BUFFER)) == (0, log.active.size, 400)
    assert Reads.total < 100_000
    log.active.path("index").unlink()
    assert shown(find_offset(list_segments(log.directory), None, BUFFER)) == (0, log.active.size, 400)
    assert Reads.total > log.active.size


def test_an_index_that_leads_into_the_middle_of_a_batch_is_not_believed(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "t", index_interval_bytes=0)
    log.append(*[batch(2)] * 10)
    entries = bytearray(log.active.path("index").read_bytes()[: 9 * 8])
    for entry in range(9):
        entries[entry * 8 + 7] ^= 3
    log.active.path("index").write_bytes(entries)
    for offset in range(20):
        assert shown(find_offset(list_segments(log.directory), offset, BUFFER)) == places(log)[offset]


def test_an_index_that_leads_to_a_later_batch_is_not_believed(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "t", index_interval_bytes=0)
    log.append(*[batch(2)] * 10)
    index = log.active.path("index")
    entries = np.frombuffer(index.read_bytes()[: 9 * 8], ">u4").reshape(-1, 2).copy()
    entries[:-3, 1] = entries[3:, 1]
    index.write_bytes(entries[:-3].tobytes())
    for offset in range(20):
        assert shown(find_offset(list_segments(log.directory), offset, BUFFER)) == places(log)[offset]


def test_old_messages_are_found_by_their_index(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "t", index_interval_bytes=0)
    for _ in range(10):
        log.append(Messages(magic=1, records=(Record(value=b"x" * 50, timestamp=NOW),) * 3, codec=Codec.GZIP))
    (segment,) = list_segments(log.directory)
    for offset in range(31):
        assert shown(find_offset([segment], offset, BUFFER)) == places(log).get(offset, shown(find_offset([segment], offset - 1, BUFFER)))
    with segment.open() as file:
        assert start_near(file, 20) == (places(log)[18][1] - log.active.entries[5].size, 0)


def test_a_segment_walked_window_by_window(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "t", segment_bytes=1 << 30)
    log.append(*[batch(1, value_bytes=1 << 20)] * 20)
    log.append(batch(1, value_bytes=9 << 20))
    log.append(batch(2))
    file = OpenSegment(log.active.path("log"), 0)
    found = list(walk_on(file, 0, 0, BUFFER))
    file.close()
    assert sum(scanned.sums.bytes for _, scanned in found if scanned.sums is not None) == log.active.size
    assert [position for position, _ in found] == sorted(position for position, _ in found)
    assert len(found) > 2


@given(contents, tails, st.integers(100, 3000))
def test_windows_of_any_size_show_what_one_large_window_shows(content: Content, tail: bytes, window_bytes: int) -> None:
    with scratch() as directory:
        path = Path(directory, "00000000000000000000.log")
        path.write_bytes(content.data + tail)
        file = OpenSegment(path, 0)
        found = list(walk_on(file, 0, 0, np.empty(window_bytes, np.uint8)))
        whole = list(walk_on(file, 0, 0, BUFFER))
        file.close()
    assert positions(found) == positions(whole)


def positions(walked: Sequence[tuple[int, Scanned]]) -> list[int]:
    """Of all batches, in the file."""
    return [at + position for at, scanned in walked for position in scanned.batches.positions.tolist()]


@each_row("preallocate", [False, True])
def test_the_end_of_a_log_is_found_by_one_read(tmp_path_factory: pytest.TempPathFactory, preallocate: bool) -> None:
    log = partition(log_dir(tmp_path_factory.mktemp("end")), "t", preallocate=preallocate)
    log.append(*[batch(2)] * 5)
    segments, began = list_segments(log.directory), bytes_read()
    boundary = find_offset(segments, None, BUFFER)
    assert (boundary.next_offset, boundary.last) == (10, True)
    assert bytes_read() - began <= segments[0].size + HEADER_BYTES


def test_a_log_that_is_replayed_from_its_beginning_is_read_once(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "t", base_offset=7)
    log.append(*[batch(2)] * 5)
    segments, began = list_segments(log.directory), bytes_read()
    assert sum(len(batches) for batches, _ in batches_between(segments, 7, 17, BUFFER)) == 5
    assert bytes_read() - began == log.active.size


def test_what_comes_after_the_requested_end_is_not_judged(tmp_path: Path) -> None:
    """Who replays a log up to where it was counted learns nothing of damage behind that, which counts where it is read."""
    log = partition(log_dir(tmp_path), "t")
    log.append(*[batch(2)] * 3)
    sound = log.active.size
    log.append(batch(2))
    segments = list_segments(log.directory)
    damage(segments[-1].path, sound + 16, b"\x09")
    assert sum(len(batches) for batches, _ in batches_between(segments, 0, 6, BUFFER)) == 3
    with pytest.raises(FormatError):
        list(batches_between(segments, 0, 8, BUFFER))
