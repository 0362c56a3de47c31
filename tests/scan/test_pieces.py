"""Pieces of several logs walked, checked and summed in one pass."""

from dataclasses import asdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streaming.kafka.formats.layout import HEADER_BYTES
from streaming.kafka.scan.pieces import MAX_SEGMENT_BYTES, Piece, Scanned, scan, scan_header
from streaming.kafka.scan.sums import Sums, joined
from streaming.kafka.scan.walk import Stop, batch_size_at
from tests.builders import batch
from tests.formats.dumped import read
from tests.formats.segments import Content, contents, seeds_in, sums_of, tails, written
from tests.tables import each_row


def one(data: bytes, expected_offset: int = 0, **more: object) -> Scanned:
    return scan(np.frombuffer(data, np.uint8), [Piece(0, len(data), expected_offset, **more)])[0]  # type: ignore[arg-type]


def summed(scanned: Scanned) -> dict[str, object] | None:
    return None if scanned.sums is None else asdict(scanned.sums)


@given(contents, tails, st.data())
def test_a_piece_is_summed_up_to_its_last_whole_batch(content: Content, tail: bytes, draw: st.DataObject) -> None:
    data = content.data + (bytes(len(tail)) if draw.draw(st.booleans()) else tail[:11])
    scanned = one(data, seeds=draw.draw(st.none() | seeds_in(content, len(data))))
    assert (scanned.end, scanned.flaw) == (len(content.data), None)
    assert summed(scanned) == (sums_of(content) if content.entries else None)
    if content.entries:
        assert scanned.anchor == content.data[content.positions[-1] :][:HEADER_BYTES]
        assert scanned.anchor_position == content.positions[-1]


@given(contents, st.data())
def test_scanning_in_any_cuts_gives_the_sums_of_the_whole(content: Content, draw: st.DataObject) -> None:
    """A cut is where the file ended at that look, inside a batch or not; the next look begins behind the last whole one."""
    cuts = [*sorted(draw.draw(st.sets(st.integers(0, len(content.data)), max_size=8))), len(content.data)]
    position, expected, total = 0, 0, None
    for cut in cuts:
        scanned = one(content.data[position:cut], expected)
        assert scanned.flaw is None
        if scanned.sums is not None:
            total = scanned.sums if total is None else joined(total, scanned.sums)
            position, expected = position + scanned.end, scanned.sums.next_offset
    assert position == len(content.data)
    assert total == one(content.data).sums


@given(st.lists(st.tuples(contents, tails), max_size=30), st.data())
def test_many_logs_at_once_are_scanned_as_each_alone(pieces: list[tuple[Content, bytes]], draw: st.DataObject) -> None:
    data, ranges = bytearray(), []
    for content, tail in pieces:
        expected = draw.draw(st.sampled_from([0, content.next_offset, *(entry.base_offset for entry in content.entries)]))
        seeds = draw.draw(st.none() | seeds_in(content, len(content.data)))
        ranges.append(Piece(len(data), len(data) + len(content.data) + len(tail), expected, None if seeds is None else seeds + len(data)))
        data += content.data + tail
    buffer = np.frombuffer(bytes(data), np.uint8)
    for piece, together in zip(ranges, scan(buffer, ranges), strict=True):
        alone = one(bytes(data[piece.start : piece.end]), piece.expected_offset)
        assert (together.end - piece.start, together.stop, together.flaw, together.sums) == (alone.end, alone.stop, alone.flaw, alone.sums)
        assert (together.batches.positions - piece.start).tolist() == alone.batches.positions.tolist()


@given(st.binary(max_size=400), contents, st.binary(max_size=400))
def test_garbage_never_raises_and_is_never_passed(garbage: bytes, content: Content, more: bytes) -> None:
    scanned = one(content.data + garbage + more)
    assert len(content.data) <= scanned.end <= len(content.data + garbage + more)
    if scanned.flaw is not None or scanned.stop is not Stop.END:
        assert scanned.batches.positions.tolist() == sorted(scanned.batches.positions.tolist())
        assert scanned.end == (int(scanned.batches.positions[-1] + scanned.batches.size[-1]) if len(scanned.batches) else 0)


