"""What the commands about consumer groups have in common: their options, the groups they ask for, and their exit status."""

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar
from urllib.parse import urlencode

import click

from streaming import __version__
from streaming.broker.protocol.group_json import GROUPS_PATH, GroupDetail, GroupDetailPage, GroupPage, path_of
from streaming.common.formatting import format_be, format_count, format_name
from streaming.common.settings import Settings
from streaming.common.short_names import possible_names
from streaming.errors import UsageError
from streaming.pages.listings.group_list import GROUPS
from streaming.pages.listings.listing import ASCENDING
from streaming.terminal.cli.options import log_once
from streaming.terminal.cli.sizes import Size
from streaming.terminal.cli.source import FOUND, NOT_KNOWN, NOTHING_FOUND, check_source, with_source
from streaming.terminal.cli.times import Moment

if TYPE_CHECKING:  # the code that reads the disk imports numpy and pyarrow: not for --help
    from streaming.terminal.offline.group_reading import GroupReading

P = ParamSpec("P")
R = TypeVar("R")

_OF_LOG_DIRS = ("server_properties", "group_stopped_after")
_MOST_ROWS = 1000
_HINT = ": names are given as they are, whole, without the quotes and escapes of the table"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Where the answer comes from, and what it depends on: ``at_ms`` is None for now."""

    settings: Settings
    job: str | None
    at_ms: int | None
    fetch_bytes: int

    @property
    def query(self) -> str:
        """The parameters of a request that everything is judged by."""
        at = {} if self.at_ms is None else {"at_ms": self.at_ms}
        return urlencode({**at, "fetch_bytes": self.fetch_bytes})


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupList:
    """All groups. ``coordinators``: how many logs of coordinators were read, None if that is not known, as from a job."""

    page: GroupPage
    doubts: tuple[str, ...]
    coordinators: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedGroups:
    """Some groups by their names, and those that are not there."""

    groups: GroupDetailPage
    missing: tuple[str, ...]


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


def all_groups(asked: Asked) -> GroupList:
    """All groups, the worst first.

    Raises:
        UsageError: there is neither a job nor a log dir, or an option of log dirs besides a job; or a job cannot be asked.
    """
    check_source(asked.settings, asked.job, *_OF_LOG_DIRS)
    if asked.job is not None:
        pages = [_page(asked.job, f"{asked.query}&limit={_MOST_ROWS}")]
        while sum(len(each.rows) for each in pages) < pages[0].total and pages[-1].rows:
            pages.append(_page(asked.job, f"{asked.query}&limit={_MOST_ROWS}&offset={sum(len(each.rows) for each in pages)}"))
        return GroupList(page=_joined(pages), doubts=tuple(_doubts(pages[0])), coordinators=None)
    from streaming.pages.api.paging import PageRequest

    reading = _read(asked, ())
    rows = PageRequest(sort=GROUPS.default, order=ASCENDING, limit=max(len(reading.answers.totals.names), 1))
    return GroupList(
        page=replace(reading.answers.rejudged(asked.query).page(rows), version=__version__, doubts=[*reading.doubts]),
        doubts=reading.doubts,
        coordinators=reading.coordinators,
    )


def named_groups(asked: Asked, names: Collection[str]) -> NamedGroups:
    """The groups with these names.

    Raises:
        UsageError: as for `all_groups`; or none of the groups is there.
    """
    check_source(asked.settings, asked.job, *_OF_LOG_DIRS)
    find: Callable[[str], GroupDetail | None]
    doubts: list[str] = []
    if asked.job is not None:
        find = partial(_named, asked.job, asked.query)
    else:
        reading = _read(asked, names)
        find, doubts = reading.answers.rejudged(asked.query).named, [*reading.doubts]
    there = {name: find(name) for name in dict.fromkeys(names)}
    missing = tuple(name for name, group in there.items() if group is None)
    groups = sorted((group for group in there.values() if group is not None), key=lambda each: each.summary.group)
    if asked.job is not None:
        unread = max((each.unread for each in groups), default=0)
        if missing:  # another server has no such group, either; nor has a job that does not read all coordinators' logs yet
            unread = max(unread, _page(asked.job, "limit=1").unread)
        doubts = list(_unread(unread))
    if missing and not groups and not doubts:
        raise UsageError(f"there is no group {', '.join(map(format_name, missing))}{_hint(missing)}")
    at_ms = max((each.at_ms for each in groups), default=_now_ms(asked))
    return NamedGroups(groups=GroupDetailPage(at_ms=at_ms, version=__version__, doubts=doubts, rows=groups), missing=missing)


def ended(verdicts: Collection[str], doubts: Collection[str], missing: Collection[str] = ()) -> int:
    """Print what is not known to stderr, and return the exit status.

    Args:
        verdicts: about the groups.
        missing: names of groups that are not there.
    """
    from streaming.broker.protocol.group_verdicts import FINDINGS, GroupVerdict

    every = [*(f"no group {format_name(name)} is known here{_hint([name])}" for name in missing), *doubts]
    for doubt in every:
        click.echo(f"segtail: {doubt}", err=True)
    if not FINDINGS.isdisjoint(verdicts):
        return FOUND
    return NOT_KNOWN if every or GroupVerdict.UNKNOWN.label in verdicts else NOTHING_FOUND


def _read(asked: Asked, names: Collection[str]) -> "GroupReading":
    from streaming.broker.disk.logdirs import open_log_dirs
    from streaming.common.progress_line import ProgressLine
    from streaming.terminal.offline.group_reading import read_groups

    log_once()
    with ProgressLine.on_stderr() as progress:
        return read_groups(open_log_dirs(asked.settings.log_dirs), names, asked.settings, _now_ms(asked), progress=progress.add)


def _now_ms(asked: Asked) -> int:
    return time.time_ns() // 1_000_000 if asked.at_ms is None else asked.at_ms


def _page(job: str, query: str) -> GroupPage:
    from streaming.terminal.cli import job_answers

    page = job_answers.ask(job, f"{GROUPS_PATH}?{query}", GroupPage)
    if page is None:
        raise UsageError(f"{job_answers.shown(job)}: it does not answer about consumer groups; its version may be an earlier one")
    return page


def _joined(pages: Collection[GroupPage]) -> GroupPage:
    """One page of several: a group that came or went between them is there once."""
    first = next(iter(pages))
    rows = {each.group: each for page in pages for each in page.rows}
    return replace(first, at_ms=min(page.at_ms for page in pages), rows=[*rows.values()], matched=len(rows), total=len(rows))


def _named(job: str, query: str, name: str) -> GroupDetail | None:
    from streaming.terminal.cli import job_answers

    groups = (job_answers.ask(job, f"{path_of(possible)}?{query}", GroupDetail) for possible in possible_names(name))
    return next((each for each in groups if each is not None), None)


def _doubts(page: GroupPage) -> Iterator[str]:
    yield from _unread(page.unread)
    if page.omitted:
        yield f"{format_count(page.omitted, 'group')} {format_be(page.omitted)} left out, because groups_limit is lower"


def _unread(coordinators: int) -> Iterator[str]:
    if coordinators:
        yield f"{coordinators} coordinators' logs are not read to their end from a current replica: groups of theirs may be missing"


def _hint(names: Collection[str]) -> str:
    """What to do about names that are pasted as a table shows them."""
    return _HINT if any(name.startswith('"') or "\\" in name or "...(" in name for name in names) else ""
