"""The check of one closed segment, on segments that a real broker wrote."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from streaming.broker.disk.segment_files import list_segments, read_leader_epochs
from streaming.broker.scrub.threads import ChangedError, SegmentCheck
from streaming.kafka.scan.soundness import Damage, Fault
from streaming.simulator.log import PartitionLog
from tests.builders import batch, log_dir, partition
from tests.disk.descriptors import descriptors
from tests.scrub.real import BY_TIME, CODECS, DATA, OLD_FORMATS, checked, closed, copied, flip
from tests.tables import each_row

LOGS = sorted({path.parent for path in DATA.rglob("*.log") if len(list_segments(path.parent)) > 1})


@each_row("log", LOGS)
def test_what_real_brokers_wrote_passes(log: Path) -> None:
    assert [checked(log, number) for number in range(len(list_segments(log)) - 1)] == [[]] * (len(list_segments(log)) - 1)


def with_an_active_segment(log: Path, into: Path) -> Path:
    """A log whose segments are all closed, by an empty one behind them."""
    here = copied(log, into)
    (here / f"{1_000:020}.log").touch()
    return here


@pytest.mark.parametrize("log", OLD_FORMATS, ids=lambda path: path.name)
@pytest.mark.parametrize("window", [1 << 20, 256])
def test_old_formats_pass_also_where_a_window_holds_no_message(log: Path, window: int, tmp_path: Path) -> None:
    assert checked(with_an_active_segment(log, tmp_path), window=window) == []


def missed(log: Path, bits: Sequence[int], window: int = 1 << 20) -> set[int]:
    """Where in a batch a flipped bit of the log's first segment is not found: bytes from the batch's beginning."""
    path = closed(log)[0].path
    whole = path.read_bytes()
    starts, at = [], 0
    while at < len(whole):
        starts.append(at)
        at += 12 + int.from_bytes(whole[at + 8 : at + 12], "big")
    found = set()
    for bit in bits:
        flip(path, bit)
        if not checked(log, window=window):
            found.add(min((bit >> 3) - start for start in starts if start <= bit >> 3))
        path.write_bytes(whole)
    return found


@pytest.mark.parametrize("log", [BY_TIME, CODECS, *OLD_FORMATS], ids=lambda path: path.name)
@pytest.mark.parametrize(("window", "every"), [(1 << 20, 211), (512, 997)])
def test_flipped_bits_are_found_in_every_format_and_through_any_window(log: Path, window: int, every: int, tmp_path: Path) -> None:
    """All of them, one by one: `tests/scan/test_soundness.py`."""
    here = with_an_active_segment(log, tmp_path)
    # those of old formats were made without a broker: gaps between their offsets, and magic 2 without leader epochs
    unknown = {*range(8), 12} if log in OLD_FORMATS else set()
    assert missed(here, range(0, 8 * closed(here)[0].size, every), window) <= unknown


def test_what_a_flip_damages_is_reported_with_position_and_offset(tmp_path: Path) -> None:
    log = copied(CODECS, tmp_path)
    segment = closed(log)[0]
    first = 12 + int.from_bytes(segment.path.read_bytes()[8:12], "big")
    offset = int.from_bytes(segment.path.read_bytes()[first : first + 8], "big")
    flip(segment.path, 8 * (first + 70))
    assert checked(log) == [Damage(Fault.CRC, first, offset)]


def made(tmp_path: Path, *, batches: int = 40, value_bytes: int = 200, index_interval_bytes: int = 256) -> PartitionLog:
    """A log with one closed segment of a batch after the other, and an active one."""
    log = partition(log_dir(tmp_path), "t", index_interval_bytes=index_interval_bytes, segment_bytes=64 << 20)
    for _ in range(batches):
        log.append(batch(2, value_bytes=value_bytes))
    log.roll()
    log.append(batch())
    return log


def test_behind_what_is_no_batch_the_check_goes_on_where_the_index_proves_one(tmp_path: Path) -> None:
    log = made(tmp_path)
    path = closed(log.directory)[0].path
    data = bytearray(path.read_bytes())
    size = len(data) // 40
    data[size + 8 : size + 12] = b"\0\0\0\0"  # the second batch has no length
    data[-5] ^= 1  # and the last one is damaged, too
    path.write_bytes(data)
    assert checked(log.directory) == [Damage(Fault.FRAMING, size, 2), Damage(Fault.CRC, 39 * size, 78)]


@pytest.mark.parametrize("tail", [bytes(4096), b"\0\1" * 700, b"\7"], ids=["zeros", "anything", "a byte"])
def test_what_stands_behind_the_last_batch_of_a_closed_segment_is_damage(tmp_path: Path, tail: bytes) -> None:
    """Kafka cuts a preallocated file to its size before it begins the next one."""
    log = made(tmp_path)
    path = closed(log.directory)[0].path
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(tail)
    assert checked(log.directory) == [Damage(Fault.FRAMING, size, 80)]


def test_zeros_in_the_middle_do_not_hide_what_follows(tmp_path: Path) -> None:
    log = made(tmp_path)
    path = closed(log.directory)[0].path
    data = bytearray(path.read_bytes())
    size = len(data) // 40
    data[5 * size : 9 * size] = bytes(4 * size)
    data[-5] ^= 1
    path.write_bytes(data)
    assert checked(log.directory) == [Damage(Fault.FRAMING, 5 * size, 10), Damage(Fault.CRC, 39 * size, 78)]


@pytest.mark.parametrize("codec_window", [1 << 12, 1 << 16])
def test_a_batch_that_is_larger_than_a_window_is_checked_in_pieces(tmp_path: Path, codec_window: int) -> None:
    log = made(tmp_path, batches=3, value_bytes=100_000)
    path = closed(log.directory)[0].path
    assert checked(log.directory, window=codec_window) == []
    size = path.stat().st_size // 3
    flip(path, 8 * (2 * size - 1))
    assert checked(log.directory, window=codec_window) == [Damage(Fault.CRC, size, 2)]


def test_a_segment_is_read_in_windows_and_no_file_stays_open(tmp_path: Path) -> None:
    log = made(tmp_path)
    check = SegmentCheck(*closed(log.directory), read_leader_epochs(log.directory))
    buffer, seen, steps = np.empty(2048, np.uint8), {0}, 0
    before = len(descriptors(os.fspath(tmp_path)))
    while not check.done:
        check.advance(buffer)
        assert len(descriptors(os.fspath(tmp_path))) == before
        seen.add(check.position)
        steps += 1
    assert steps >= closed(log.directory)[0].size // 2048
    assert check.checked == closed(log.directory)[0].size


@pytest.mark.parametrize("change", ["deleted", "renamed", "compacted", "cut off", "grown"])
def test_a_segment_that_changes_meanwhile_is_not_judged(tmp_path: Path, change: str) -> None:
    log = made(tmp_path)
    path = closed(log.directory)[0].path
    check = SegmentCheck(*closed(log.directory), ())
    buffer = np.empty(2048, np.uint8)
    check.advance(buffer)
    match change:
        case "deleted":
            path.unlink()
        case "renamed":
            path.rename(path.with_name(f"{path.name}.deleted"))
        case "compacted":
            new = path.with_name(f"{path.name}.swap")
            new.write_bytes(path.read_bytes()[::-1])
            new.replace(path)
        case "cut off":
            os.truncate(path, 3000)
        case "grown":
            with path.open("ab") as file:
                file.write(b"\1" * 5000)
    with pytest.raises(ChangedError):
        check.advance(buffer)


def test_a_check_goes_on_from_where_an_earlier_process_came_to(tmp_path: Path) -> None:
    log = made(tmp_path)
    segment, following = closed(log.directory)
    flip(segment.path, 8 * 100)
    flip(segment.path, 8 * (segment.size - 1))
    segment, following = closed(log.directory)
    check = SegmentCheck(segment, following, ())
    check.advance(np.empty(4096, np.uint8))
    again, found = SegmentCheck(segment, following, (), check.position), []
    while not again.done:
        found += again.advance(np.empty(4096, np.uint8))
    assert [damage.fault for damage in found] == [Fault.CRC]
    assert found[0].position > check.position > 0


def test_a_batch_with_a_wrong_crc_is_no_place_to_go_on_at(tmp_path: Path) -> None:
    log = made(tmp_path)
    path = closed(log.directory)[0].path
    data = bytearray(path.read_bytes())
    size = len(data) // 40
    data[size + 8 : size + 12] = b"\0\0\0\0"  # the second batch has no length
    data[3 * size - 5] ^= 1  # and the third one, which the index names, is damaged
    path.write_bytes(data)
    assert checked(log.directory) == [Damage(Fault.FRAMING, size, 2)]
    assert checked(log.directory, window=size) == [Damage(Fault.FRAMING, size, 2)]  # there is nothing else to go on at in its window
