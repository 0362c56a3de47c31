"""The options of how an answer is printed: a table, or JSON."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import click

P = ParamSpec("P")
R = TypeVar("R")


def with_form(command: Callable[P, R]) -> Callable[P, R]:
    """Add the options of how an answer is printed to a command, which gets ``form``: "table" or "json"."""
    form = click.Choice(("table", "json"))
    return click.option("--format", "form", type=form, default="table", show_default=True, help="Form of the output.")(with_json(command))


def with_json(command: Callable[P, R]) -> Callable[P, R]:
    """Add ``--json``, the same as ``--format json``, to a command that gets ``form``."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        if kwargs.pop("as_json"):
            kwargs["form"] = "json"
        return command(*args, **kwargs)

    decorated: Callable[P, R] = click.option("--json", "as_json", is_flag=True, help="The same as --format json.")(run)
    return decorated
