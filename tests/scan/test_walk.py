"""Finding where every entry of a log begins."""

import itertools
import struct

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streaming.kafka.scan.walk import FEW_LANES, Stop, Walk, walk, walk_lanes
from tests.builders import batch
from tests.formats.segments import Content, contents, seeds_in, tails, written
from tests.tables import each_row


def seeds(*positions: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(positions, np.int64)


def found(walked: Walk) -> tuple[list[int], int, Stop]:
    return walked.positions.tolist(), walked.end, walked.stop


@given(contents, tails)
def test_all_whole_entries_are_found_and_nothing_behind_them(content: Content, tail: bytes) -> None:
    data = content.data + tail[:13] + bytes(5)  # too short for an entry, whatever it says
    buffer = np.frombuffer(data, np.uint8)
    walked = walk(buffer, 0, len(content.data))
    assert found(walked) == (content.positions, len(content.data), Stop.END)
    beyond = walk(buffer, 0, len(data))
    assert (beyond.positions.tolist(), beyond.end) == (content.positions, len(content.data))


@given(st.data(), contents, tails)
def test_seeds_change_nothing_whether_they_are_right_wrong_or_stale(draw: st.DataObject, content: Content, tail: bytes) -> None:
    buffer = np.frombuffer(content.data + tail, np.uint8)
    start = draw.draw(st.sampled_from([0, *content.positions]))
    assert found(walk(buffer, start, len(buffer), draw.draw(seeds_in(content, len(buffer))))) == found(walk(buffer, start, len(buffer)))


@given(st.data(), st.binary(max_size=400))
def test_seeds_change_nothing_in_garbage(draw: st.DataObject, data: bytes) -> None:
    buffer = np.frombuffer(data, np.uint8)
    start = draw.draw(st.integers(0, len(data)))
    stale = np.array(sorted(draw.draw(st.sets(st.integers(0, len(data))))), np.int64)
    assert found(walk(buffer, start, len(data), stale)) == found(walk(buffer, start, len(data)))


def test_a_wrong_seed_inside_the_batch_that_begins_at_a_right_one() -> None:
    content = written([batch(1), batch(9), batch(1)])
    inside = content.positions[1] + 70
    for wrong in ((inside,), (content.positions[1], inside), (inside, inside + 1, content.positions[2])):
        assert found(walk(content.buffer, 0, len(content.data), seeds(*wrong))) == (content.positions, len(content.data), Stop.END)


def test_a_wrong_seed_that_looks_like_a_batch_is_found_out_where_its_lane_ends() -> None:
    embedded = written([batch(1), batch(1)]).data
    content = written([batch(1), batch(1, value_bytes=500), batch(1)])
    data = bytearray(content.data)
    at = content.positions[1] + 100
    data[at : at + len(embedded)] = embedded
    buffer = np.frombuffer(bytes(data), np.uint8)
    assert found(walk(buffer, 0, len(data), seeds(at))) == (content.positions, len(data), Stop.END)


@given(st.lists(st.tuples(contents, tails), max_size=2 * FEW_LANES))
def test_many_lanes_find_what_one_after_the_other_finds(pieces: list[tuple[Content, bytes]]) -> None:
    data, starts = bytearray(), [0]
    for content, tail in pieces:
        data += content.data + tail
        starts.append(len(data))
    buffer = np.frombuffer(bytes(data), np.uint8)
    lanes = walk_lanes(buffer, np.array(starts[:-1], np.int64), np.array(starts[1:], np.int64))
    alone = [walk(buffer, start, end) for start, end in itertools.pairwise(starts)]
    assert lanes.positions.tolist() == [position for one in alone for position in one.positions.tolist()]
    assert lanes.reached.tolist() == [one.end for one in alone]
    assert lanes.stops.tolist() == [one.stop for one in alone]


@each_row("lanes", [1, FEW_LANES + 1])
@each_row(
    ("tail", "stop"),
    [
        (b"", Stop.END),
        (bytes(11), Stop.SHORT),
        (bytes(12), Stop.ZEROS),
        (bytes(4096), Stop.ZEROS),
        (struct.pack(">qi", 1, 100) + bytes(99), Stop.SHORT),
        (struct.pack(">qi", 1, 13) + bytes(99), Stop.BAD_LENGTH),
        (struct.pack(">qi", 1, -1) + bytes(99), Stop.BAD_LENGTH),
        (struct.pack(">qi", 1, -(2**31)) + bytes(99), Stop.BAD_LENGTH),
        (struct.pack(">qi", 1, 2**31 - 1) + bytes(99), Stop.SHORT),
    ],
)
def test_why_a_walk_ends(tail: bytes, stop: Stop, lanes: int) -> None:
    piece = written([batch(2), batch(1)]).data
    buffer = np.frombuffer((piece + tail) * lanes, np.uint8)
    starts = np.arange(lanes, dtype=np.int64) * (len(piece) + len(tail))
    walked = walk_lanes(buffer, starts, starts + len(piece) + len(tail))
    assert walked.reached.tolist() == (starts + len(piece)).tolist()
    assert walked.stops.tolist() == [stop] * lanes


@given(st.binary(max_size=300))
def test_garbage_is_never_walked_beyond_its_end(data: bytes) -> None:
    walked = walk(np.frombuffer(data, np.uint8), 0, len(data))
    assert 0 <= walked.end <= len(data)
    assert all(0 <= position < walked.end for position in walked.positions.tolist())
