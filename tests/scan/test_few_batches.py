"""The plain loop over few batches beside the numpy pass over many: both find the same in all bytes."""

from collections.abc import Sequence
from dataclasses import fields
from itertools import product

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from streaming.kafka.formats.layout import HEADER, HEADER_BYTES
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.pieces import MOST_BATCHES, MOST_PIECES, Piece, Scanned, scan, scan_few, scan_many
from streaming.kafka.scan.walk import Bytes
from tests.builders import abort, batch, commit
from tests.formats.dumped import files, read
from tests.formats.segments import Content, contents, tails, written

EXTREMES = [0, 1, -1, 2, 5, 60, 61, 127, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 2**62, -(2**62) - 1, 2**62 - 1]
CONTENT = written([batch(3), batch(2, producer=7, transactional=True), batch(1), commit(7, epoch=1)], epochs=[3, 3, 4, 5], gaps=[0, 4])


def columns(batches: Batches) -> list[tuple[str, str, list[object]]]:
    """All columns with their types."""
    return [(each.name, str(column.dtype), column.tolist()) for each in fields(Batches) for column in [getattr(batches, each.name)]]


def whole(scanned: Scanned) -> tuple[object, ...]:
    """All that a scan returns, in types that compare."""
    sums = scanned.sums and [
        (each.name, type(value), value) for each in fields(scanned.sums) for value in [getattr(scanned.sums, each.name)]
    ]
    return type(scanned.end), scanned.end, scanned.stop, scanned.flaw, sums, columns(scanned.batches)


def assert_same(buffer: Bytes, pieces: Sequence[Piece], *, few: bool | None = None) -> None:
    found = scan_few(buffer, pieces)
    if few is not None:
        assert (found is not None) is few
    if found is not None:
        assert [whole(each) for each in found] == [whole(each) for each in scan_many(buffer, pieces)]


def assert_same_of(data: bytes, expected_offset: int = 0, *, few: bool | None = None) -> None:
    """In a buffer of their own, and before other bytes."""
    for more in (b"", b"\xff" * HEADER_BYTES):
        assert_same(np.frombuffer(data + more, np.uint8), [Piece(0, len(data), expected_offset)], few=few)


@given(st.lists(st.tuples(contents, tails), max_size=4), st.data())
def test_histories_of_a_few_logs(logs: list[tuple[Content, bytes]], draw: st.DataObject) -> None:
    """Every kind of batch and codec, epochs, gaps, markers, cuts, zeros and anything after the last batch."""
    data, pieces = bytearray(), []
    for content, tail in logs:
        expected = draw.draw(st.sampled_from([0, content.next_offset, *(entry.base_offset for entry in content.entries)]))
        part = (content.data + tail)[: draw.draw(st.integers(0, len(content.data) + len(tail)) | st.just(len(content.data)))]
        pieces.append(Piece(len(data), len(data) + len(part), expected))
        data += part
    assert_same(np.frombuffer(bytes(data), np.uint8), pieces)


@given(contents, st.lists(st.tuples(st.integers(0, 19), st.sampled_from(HEADER.names), st.sampled_from(EXTREMES)), max_size=4))
def test_headers_that_no_broker_writes(content: Content, changes: list[tuple[int, str, int]]) -> None:
    """Offsets that overflow as well, lengths that lead anywhere, and old formats."""
    data = bytearray(content.data)
    for item, name, value in changes:
        if item < len(content.positions):
            header = np.ndarray(1, HEADER, buffer=data, offset=content.positions[item])
            header[name] = np.array([value]).astype(header[name].dtype)
    assert_same_of(bytes(data))


@given(st.binary(max_size=300), contents, st.binary(max_size=300))
@example(b"", CONTENT, bytes(11))
@example(b"", CONTENT, bytes(300))
def test_bytes_of_any_kind(before: bytes, content: Content, after: bytes) -> None:
    assert_same_of(before + content.data + after)


def test_each_field_of_each_header_at_its_extremes() -> None:
    for position, name, value in product(CONTENT.positions, HEADER.names or (), EXTREMES):
        data = bytearray(CONTENT.data)
        header = np.ndarray(1, HEADER, buffer=data, offset=position)
        header[name] = np.array([value]).astype(header[name].dtype)
        assert_same_of(bytes(data))


def test_a_log_that_ends_at_any_byte() -> None:
    for length in range(len(CONTENT.data) + 1):
        assert_same_of(CONTENT.data[:length], few=True)


def test_real_logs_from_each_of_their_first_batches_on() -> None:
    """Of every format, also of the old ones, which the plain loop leaves alone."""
    for name in files(".log"):
        data = read(name)
        batches = scan(np.frombuffer(data, np.uint8), [Piece(0, len(data), 0)])[0].batches
        for count in (1, 2, 7, 40):
            ends = batches.positions[: count + 1].tolist()
            assert_same_of(data[: ends[-1]] if ends else data[:100])


def test_what_is_left_to_the_other_way() -> None:
    one = CONTENT.data
    assert_same_of(written([batch(1)] * MOST_BATCHES).data, few=True)
    assert_same_of(written([batch(1)] * (MOST_BATCHES + 1)).data, few=False)
    many = np.frombuffer(one * (MOST_PIECES + 1), np.uint8)
    pieces = [Piece(len(one) * item, len(one) * (item + 1), 0) for item in range(MOST_PIECES + 1)]
    assert_same(many, pieces[:-1], few=True)
    assert_same(many, pieces, few=False)
    assert_same(many, [Piece(0, len(one), 0, np.zeros(1, np.int64))], few=False)
    assert_same_of(read("old_formats/magic1-0/00000000000000000000.log")[:2611], few=False)
    assert_same_of(written([batch(1)], base_offset=2**62).data, few=False)


def test_transactions_that_end_in_each_way() -> None:
    assert_same_of(written([batch(4, producer=7, transactional=True), abort(7), batch(1, producer=7, epoch=1), commit(7)]).data, few=True)
