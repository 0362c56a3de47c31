"""``--spark-checkpoint``: checkpoints of streaming queries, for commands that read log dirs."""

from collections.abc import Callable
from pathlib import PurePath
from typing import TypeVar

import click

from streaming.common.settings import Settings
from streaming.errors import UsageError
from streaming.terminal.cli.options import given, keep_setting

R = TypeVar("R")

_SETTING = "spark_checkpoints"
_HELP = (
    "The checkpoint of a Structured Streaming query that reads from this cluster, a directory of this machine: it is shown as the group "
    "spark:NAME, by default with the directory's name. Behind NAME=DIR ;isolation=read_committed if that is known. May be repeated."
)


def with_checkpoints(command: Callable[..., R]) -> Callable[..., R]:
    """Let a command take checkpoints; they are the setting `spark_checkpoints`."""
    return click.option("--spark-checkpoint", metavar="[NAME=]DIR", multiple=True, expose_value=False, callback=_keep, help=_HELP)(command)


def check_checkpoints(settings: Settings, job: str | None) -> None:
    """Check that checkpoints can be read here.

    Raises:
        UsageError: a job is asked, which has its own, or one of them needs a JVM.
    """
    from streaming.terminal.offline.local_queries import refuse_remote

    if job is None:
        refuse_remote(settings.spark_checkpoints)
    elif given(_SETTING):
        raise UsageError("--spark-checkpoint cannot be given with --job: the job answers by its own settings")


def _keep(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> None:
    if values:
        keep_setting(context, _SETTING, [_named(each, context, parameter) for each in values])


def _named(written: str, context: click.Context, parameter: click.Parameter) -> str:
    """``NAME=DIR``; of a directory alone its own name is the name."""
    before, equals, _ = written.partition("=")
    if equals and "/" not in before:
        return written
    name = PurePath(written.partition(";")[0]).name
    if not name or any(each in name for each in "=,;:"):
        raise click.BadParameter(f"{written} gives the query no name: write NAME=DIR", context, parameter)
    return f"{name}={written}"
