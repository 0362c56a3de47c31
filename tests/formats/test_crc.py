"""Checksums computed where the bytes lie."""

import zlib

import google_crc32c
from hypothesis import given
from hypothesis import strategies as st

from streaming.kafka.formats.layout import crc32, crc32c


def test_check_values() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32(b"123456789") == 0xCBF43926


@given(st.binary(max_size=300), st.integers(0, 300))
def test_a_view_of_memory_gives_the_same_as_a_copy(data: bytes, start: int) -> None:
    for view in (memoryview(data)[start:], memoryview(bytearray(data))[start:]):
        assert crc32c(view) == google_crc32c.value(data[start:])
        assert crc32(view) == zlib.crc32(data[start:])
