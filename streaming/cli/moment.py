"""Points in time as options give them."""

import math
from datetime import datetime

import click

_LEAST_MILLISECONDS = 1e11
"""A count of seconds of this size lies in the year 5138: it is one of milliseconds, as Kafka's tools write them."""


class Moment(click.ParamType[float]):
    """A point in time, as Unix seconds."""

    name = "time"
    accepts = "RFC 3339, Unix seconds or Unix milliseconds"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Unix seconds."""
        text = str(value)
        number = _number(text)
        if number is not None:
            return number / 1000 if abs(number) >= _LEAST_MILLISECONDS else number
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            self.fail(f"{text!r} is none of {self.accepts}, such as 2026-11-20T05:00:00Z", param, ctx)
        if moment.tzinfo is None:
            self.fail(f"{text!r} has no time zone: append Z for UTC", param, ctx)
        return moment.timestamp()


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