@given(contents.filter(lambda content: len(content.entries) > 1), st.data())
def test_nothing_behind_a_flaw_is_counted(content: Content, draw: st.DataObject) -> None:
    place = draw.draw(st.integers(0, len(content.entries) - 1))
    data = bytearray(content.data)
    data[content.positions[place] + 16] = draw.draw(st.integers(3, 255))
    scanned = one(bytes(data))
    assert (scanned.end, summed(scanned)) == (content.positions[place], sums_of(content, 0, place) if place else None)
    assert scanned.flaw is not None
    assert scanned.flaw.startswith("bad magic byte")


CONTENT = written([batch(2), batch(3)])
HALF = CONTENT.data[: CONTENT.positions[1] + 100]


def changed(at: int, value: bytes) -> bytes:
    at += CONTENT.positions[1]
    return HALF[:at] + value + HALF[at + len(value) :]


def test_a_batch_that_is_not_whole_yet_is_waited_for() -> None:
    for length in range(CONTENT.positions[1] + 1, len(CONTENT.data)):
        scanned = one(CONTENT.data[:length])
        assert (scanned.end, scanned.stop, scanned.flaw) == (CONTENT.positions[1], Stop.SHORT, None)


@each_row(
    ("data", "flaw"),
    [
        (changed(8, b"\x00\x00\x00\x01"), "bad batch length 1"),
        (changed(8, b"\xff\xff\xff\xf0"), "bad batch length -16"),
        (changed(8, b"\x7f\xff\xff\xff"), "bad batch length 2147483647"),
        (changed(16, b"\x03"), "bad magic byte"),
        (changed(22, b"\x06"), "bad codec"),
        (changed(57, b"\x00\x00\x00\x7f"), "bad records count"),
        (changed(0, bytes(8)), "bad base offset"),
    ],
)
def test_a_batch_that_is_not_whole_is_not_waited_for_if_its_header_is_impossible(data: bytes, flaw: str) -> None:
    scanned = one(data)
    assert (scanned.end, scanned.sums is not None) == (CONTENT.positions[1], True)
    assert scanned.flaw is not None
    assert scanned.flaw.startswith(flaw)


def test_a_length_that_reaches_beyond_the_largest_possible_file_is_no_length() -> None:
    head = changed(8, b"\x40\x00\x00\x00")
    assert one(head).flaw is None
    flaw = one(head, limit=MAX_SEGMENT_BYTES - (1 << 30)).flaw
    assert flaw is not None
    assert flaw.startswith("bad batch length 1073741824")


def test_an_old_message_shows_nothing_before_it_is_whole() -> None:
    data = read("old_formats/magic0-0/00000000000000000000.log")
    scanned = one(data[:149])
    assert (scanned.end, scanned.stop, scanned.flaw, scanned.sums) == (0, Stop.SHORT, None, None)


def test_the_anchor_of_an_old_message_holds_nothing_of_what_follows_it() -> None:
    data = read("old_formats/magic1-0/00000000000000000000.log")
    scanned = one(data[:2611])
    assert scanned.anchor == data[2575:2611]
    assert scan(np.frombuffer(data, np.uint8), [Piece(0, 2611, 0)])[0].anchor == scanned.anchor


def test_old_messages_are_counted_as_such() -> None:
    sums = one(read("old_formats/magic1to2-0/00000000000000000000.log")).sums
    assert sums is not None
    assert (sums.next_offset, sums.batches, sums.records) == (73, 29, 73)
    assert 0 < sums.old_format_batches < 29


def test_a_batch_of_which_only_the_header_is_at_hand() -> None:
    content = written([batch(5, value_bytes=4000)], base_offset=7, epochs=[3])
    scanned = scan_header(content.data[:HEADER_BYTES], 7)
    assert (scanned.end, scanned.flaw, scanned.anchor) == (len(content.data), None, content.data[:HEADER_BYTES])
    assert summed(scanned) == sums_of(content)
    flawed = scan_header(content.data[:HEADER_BYTES], 8)
    assert (flawed.end, flawed.sums) == (0, None)
    assert flawed.flaw is not None
    assert batch_size_at(content.data[:12]) == len(content.data)


def test_nothing_to_scan() -> None:
    assert scan(np.empty(0, np.uint8), []) == []
    scanned = one(b"")
    assert (scanned.end, scanned.stop, scanned.sums) == (0, Stop.END, None)


def test_sums_of_pieces_are_values() -> None:
    first, second = (one(CONTENT.data).sums for _ in range(2))
    assert isinstance(first, Sums)
    assert first == second
