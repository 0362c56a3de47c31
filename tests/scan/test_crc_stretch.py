"""The CRCs of many batches in a row, looked at all at once."""

import google_crc32c
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from streaming.kafka.formats.layout import CHECKED_FROM
from streaming.kafka.scan.headers import read_headers
from streaming.kafka.scan.soundness import MOST_BYTES, are_right, wrong_crcs
from streaming.kafka.scan.walk import walk
from streaming.simulator.batch_writer import encode
from tests.builders import batch

Row = tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64], NDArray[np.uint32]]

SIZES = st.lists(st.one_of(st.integers(61, 400), st.integers(61, MOST_BYTES), st.just(MOST_BYTES)), min_size=1, max_size=20)


def row_of(sizes: list[int], seed: int, before: int) -> Row:
    """Bytes with the given numbers of them for each batch, behind some that belong to none, and the CRC of each."""
    buffer = np.random.default_rng(seed).integers(0, 256, before + sum(sizes) + 7, np.uint8)
    positions = before + np.cumsum([0, *sizes[:-1]])
    spans = zip(positions.tolist(), sizes, strict=True)
    reported = [google_crc32c.value(buffer[at + CHECKED_FROM : at + size].tobytes()) for at, size in spans]
    return buffer, positions, np.array(sizes), np.array(reported, np.uint32)


@given(SIZES, st.integers(0, 99), st.integers(0, 5000))
def test_right_ones_are_right_and_the_buffer_is_as_it_was(sizes: list[int], seed: int, before: int) -> None:
    row = row_of(sizes, seed, before)
    as_it_was = row[0].copy()
    assert are_right(*row)
    assert (row[0] == as_it_was).all()


@given(SIZES, st.integers(0, 99), st.data())
def test_one_bit_of_what_they_cover_shows(sizes: list[int], seed: int, data: st.DataObject) -> None:
    buffer, positions, _, reported = row_of(sizes, seed, 3)
    item = data.draw(st.integers(0, len(sizes) - 1))
    at = int(positions[item]) + data.draw(st.integers(CHECKED_FROM, sizes[item] - 1))
    buffer[at] ^= 1 << data.draw(st.integers(0, 7))
    assert not are_right(buffer, positions, np.array(sizes), reported)


@given(SIZES, st.integers(0, 99), st.data())
def test_what_they_do_not_cover_may_be_anything(sizes: list[int], seed: int, data: st.DataObject) -> None:
    buffer, positions, _, reported = row_of(sizes, seed, 3)
    buffer[int(positions[data.draw(st.integers(0, len(sizes) - 1))]) + data.draw(st.integers(0, CHECKED_FROM - 1))] ^= 0xFF
    assert are_right(buffer, positions, np.array(sizes), reported)


@pytest.mark.parametrize("megabytes", [1, 9, 40])
def test_a_long_row(megabytes: int) -> None:
    sizes = np.random.default_rng(megabytes).integers(61, 2000, megabytes * 1000).tolist()
    buffer, positions, lengths, reported = row_of(sizes, 1, 100)
    assert are_right(buffer, positions, lengths, reported)
    reported[0] ^= np.uint32(1)
    assert not are_right(buffer, positions, lengths, reported)


@given(st.sets(st.integers(0, 199), max_size=5), st.integers(CHECKED_FROM, 80), st.booleans())
def test_the_wrong_ones_of_a_row_are_found_by_name(items: set[int], at: int, one_large: bool) -> None:
    values = [2 * MOST_BYTES if one_large and number == 100 else 10 + number for number in range(200)]
    data = bytearray().join(encode(batch(1, value_bytes=size), offset) for offset, size in enumerate(values))
    buffer = np.frombuffer(data, np.uint8)
    batches = read_headers(buffer, walk(buffer, 0, len(buffer)).positions)
    for item in items:
        buffer[int(batches.positions[item]) + at] ^= 0x10
    assert wrong_crcs(buffer, batches).tolist() == sorted(items)
