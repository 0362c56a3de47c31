"""Text for people, each kind in one way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.common.units import (
    format_age,
    format_duration,
    format_list,
    format_name,
    format_size,
    format_table,
    format_time,
    format_word,
)
from tests.tables import each_row


@each_row(
    ("seconds", "text"),
    [
        (-5, "0s"),
        (0, "0s"),
        (0.0004, "0s"),
        (0.25, "250ms"),
        (0.9996, "1s"),
        (59.4, "59s"),
        (60, "1m"),
        (200, "3m 20s"),
        (3599.7, "1h"),
        (3609, "1h"),
        (8700, "2h 25m"),
        (90_000, "1d 1h"),
        (7 * 86_400, "7d"),
    ],
)
def test_a_duration_has_its_largest_unit_and_the_next_one(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@given(st.floats(0, 1e10))
def test_a_duration_says_no_less_than_a_part_in_sixty_of_what_it_is(seconds: float) -> None:
    lengths = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
    words = [(word.rstrip("dhms"), word.lstrip("0123456789")) for word in format_duration(seconds).split()]
    assert sum(int(number) * lengths[unit] for number, unit in words) == pytest.approx(seconds, rel=1 / 24, abs=0.5)


def test_an_age_is_past_or_to_come() -> None:
    assert [format_age(seconds) for seconds in (12_000, 0, -587)] == ["3h 20m ago", "0s ago", "in 9m 47s"]
    assert [format_age(seconds) for seconds in (0.988, -0.149, 1, 0.0001)] == ["<1s ago", "in <1s", "1s ago", "0s ago"]


@each_row(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (12_902, "12.6 KiB"),
        ((1 << 20) - 1, "1.0 MiB"),
        (3 << 29, "1.5 GiB"),
        (1 << 63, "8.0 EiB"),
        (1 << 75, "32768.0 EiB"),
    ],
)
def test_a_size_has_the_largest_unit_that_is_not_larger(count: int, text: str) -> None:
    assert format_size(count) == text


def test_a_time_is_shown_in_utc() -> None:
    assert format_time(1795145224492) == "2026-11-20T03:27:04Z"
    assert format_time(1795145224492, "milliseconds") == "2026-11-20T03:27:04.492Z"


@pytest.mark.parametrize("milliseconds", [1 << 62, -(1 << 62)])
def test_a_time_that_no_calendar_has_is_the_number_it_is(milliseconds: int) -> None:
    assert format_time(milliseconds) == f"{milliseconds} ms"


@each_row(("text", "word"), [("orders", "orders"), ("é", "é"), ("", '""'), ("é a", '"é a"'), ("a\n", '"a\\n"'), ("\x9b2J", '"\\u009b2J"')])
def test_a_word_is_one_that_a_terminal_can_show(text: str, word: str) -> None:
    assert format_word(text) == word


def test_a_name_of_any_length_is_one_word_that_fits_into_a_line() -> None:
    assert format_name("billing") == "billing"
    assert format_name("a\x1b[2Jb") == '"a\\u001b[2Jb"'
    assert format_name("g" * 10_240, 5) == "ggggg...(10,240 characters)"
    assert format_name("\n" * 10_240, 2) == '"\\n\\n"...(10,240 characters)'


def test_a_list_says_how_many_it_leaves_out() -> None:
    assert [format_list("abc", most) for most in (4, 3, 2)] == ["a, b, c", "a, b, c", "a, b and 1 more"]


def test_a_table_has_its_cells_below_each_other_and_a_dash_where_one_is_empty() -> None:
    rows = [("topic", "size", "why"), ("a", "12 B", None), ("orders", None, "late")]
    assert list(format_table(rows, right=("size",))) == [
        "topic   size  why",
        "a       12 B  -",
        "orders     -  late",
    ]
    assert list(format_table([("topic",)])) == ["topic"]


def test_a_table_whose_rows_do_not_fit_its_heads_is_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        list(format_table([("a", "b"), ("c",)]))
