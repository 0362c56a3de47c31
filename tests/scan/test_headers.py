"""The headers of many batches as columns, and what Kafka cannot have written."""

import re
from itertools import takewhile

import numpy as np
import pytest
from hypothesis import given

from streaming.common.rows import CODECS
from streaming.kafka.formats.layout import CONTROL_BIT, HEADER_BYTES, PREFIX_BYTES
from streaming.kafka.scan.headers import Batches, Flaw, find_flaws, first_broken, read_headers
from tests.builders import batch
from tests.formats.dumped import columns, files, read, reported
from tests.formats.segments import Content, contents, written
from tests.formats.vectors import COMMIT_MARKER, DATA_BATCH, EMPTY_BATCH, TIME
from tests.tables import each_row

LINE = re.compile(
    r"baseOffset: (\d+) lastOffset: (\d+) count: (\d+) .*partitionLeaderEpoch: (-?\d+) .*isControl: (\w+) .*position: (\d+) "
    r"\w+: (-?\d+) size: (\d+) magic: (\d) compresscodec: (\w+)"
)
OLD_LINE = re.compile(r"offset: (\d+) position: (\d+) \w+: (-?\d+) size: (\d+) magic: (\d) compresscodec: (\w+)")


def flaws(*parts: bytes, firsts: tuple[int, ...] = (0,), expected: tuple[int, ...] = (0,)) -> list[Flaw]:
    ends = np.cumsum([0, *map(len, parts)])
    batches = read_headers(np.frombuffer(b"".join(parts), np.uint8), ends[:-1])
    return find_flaws(batches, np.array(firsts), np.array(expected))


def changed(data: bytes, at: int, value: bytes) -> bytes:
    return data[:at] + value + data[at + len(value) :]


@given(contents)
def test_columns_hold_what_was_written(content: Content) -> None:
    batches = read_headers(content.buffer, np.array(content.positions, np.int64))
    assert batches.base_offset.tolist() == [entry.base_offset for entry in content.entries]
    assert batches.last_offset.tolist() == [entry.last_offset for entry in content.entries]
    assert batches.size.tolist() == [entry.size for entry in content.entries]
    assert batches.control.tolist() == [entry.control for entry in content.entries]
    assert batches.records.tolist() == [1 if entry.control else entry.records for entry in content.entries]
    assert batches.max_timestamp.tolist() == [entry.max_timestamp for entry in content.entries]
    assert batches.codec.tolist() == list(content.codecs)
    assert batches.leader_epoch.tolist() == list(content.epochs)
    firsts = np.zeros(1 if len(batches) else 0, np.intp)
    assert find_flaws(batches, firsts, np.zeros(len(firsts), np.int64)) == []


def test_columns_of_bytes_that_kafka_wrote() -> None:
    batches = columns(DATA_BATCH + COMMIT_MARKER + EMPTY_BATCH)
    assert batches.base_offset.tolist() == [100, 102, 200]
    assert batches.last_offset.tolist() == [101, 102, 204]
    assert batches.records.tolist() == [2, 1, 0]
    assert batches.max_timestamp.tolist() == [TIME + 7, TIME + 50, TIME + 99]
    assert batches.control.tolist() == [False, True, False]
    assert batches.headers["producer_id"].tolist() == [4000, 4000, 4002]
    assert batches.headers["base_sequence"].tolist() == [0, -1, 10]


@each_row("name", [name for name in files(".log") if "old_formats" not in name])
def test_columns_of_real_segments_are_what_kafka_reports_them(name: str) -> None:
    lines = [match.groups() for match in map(LINE.match, reported(name)) if match]
    found = columns(read(name))
    numbers = zip(*(getattr(found, column).tolist() for column in COLUMNS), strict=True)
    flags = zip(found.control.tolist(), (CODECS[codec] for codec in found.codec.tolist()), strict=True)
    assert lines
    assert [
        (str(base), str(last), str(count), str(epoch), str(control).lower(), str(position), str(time), str(size), str(magic), codec)
        for (base, last, count, epoch, position, time, size, magic), (control, codec) in zip(numbers, flags, strict=True)
    ] == lines
    assert find_flaws(found, np.zeros(1, np.intp), np.zeros(1, np.int64)) == []


COLUMNS = ("base_offset", "last_offset", "records", "leader_epoch", "positions", "max_timestamp", "size", "magic")


