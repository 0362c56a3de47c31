"""Values as people write them on a command line: points in time, durations, sizes, and what groups are used for."""

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import click

from streaming.broker.protocol.group_json import GroupUse
from streaming.common.units import parse_duration, parse_size

_LEAST_MILLISECONDS = 1e11
"""As a count of seconds, this is in the year 5138. So such a number is in milliseconds, as Kafka's tools write them."""

R = TypeVar("R")


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


class Since(Moment):
    """An option that is a point in time, or a duration before now: Unix milliseconds, or negative milliseconds."""

    accepts = f"a duration before now such as 24h, {Moment.accepts}"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Convert the value to Unix milliseconds, or to negative ones before now."""
        try:
            return -(parse_duration(str(value)) // timedelta(milliseconds=1))
        except ValueError:
            return super().convert(value, param, ctx)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


class Size(click.ParamType[int]):
    """An option that is a number of bytes, such as 1MiB."""

    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Convert the value to bytes."""
        try:
            return parse_size(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Duration(click.ParamType[int]):
    """An option that is a duration, such as 24h: milliseconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Convert the value to milliseconds."""
        try:
            return parse_duration(str(value)) // timedelta(milliseconds=1)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def with_use(command: Callable[..., R]) -> Callable[..., R]:
    """Add ``--use`` to a command, which gets ``use``: some words of `GroupUse`, none for all groups."""
    text = f"Only groups that are used like this: {', '.join(GroupUse)}."
    decorated: Callable[..., R] = click.option("--use", type=Words(*GroupUse), default=(), metavar="USE,...", help=text)(command)
    return decorated


class Words(click.ParamType[tuple[str, ...]]):
    """The words, each of which has to be one of those that there are."""

    name = "words"

    def __init__(self, *words: str) -> None:
        self._words = words

    def convert(self, value: str | tuple[str, ...], param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """The words of a text."""
        if isinstance(value, tuple):  # the default
            return value
        some = tuple(value.split(","))
        for word in some:
            if word not in self._words:
                self.fail(f'"{word}" is not one of {", ".join(self._words)}', param, ctx)
        return some
