"""Variable-length integers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import FormatError
from streaming.kafka.formats.wire import read_uvarint, read_varint, read_varlong, uvarint, varint
from tests.tables import each_row


@given(st.integers(-(2**31), 2**31 - 1), st.binary(max_size=3))
def test_a_varint_reads_back_and_shows_where_it_ends(number: int, behind: bytes) -> None:
    encoded = varint(number)
    assert read_varint(encoded + behind, 0) == (number, len(encoded))
    assert read_varlong(b"x" + encoded + behind, 1) == (number, 1 + len(encoded))


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_varlong_reads_back(number: int) -> None:
    assert read_varlong(varint(number), 0)[0] == number


@given(st.integers(0, 2**32 - 1))
def test_an_unsigned_varint_reads_back(number: int) -> None:
    assert read_uvarint(uvarint(number), 0)[0] == number


@each_row(
    ("read", "data"),
    [
        (read_uvarint, b""),
        (read_uvarint, b"\x80"),
        (read_varint, b"\x80" * 5 + b"\x00"),
        (read_varint, b"\xff\xff\xff\xff\x1f"),
        (read_varlong, b"\x80" * 10 + b"\x00"),
        (read_varlong, b"\xff" * 9 + b"\x02"),
    ],
)
def test_a_varint_that_is_cut_short_or_too_wide_is_refused(read, data: bytes) -> None:
    with pytest.raises(FormatError, match="varint"):
        read(data, 0)
