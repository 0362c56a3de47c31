"""Sizes and durations as users write them on a command line."""

from datetime import timedelta

import click

from streaming.common.units import parse_duration, parse_size


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
