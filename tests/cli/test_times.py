"""Points in time as people write them, and as they read them."""

import click
import pytest

from streaming.terminal.cli.values import Moment
from tests.tables import each_row


def parse(text: str) -> int:
    return Moment().convert(text, None, None)


@each_row(
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


@each_row("text", ["tomorrow", "nan", "inf", ""])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is none of ISO 8601"):
        parse(text)


def test_a_number_is_milliseconds_from_a_hundred_billions_on() -> None:
    assert [parse(text) for text in ("100000000000", "99999999999")] == [100_000_000_000, 99_999_999_999_000]
