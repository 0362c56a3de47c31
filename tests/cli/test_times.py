"""Points in time as people write them, and as they read them."""

import click
import pytest

from streaming.cli.times import Moment, show_span, show_time


def parse(text: str) -> int:
    return Moment().convert(text, None, None)


@pytest.mark.parametrize(
    "text",
    [
        "1795145224492",
        "1795145224.492",
        "2026-11-20T03:27:04.492",
        "2026-11-20T03:27:04.492Z",
        "2026-11-20T05:27:04.492+02:00",
    ],
)
def test_a_time_is_seconds_milliseconds_or_a_date_in_utc(text: str) -> None:
    assert parse(text) == 1795145224492


@pytest.mark.parametrize("text", ["tomorrow", "nan", "inf", ""])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is none of ISO 8601"):
        parse(text)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(-5, "0s"), (0, "0s"), (59, "59s"), (60, "1m 0s"), (3599, "59m 59s"), (3600, "1h 0m"), (8700, "2h 25m"), (90000, "1d 1h")],
)
def test_a_span_is_told_in_its_two_largest_units(seconds: int, shown: str) -> None:
    assert show_span(seconds * 1000 + 999 if seconds >= 0 else seconds * 1000) == shown


def test_a_time_is_shown_in_utc() -> None:
    assert show_time(1795145224492) == "2026-11-20T03:27:04Z"
