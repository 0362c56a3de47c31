"""What the commands about consumer groups have in common: their options, the groups they ask for, and their exit status."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import PurePath
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlencode

import click

from streaming import __version__
from streaming.broker.protocol.group_json import (
    FINDINGS,
    GROUPS_PATH,
    GroupDetail,
    GroupDetailPage,
    GroupPage,
    GroupVerdict,
    ReadMoments,
    doubts_of_groups,
    doubts_of_page,
    is_finding,
    path_of,
)
from streaming.broker.protocol.group_json import NOT_KNOWN as UNKNOWN_VERDICTS
from streaming.broker.protocol.listing_json import ALL_ROWS
from streaming.common.settings import Settings
from streaming.common.short_names import possible_names
from streaming.common.units import format_list, format_name
from streaming.errors import UsageError
from streaming.terminal.cli.lists import GROUP, ListRequest, ListSource, similar_words, with_wanted
from streaming.terminal.cli.options import given, keep_setting
from streaming.terminal.cli.source import FOUND, NOT_KNOWN, NOTHING_FOUND, check_source
from streaming.terminal.cli.values import Size, with_use

if TYPE_CHECKING:  # the code that reads the disk imports numpy and pyarrow: not for --help
    from streaming.terminal.offline.group_reading import GroupReading


R = TypeVar("R")

_SETTING = "spark_checkpoints"
_HELP = (
    "The checkpoint of a Structured Streaming query that reads from this cluster, a directory of this machine: it is shown as the group "
    "spark:NAME, by default with the directory's name. Behind NAME=DIR ;isolation=read_committed if that is known. May be repeated."
)

_OF_LOG_DIRS = ("server_properties", "group_stopped_after")
_HISTORY = "Show what the coordinators' logs still have of these groups: commits, generations, and what moved their offsets."
NO_ENDS: Mapping[str, str] = {}
_HINT = ": names are given as they are, whole, without the quotes and escapes of the table"

History = Callable[[Settings, ListRequest], int]
"""Prints the history of the groups that are named; returns the exit status."""


class GroupSource:
    """A job, or log dirs that have been read, asked for consumer groups."""

    def __init__(self, settings: Settings, wanted: ListRequest, fetch_bytes: int, use: str = "") -> None:
        self._settings, self._wanted = settings, wanted
        self._chosen = {"use": use} if use else {}
        self._is_about_all = not (wanted.names or wanted.text or use)
        self._judged_by = {"fetch_bytes": fetch_bytes} | ({} if wanted.at is None else {"at_ms": wanted.at})
        self._reading = None if wanted.job is not None else _read(settings, wanted)
        answer = None if self._reading is None else self._reading.judged_by(urlencode(self._judged_by)).answer
        self._list = ListSource(replace(wanted, names=()), answer)
        self._unread: list[str] = []  # of which groups it is not known whether they had something left to read of deleted topics

    @property
    def of_log_dirs(self) -> Settings | None:
        """By what log dirs were read; None if a job was asked."""
        return None if self._reading is None else self._settings

    @property
    def read(self) -> ReadMoments | None:
        """When log dirs were read; None if a job was asked, or for what was at another time: a copy does not move."""
        return None if self._reading is None or self._wanted.at is not None else self._reading.answers.read

    def all(self) -> GroupList:
        """All groups that hold the text, the worst first.

        Raises:
            UsageError: a job cannot be asked.
        """
        page = self._page()
        if self._reading is None:
            return GroupList(page=page, doubts=tuple(doubts_of_page(page)))
        return GroupList(page=replace(page, read=self.read), doubts=self._reading.doubts)

    def named(self) -> NamedGroups:
        """The groups with the names that are asked for; of them those that hold the text. Where nothing is asked for, all in trouble.

        Raises:
            UsageError: as for `all`; or none of the groups that are named is there.
        """
        wanted = self._wanted
        page = self._page() if wanted.text or self._chosen or not wanted.names else None
        holding = (
            None
            if page is None
            else [row.group for row in page.rows if not self._is_about_all or is_finding(row) or row.verdict in UNKNOWN_VERDICTS]
        )
        names = wanted.names or holding or ()
        details = {name: self._detail(name) for name in names}
        missing = tuple(name for name, group in details.items() if group is None) if wanted.names else ()
        groups = [group for group in details.values() if group is not None and (holding is None or group.summary.group in holding)]
        doubts = self._doubts(page, groups, missing)
        empty = [each.summary.group for each in groups if each.summary.verdict == GroupVerdict.NO_OFFSETS.label]
        ends = self._ends((*missing, *empty), missing)
        groups, doubts = [_with_end(each, ends.get(each.summary.group, "")) for each in groups], [*doubts, *self._unread]
        if missing and not groups and not doubts:
            similar = similar_words(missing, {*self._known()} - {*missing})
            names_of = ", ".join(format_name(each) + (f" any more: {ends[each]}" if each in ends else "") for each in missing)
            raise UsageError(f"there is no group {names_of}{similar}{_hint(missing)}")
        at_ms = max((each.at_ms for each in groups), default=wanted.now_ms)
        if not self._is_about_all:  # those come with the worst first
            groups.sort(key=lambda each: each.summary.group)
        away = [*self._reading.away] if self._reading is not None else (page or self._page(1)).away
        named = GroupDetailPage(at_ms=at_ms, version=__version__, doubts=doubts, rows=groups, read=self.read, away=away)
        if page is None or not self._is_about_all:
            return NamedGroups(groups=named, missing=missing, total=0 if page is None else page.total, ends=ends)
        return NamedGroups(groups=named, missing=missing, total=0, every=page, calm=page.total - len(names))

    def _ends(self, names: Collection[str], gone: Collection[str]) -> dict[str, str]:
        """What became of groups that are not there, or of the offsets of others, as far as their coordinators' logs still show it: a job
        does not have them.
        """
        if not names or self._reading is None:
            return {}
        from streaming.broker.disk.log_dir_search import open_below
        from streaming.terminal.cli.group_report import UNREAD_NOT_ON_DISK, deleted_topics, end_of
        from streaming.terminal.offline.group_history import read_histories

        page, topic_ends = (
            read_histories(open_below(self._settings.log_dirs), names, self._wanted.at),
            self._reading.answers.causes.topic_ends,
        )
        for row in page.rows:
            if topics := deleted_topics(row, topic_ends):
                named = format_list([format_name(each) for each in topics], 3)
                self._unread.append(f"group {format_name(row.group)}: topic {named} was deleted: {UNREAD_NOT_ON_DISK}")
        ends = ((row.group, end_of(row, page.at_ms, topic_ends, remains=row.group not in gone)) for row in page.rows)
        return {group: end for group, end in ends if end}

    def _known(self) -> Collection[str]:
        """The names of all groups: log dirs were read for those that were named alone."""
        if self._reading is None:
            return [row.group for row in self._list.page(GROUPS_PATH, GroupPage).rows]
        from streaming.broker.disk.log_dir_search import open_below
        from streaming.terminal.offline.group_history import group_names

        return group_names(open_below(self._settings.log_dirs), self._settings)

    def _page(self, most: int = ALL_ROWS) -> GroupPage:
        return self._list.page(GROUPS_PATH, GroupPage, most, **self._judged_by, **self._chosen)

    def _detail(self, name: str) -> GroupDetail | None:
        groups = (self._list.single(path_of(possible), GroupDetail, **self._judged_by) for possible in possible_names(name))
        return next((each for each in groups if each is not None), None)

    def _doubts(self, page: GroupPage | None, groups: Collection[GroupDetail], missing: Collection[str]) -> list[str]:
        if self._reading is not None:
            return [*self._reading.doubts]
        if missing and page is None:  # another server has no such group, either, and a job may not have read all coordinators' logs yet
            page = self._page(1)
        return list(doubts_of_groups(groups, page))


def _read(settings: Settings, wanted: ListRequest) -> GroupReading:
    from streaming.broker.disk.log_dir_search import open_below
    from streaming.common.progress_line import ProgressLine
    from streaming.terminal.offline.group_reading import read_groups

    with ProgressLine.on_stderr() as progress:
        return read_groups(open_below(settings.log_dirs), wanted.names, settings, wanted.at, progress=progress.add)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupList:
    """All groups that are asked for."""

    page: GroupPage
    doubts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedGroups:
    """Some groups with their partitions, and the names of those that are not there."""

    groups: GroupDetailPage
    missing: tuple[str, ...]
    total: int  # of so many groups they were chosen, 0 if each was named
    ends: Mapping[str, str] = field(default_factory=dict)  # what became of some that are missing
    every: GroupPage | None = None  # where the user has chosen no groups, the page of all
    calm: int = 0  # so many of these are left out because nothing is wrong with them


def _with_end(group: GroupDetail, end: str) -> GroupDetail:
    """A group that has no offsets, with what became of them."""
    return replace(group, findings=[replace(each, text=f"{each.text}: {end}") for each in group.findings]) if end else group


def _hint(names: Collection[str]) -> str:
    """What to do about names that are pasted as a table shows them."""
    return _HINT if any(name.startswith('"') or "\\" in name or "...(" in name for name in names) else ""


def with_groups(*, history: History | None = None) -> Callable[[Callable[[GroupSource, ListRequest], R]], Callable[..., R | int]]:
    """Pass a command the `GroupSource` and the `ListRequest` of its options.

    Args:
        history: what ``--history`` does instead, None if there is no such option.
    """

    def decorate(command: Callable[[GroupSource, ListRequest], R]) -> Callable[..., R | int]:
        @wraps(command)
        def run(settings: Settings, wanted: ListRequest, fetch_bytes: int, use: tuple[str, ...], **more: bool) -> R | int:
            check_source(wanted.job, *_OF_LOG_DIRS)
            check_checkpoints(settings, wanted.job)
            if history is not None and more.get("history"):
                return history(settings, wanted)
            return command(GroupSource(settings, wanted, fetch_bytes, ",".join(use)), wanted)

        option = click.option(
            "--fetch-bytes", type=Size(), default="1MiB", show_default=True, help="max.partition.fetch.bytes of the consumers."
        )
        decorated = option(with_use(run))
        decorated = with_checkpoints(decorated)
        if history is not None:
            decorated = click.option("--history", is_flag=True, help=_HISTORY)(decorated)
        return with_wanted(*_OF_LOG_DIRS, noun=GROUP)(decorated)

    return decorate


def check_checkpoints(settings: Settings, job: str | None) -> None:
    """Check that checkpoints can be read here.

    Raises:
        UsageError: a job is asked, which has its own, or one of them needs a JVM.
    """
    if job is None:
        from streaming.terminal.offline.group_reading import refuse_remote

        refuse_remote(settings.spark_checkpoints)
    elif given(_SETTING):
        raise UsageError("--spark-checkpoint cannot be given with --job: the job answers by its own settings")


def with_checkpoints(command: Callable[..., R]) -> Callable[..., R]:
    """Let a command take checkpoints; they are the setting `spark_checkpoints`."""
    return click.option("--spark-checkpoint", metavar="[NAME=]DIR", multiple=True, expose_value=False, callback=_keep, help=_HELP)(command)


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


def ended(
    verdicts: Collection[str], doubts: Collection[str], missing: Collection[str] = (), *, total: int, ends: Mapping[str, str] = NO_ENDS
) -> int:
    """Print what is not known to stderr, and return the exit status. That nothing is chosen is said too, and is no error.

    Args:
        verdicts: about the groups.
        missing: names of groups that are not there; ``ends``: what became of some of them.
        total: of so many groups they were chosen.
    """
    known = {name: f": {end}" for name, end in ends.items()}
    every = [*(f"no group {format_name(name)} is known here{known.get(name, _hint([name]))}" for name in missing), *doubts]
    chosen_none = [f"no group of {total:,} is one that was asked for"] if total and not verdicts else []
    for line in (*every, *chosen_none):
        click.echo(f"segtail: {line}", err=True)
    if not FINDINGS.isdisjoint(verdicts):
        return FOUND
    return NOT_KNOWN if every or not UNKNOWN_VERDICTS.isdisjoint(verdicts) else NOTHING_FOUND
