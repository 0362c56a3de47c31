"""The option that chooses groups by who uses them."""

from collections.abc import Callable
from typing import TypeVar

import click

from streaming.broker.protocol.group_json import GroupUse


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


R = TypeVar("R")


def with_use(command: Callable[..., R]) -> Callable[..., R]:
    """Add ``--use`` to a command, which gets ``use``: some words of `GroupUse`, none for all groups."""
    text = f"Only groups that are used like this: {', '.join(GroupUse)}."
    decorated: Callable[..., R] = click.option("--use", type=Words(*GroupUse), default=(), metavar="USE,...", help=text)(command)
    return decorated
