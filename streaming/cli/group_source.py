"""What the commands about consumer groups have in common: their options, the groups they ask for, and their exit status."""

import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import click

from streaming.cli.options import log_once
from streaming.cli.sizes import Size
from streaming.cli.source import FOUND, NOT_KNOWN, NOTHING_FOUND, check_source, with_source
from streaming.cli.times import Moment
from streaming.errors import UsageError
from streaming.formatting import format_name
from streaming.settings import Settings

if TYPE_CHECKING:  # the code that reads the disk imports numpy and pyarrow: not for --help
    from streaming.offline.group_answer import GroupAnswer
    from streaming.verdicts.group_verdicts import Bounds

P = ParamSpec("P")
R = TypeVar("R")

_OF_LOG_DIRS = ("server_properties", "group_stopped_after")


def with_groups(command: Callable[Concatenate[Settings, P], R]) -> Callable[P, R]:
    """Add the options of where the answer comes from and how it is printed to a command."""
    for option in reversed(
        (
            click.option("--at", type=Moment(), metavar="TIME", help=f"Judge as of this time: {Moment.accepts}.  [default: now]"),
            click.option(
                "--fetch-bytes", type=Size(), default="1MiB", show_default=True, help="max.partition.fetch.bytes of the consumers."
            ),
        )
    ):
        command = option(command)
    return with_source(*_OF_LOG_DIRS)(command)


def answer(settings: Settings, job: str | None, names: Collection[str], at: int | None, *, whole: bool) -> "tuple[GroupAnswer, int]":
    """The groups with these names, or all, and the time as of which they are judged, Unix milliseconds.

    Args:
        whole: all groups are wanted with their partitions, also those that have read everything.

    Raises:
        UsageError: there is neither a job nor a log dir, or an option of log dirs besides a job; or none of the groups is there.
    """
    check_source(settings, job, *_OF_LOG_DIRS)
    if job is not None:
        from streaming.cli.job_groups import ask

        found = ask(job, names, whole=whole)
        now_ms = max((each.at_ms for each in found.groups), default=0) if at is None else at
    else:
        from streaming.disk.logdirs import open_log_dirs
        from streaming.offline.group_reading import read_groups
        from streaming.progress_line import ProgressLine

        log_once()
        now_ms = time.time_ns() // 1_000_000 if at is None else at
        with ProgressLine.on_stderr() as progress:
            found = read_groups(open_log_dirs(settings.log_dirs), names, settings, now_ms, progress=progress.add)
    if found.missing and not found.groups and not found.doubts:
        raise UsageError(f"there is no group {', '.join(map(format_name, found.missing))}{_hint(found.missing)}")
    return found, now_ms


def _hint(names: Collection[str]) -> str:
    """What to do about names that are pasted as a table shows them."""
    pasted = any(name.startswith('"') or "\\" in name or "...(" in name for name in names)
    return ": names are given as they are, whole, without the quotes and escapes of the table" if pasted else ""


def ended(found: "GroupAnswer", now_ms: int, bounds: "Bounds") -> int:
    """Print what is not known to stderr, and return the exit status."""
    from streaming.verdicts.group_verdicts import Kind, worst

    kinds = [worst(each, now_ms, bounds) for each in found.groups]
    doubts = [*(f"no group {format_name(name)} is known here{_hint([name])}" for name in found.missing), *found.doubts]
    for doubt in doubts:
        click.echo(f"segtail: {doubt}", err=True)
    if any(kind.found for kind in kinds):
        return FOUND
    return NOT_KNOWN if doubts or Kind.UNKNOWN in kinds else NOTHING_FOUND
