from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.common.units import Address, parse_duration, parse_size, write_duration, write_size
from tests.tables import each_row


@each_row(
    ("text", "duration"),
    [
        ("0s", timedelta(0)),
        ("500ms", timedelta(milliseconds=500)),
        ("15m", timedelta(minutes=15)),
        ("24h", timedelta(hours=24)),
        ("7d", timedelta(days=7)),
        ("90 s", timedelta(seconds=90)),
    ],
)
def test_durations_are_a_number_and_a_unit(text: str, duration: timedelta) -> None:
    assert parse_duration(text) == duration


@each_row("text", ["", "15", "m", "-1s", "1.5s", "1h30m", "3 weeks", "1M", "1s ago", "999999999999d", "\u0661s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a duration such as"):
        parse_duration(text)


@given(st.integers(0, 10**14))
def test_a_duration_reads_back_as_it_was_written(milliseconds: int) -> None:
    duration = timedelta(milliseconds=milliseconds)
    assert parse_duration(write_duration(duration)) == duration


def test_a_duration_is_written_with_its_largest_whole_unit() -> None:
    written = [write_duration(timedelta(seconds=seconds)) for seconds in (0, 0.25, 90, 900, 86_400, 90_000)]
    assert written == ["0s", "250ms", "90s", "15m", "1d", "25h"]


@each_row(("text", "size"), [("0", 0), ("65536", 65_536), ("512KiB", 1 << 19), ("128 MiB", 1 << 27), ("1GiB", 1 << 30)])
def test_sizes_are_bytes_or_have_a_binary_unit(text: str, size: int) -> None:
    assert parse_size(text) == size


@each_row("text", ["", "MiB", "-1", "1.5GiB", "1GB", "1mib", "0x10", "1_000"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a size such as"):
        parse_size(text)


@given(st.integers(0, 10**15 - 1) | st.integers(0, 1 << 20).map(lambda number: number << 20))
def test_a_size_reads_back_as_it_was_written(size: int) -> None:
    assert parse_size(write_size(size)) == size


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9712", Address("127.0.0.1", 9712)),
        ("metrics.example:0", Address("metrics.example", 0)),
        ("[::1]:65535", Address("::1", 65_535)),
    ],
)
def test_an_address_reads_back_as_it_was_written(text: str, address: Address) -> None:
    assert Address.parse(text) == address
    assert str(address) == text


@each_row("text", ["", ":9712", "9712", "localhost", "localhost:", "localhost:65536", "::1:9712", "a b:1", "h:+1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not HOST:PORT"):
        Address.parse(text)
