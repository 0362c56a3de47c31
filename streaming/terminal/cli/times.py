"""Points in time as users write them on a command line."""

import math
from datetime import UTC, datetime

import click

_LEAST_MILLISECONDS = 1e11
"""As a count of seconds, this is in the year 5138. So such a number is in milliseconds, as Kafka's tools write them."""


class Moment(click.ParamType[int]):
    """An option that is a point in time: Unix milliseconds."""

    name = "time"
    accepts = "ISO 8601 (UTC unless it says otherwise), Unix seconds or Unix milliseconds"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Convert the value to Unix milliseconds."""
        text = str(value)
        number = _number(text)
        if number is not None:
            return round(number if abs(number) >= _LEAST_MILLISECONDS else number * 1000)
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            self.fail(f"{text!r} is none of {self.accepts}, such as 2026-11-20T06:00:00Z", param, ctx)
        return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