@pytest.mark.parametrize("name", [name for name in files(".log") if "old_formats" in name])
def test_wrappers_of_magic_0_and_1_are_opened_for_their_offsets_and_counts(name: str) -> None:
    expected: list[list[int]] = []
    for line in takewhile(lambda line: not line.startswith("baseOffset"), reported(name)):
        if line.startswith("|"):
            expected[-1].append(int(line.split()[2]))
        else:
            expected.append([])
    found = columns(read(name))
    old = found.take(found.magic < 2)
    assert [list(range(base, last + 1)) for base, last in zip(old.base_offset.tolist(), old.last_offset.tolist(), strict=True)] == expected
    assert old.records.tolist() == [len(inner) for inner in expected]
    fixed = [match.groups() for match in map(OLD_LINE.match, reported(name)) if match]
    read_back = zip(
        *(getattr(old, column).tolist() for column in ("last_offset", "positions", "max_timestamp", "size", "magic")), strict=True
    )
    assert [(*map(str, one), CODECS[codec]) for one, codec in zip(read_back, old.codec.tolist(), strict=True)] == fixed
    assert set(old.leader_epoch.tolist()) <= {-1}
    assert not old.control.any()


def test_an_old_message_shorter_than_a_header_at_the_very_end() -> None:
    message = read("old_formats/magic1-0/00000000000000000000.log")[2575:2611]
    assert len(message) == 36
    found = columns(message)
    assert (found.base_offset.tolist(), found.records.tolist(), found.size.tolist()) == ([48], [1], [36])


ONE = written([batch(3)]).data
TWO = written([batch(2)], base_offset=3).data


@each_row(
    ("data", "what"),
    [
        (changed(ONE, 16, b"\x03"), "bad magic byte: magic 3"),
        (changed(ONE, 16, b"\xff"), "bad magic byte: magic -1"),
        (changed(ONE, 8, b"\x00\x00\x00\x30")[:60], "bad batch length"),
        (changed(ONE, 22, b"\x05"), "bad codec"),
        (changed(ONE, 57, b"\xff\xff\xff\xff"), "bad records count"),
        (changed(ONE, 57, b"\x00\x00\x00\x04"), "bad records count"),
        (changed(ONE, 0, b"\xff"), "bad base offset"),
        (changed(changed(ONE, 23, b"\xff\xff\xff\xff"), 57, bytes(4)), "bad last offset"),
        (changed(read("old_formats/magic1-0/00000000000000000000.log")[:112], 60, b"\xee\xee\xee"), "bad old message"),
    ],
)
def test_what_kafka_cannot_have_written_is_a_flaw_that_says_what_is_wrong(data: bytes, what: str) -> None:
    (flaw,) = flaws(data)
    assert flaw.item == 0
    assert what in flaw.what
    assert "expected offset 0 or above" in flaw.what


def test_offsets_may_jump_ahead_but_never_back() -> None:
    later = written([batch(2)], base_offset=7).data
    assert flaws(ONE, later) == []
    assert flaws(ONE, TWO) == []
    (flaw,) = flaws(ONE, ONE)
    assert (flaw.item, flaw.what.split(":")[0]) == (1, "bad base offset")
    assert flaws(TWO, expected=(3,)) == []
    assert [flaw.item for flaw in flaws(TWO, expected=(4,))] == [0]


def test_each_range_has_its_own_expected_offset_and_shows_its_first_flaw_alone() -> None:
    bad = changed(TWO, 16, b"\x07")
    found = flaws(ONE, TWO, ONE, bad, bad, ONE, TWO, firsts=(0, 2, 5), expected=(0, 0, 1))
    assert [(flaw.item, flaw.what.split(":")[0]) for flaw in found] == [(3, "bad magic byte"), (5, "bad base offset")]


def test_offsets_at_the_end_of_their_range_do_not_wrap_into_sound_ones() -> None:
    data = changed(ONE, 0, b"\x7f" + b"\xff" * 7)
    (flaw,) = flaws(data)
    assert flaw.what.startswith("bad last offset")


def test_some_batches_in_order() -> None:
    found = columns(DATA_BATCH + COMMIT_MARKER + EMPTY_BATCH)
    control: Batches = found.take((found.attributes & CONTROL_BIT) != 0)
    assert (len(control), control.base_offset.tolist(), control.headers["crc"].tolist()) == (1, [102], [found.headers["crc"][1]])
    assert found.take(slice(1, 3)).base_offset.tolist() == [102, 200]


def test_a_header_alone_is_a_batch_and_what_is_shorter_is_none() -> None:
    assert len(EMPTY_BATCH) == HEADER_BYTES
    shorter = changed(EMPTY_BATCH, 8, (HEADER_BYTES - PREFIX_BYTES - 1).to_bytes(4))
    for second, broken in ((EMPTY_BATCH, None), (shorter, 1)):
        headers = read_headers(np.frombuffer(EMPTY_BATCH + second, np.uint8), np.array([0, HEADER_BYTES])).headers
        assert first_broken(headers) == broken
