"""The option that chooses groups by who uses them."""

from collections.abc import Callable
from typing import TypeVar

import click

from streaming.broker.protocol.group_use import GroupUse
from streaming.terminal.cli.words import Words

R = TypeVar("R")


def with_use(command: Callable[..., R]) -> Callable[..., R]:
    """Add ``--use`` to a command, which gets ``use``: some words of `GroupUse`, none for all groups."""
    text = f"Only groups that are used like this: {', '.join(GroupUse)}."
    decorated: Callable[..., R] = click.option("--use", type=Words(*GroupUse), default=(), metavar="USE,...", help=text)(command)
    return decorated
