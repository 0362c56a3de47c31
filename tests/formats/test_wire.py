"""The two encodings of Kafka's messages."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import FormatError
from streaming.kafka.formats.wire import PlainReader, Reader

BOTH = pytest.mark.parametrize(
    ("reader", "null", "text", "empty_array"),
    [(Reader, b"\0", b"\4abc", b"\1"), (PlainReader, b"\xff\xff", b"\0\3abc", bytes(4))],
)


@BOTH
def test_strings(reader: Callable[[bytes], Reader], null: bytes, text: bytes, empty_array: bytes) -> None:
    message = reader(null + text + text + text + empty_array)
    assert (message.nullable_string(), message.nullable_string(), message.string()) == (None, "abc", "abc")
    message.skip_string()
    assert message.count() == 0
    message.end()
    with pytest.raises(FormatError, match="null where a string is expected"):
        reader(null).string()
    with pytest.raises(FormatError, match="cut short"):
        reader(text[:-1]).string()


@BOTH
def test_a_string_that_is_not_utf_8_is_refused_at_its_place(
    reader: Callable[[bytes], Reader], null: bytes, text: bytes, empty_array: bytes
) -> None:
    with pytest.raises(FormatError, match=f"not UTF-8 at position {len(text) - 3}"):
        reader(text.replace(b"a", b"\xff")).string()


def test_bytes_and_arrays() -> None:
    assert Reader(b"\4abc").data() == PlainReader(b"\0\0\0\3abc").data() == b"abc"
    assert Reader(b"\0").data() == PlainReader(b"\xff\xff\xff\xff").data() == b""
    assert Reader(b"\2\0\0\0\7").count() == PlainReader(b"\0\0\0\1\0\0\0\7").count() == 1
    assert Reader(b"\0").count() == PlainReader(b"\xff\xff\xff\xff").count() == -1


@pytest.mark.parametrize("reader", [Reader(b"\xff\xff\xff\xff\x0f"), PlainReader(b"\x7f\xff\xff\xff")])
def test_an_array_longer_than_its_message_is_refused(reader: Reader) -> None:
    with pytest.raises(FormatError, match="array longer"):
        reader.count()


@pytest.mark.parametrize("data", [b"\xff\xfe", b"\x80\0"])
def test_a_negative_length_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError, match="length -"):
        PlainReader(data).nullable_string()


def test_tagged_fields_exist_in_flexible_messages_alone() -> None:
    assert [(tag, content.int16()) for tag, content in Reader(b"\2\0\2\0\7\5\2\0\x08").tagged_fields()] == [(0, 7), (5, 8)]
    plain = PlainReader(b"")
    plain.skip_tagged_fields()
    plain.end()


def test_unsigned_numbers() -> None:
    assert (Reader(b"\xff\xff").uint16(), Reader(b"\xff\xff").int16()) == (65535, -1)


@given(st.integers(-(2**63), 2**63 - 1))
def test_numbers_are_big_endian(number: int) -> None:
    assert Reader(number.to_bytes(8, "big", signed=True)).int64() == number
