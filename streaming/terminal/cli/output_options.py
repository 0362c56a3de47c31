"""The options of how an answer is printed: a table that fits the terminal, one with all columns, or JSON."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import click

P = ParamSpec("P")
R = TypeVar("R")

_OUTPUTS = ("table", "wide", "json")


def with_form(command: Callable[P, R]) -> Callable[P, R]:
    """Add the options of how an answer is printed to a command, which gets ``form``: "table", "wide" or "json"."""
    words = (
        "Form of the output; a table has the columns that the terminal has room for, a wide one all, and so has one in a pipe or a file."
    )
    option = click.option("-o", "--format", "form", type=click.Choice(_OUTPUTS), default=_OUTPUTS[0], show_default=True, help=words)
    return option(with_json(command))


def with_json(command: Callable[P, R]) -> Callable[P, R]:
    """Add ``--json``, the same as ``--format json``, to a command that gets ``form``."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        if kwargs.pop("as_json"):
            kwargs["form"] = "json"
        return command(*args, **kwargs)

    decorated: Callable[P, R] = click.option("--json", "as_json", is_flag=True, help="The same as --format json.")(run)
    return decorated


def width_of(form: str) -> int | None:
    """Columns of the terminal that what is printed has to fit, None for any."""
    from streaming.terminal.cli.printing import screen_width

    return None if form == "wide" else screen_width()
