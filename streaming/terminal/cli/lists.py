"""What commands about lists have in common: their options, whom they ask, all rows of a page, and how it is printed."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial, wraps
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

import click

from streaming.broker.protocol.json_message import Message, PublicMessage
from streaming.broker.protocol.listing_json import ALL_ROWS, LARGEST_LIMIT, AwayBroker, CountPage, RetentionPage, TopicPage, TransactionPage
from streaming.common.settings import Settings
from streaming.common.units import format_age, format_list, format_name, format_time
from streaming.errors import UsageError, quoted
from streaming.kafka.formats.names import META_PROPERTIES, parse_partition_dir
from streaming.terminal.cli.options import as_paths, keep_paths
from streaming.terminal.cli.output_options import width_of
from streaming.terminal.cli.printing import echo_lines
from streaming.terminal.cli.source import check_source, with_source
from streaming.terminal.cli.values import Moment
from streaming.terminal.top.answer_sources import page_at

R = TypeVar("R")
M = TypeVar("M", bound=PublicMessage)
N = TypeVar("N", bound=Message)

TOPIC, GROUP = "topic", "group"

_NAMED = 5

Answer = Callable[[str, str], PublicMessage | None]
"""What log dirs that were read have at a path with a query, None if there is nothing."""

AT_START = {
    "count": "would first delete records that are past their limits",
    "disk": "would free what stands under Next check frees",
    "groups": "would delete records that are past retention, and offsets that have expired",
    "retention": "would delete the bytes under Reclaimable",
    "transactions": "would abort the overdue transactions",
}
"""By command what a broker would do that started now."""

_MOST_NAMED = 10


def print_list(
    page: CountPage | RetentionPage | TopicPage | TransactionPage, wanted: ListRequest, lines: Iterable[str], start: str, total: str = ""
) -> None:
    """A page as JSON; or ``lines``, those about brokers that are away (``start``: of `AT_START`), ``total``, and what cannot be told."""
    if wanted.form == "json":
        print_page(page)
    else:
        totals = [f"{total}, as far as is known here:" if page.doubts else total] if total else []
        doubts = (f"- {doubt}" for doubt in page.doubts)
        echo_lines((*lines, *away_lines(page.away, page.at_ms, start), *totals, *doubts), wanted.width)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRequest:
    """What is asked of a list: whole ``names`` of its ``noun`` (none: all), a text that rows hold, and as of when (None: now)."""

    noun: str
    names: tuple[str, ...]
    text: str
    at: int | None
    job: str | None
    form: str

    @property
    def width(self) -> int | None:
        """Columns of the terminal that what is printed has to fit, None for any."""
        return width_of(self.form)

    @property
    def now_ms(self) -> int:
        """As of when log dirs are judged, Unix milliseconds."""
        return time.time_ns() // 1_000_000 if self.at is None else self.at

    def query(self, **more: object) -> str:
        """The same as the query of a path of `/api/v1/`."""
        parameters: list[tuple[str, object]] = [(self.noun, name) for name in self.names]
        parameters += [("filter", self.text)] if self.text else []
        return urlencode([*parameters, *more.items()])


def print_page(page: PublicMessage) -> None:
    """The message as JSON, each row on a line of its own; what cannot be told on stderr, too."""
    fields = page.fields()
    rows, doubts = (value if isinstance(value, list) else [] for value in (fields.pop("rows"), fields["doubts"]))
    lines = ",\n  ".join(map(json.dumps, rows))
    click.echo(f'{json.dumps(fields)[:-1]}, "rows": [\n  {lines}\n]}}' if rows else json.dumps(fields | {"rows": []}))
    for doubt in doubts:
        click.echo(f"segtail: {doubt}", err=True)


def away_lines(away: Sequence[AwayBroker], at_ms: int, start: str) -> Iterator[str]:
    """Which brokers are away, as of when their files are, and what they would do if they started at ``at_ms``.

    Args:
        start: a phrase of `AT_START`, "" where it would do nothing.
    """
    if not away:
        return
    names = format_list([str(each.broker) for each in away], _MOST_NAMED)
    who, it = (f"Broker {names} is", "it") if len(away) == 1 else (f"Brokers {names} are", "they")
    ended = all(each.ended_ms >= 0 for each in away)
    state = "not running" if ended else "stopped, or this is a copy: nobody holds the locks of the log dirs"
    last_ms = max(each.last_ms for each in away)
    age = f" ({format_age((at_ms - last_ms) / 1000)})" if at_ms > last_ms else ""
    files = f"The files are as of the last write, {format_time(last_ms)}{age}." if last_ms >= 0 else ""
    yield " ".join(filter(None, (f"{who} {state}.", files, f"If {it} started at {format_time(at_ms)}, {it} {start}" if start else "")))


def with_list(*of_log_dirs: str) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """As `with_wanted`, for a command that answers from log dirs or from a job, and from a job as of now."""

    def decorate(command: Callable[..., R]) -> Callable[..., R]:
        @wraps(command)
        def run(settings: Settings, wanted: ListRequest, **more: object) -> R:
            check_source(wanted.job, *of_log_dirs, at=wanted.at)
            return command(settings, wanted, **more)

        return with_wanted(*of_log_dirs)(run)

    return decorate


def with_wanted(*of_log_dirs: str, noun: str = TOPIC, positional: bool = True) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Pass a command the settings and a `ListRequest`: PATH, NAME... and ``--NOUN``, ``--filter``, ``--at``, and those of `with_source`.

    Args:
        of_log_dirs: as for `with_source`.
        noun: what the names are those of.
        positional: names can also be given without an option.
    """

    def decorate(command: Callable[..., R]) -> Callable[..., R]:
        @wraps(command)
        def run(settings: Settings, job: str | None, form: str, named: tuple[str, ...], text: str, at: int | None, **more: object) -> R:
            first: Any = more.pop("names", ())
            wanted = ListRequest(noun=noun, names=tuple(dict.fromkeys((*first, *named))), text=text, at=at, job=job, form=form)
            return command(settings, wanted, **more)

        metavar = noun.upper()
        judge = "Judge as" if noun == GROUP else "Judge log dirs as"  # a job judges groups as of any time
        of_slash = f"one with a slash a PATH{' if it is a directory' if noun == GROUP else ''}"
        rule = f"a word without a slash is a {metavar} unless a directory of Kafka has that name, {of_slash}"
        only = f"Only this {noun}{f', as if it were named as {metavar} ({rule})' if positional else ''}. May be repeated."
        decorated: Any = run
        for option in (
            click.option("--at", type=Moment(), metavar="TIME", help=f"{judge} of this time: {Moment.accepts}.  [default: now]"),
            click.option("--filter", "text", default="", metavar="TEXT", help="Only rows that contain this text."),
            click.option(f"--{noun}", "named", multiple=True, metavar=metavar, help=only),
        ):
            decorated = option(decorated)
        if positional:
            named_or_path = click.argument("names", metavar=f"[PATH|{metavar}]...", nargs=-1, callback=partial(without_paths, noun))
            decorated = named_or_path(decorated)
        return with_source(*of_log_dirs, files=("history",) if noun == GROUP else ("at", "tried", "free"))(decorated)

    return decorate


def without_paths(noun: str, context: click.Context, _parameter: click.Parameter, words: tuple[str, ...]) -> tuple[str, ...]:
    """The words that are names; those that are paths count as log dirs."""
    paths = [word for word in words if _is_path(noun, word)]
    keep_paths(context, paths)
    return tuple(word for word in words if word not in paths)


def _is_path(noun: str, word: str) -> bool:
    """No topic's name has a slash. A group's may have anything, so what has one is a path if it begins like one, or is a directory. Without
    a slash it is one only where Kafka's files are.
    """
    if "/" not in word:
        return word in (".", "..") or all(map(_is_of_kafka, as_paths(word)))
    begins_so = word.startswith(("/", "./", "../"))
    return begins_so or noun == TOPIC or all(Path(each).is_dir() for each in as_paths(word))


def _is_of_kafka(name: str) -> bool:
    """Whether it is a log dir, or a directory with some."""
    is_there = os.path.isdir(name)  # noqa: PTH112 - also of a name that no path may have, as one that is too long
    return is_there and any(any(Path(name).glob(each)) for each in (META_PROPERTIES, f"*/{META_PROPERTIES}"))


def source_of(settings: Settings, wanted: ListRequest, path: str) -> ListSource:
    """A job, or log dirs of which what the list at a path needs is read."""
    if wanted.job is not None:
        return ListSource(wanted, None)
    from streaming.broker.disk.log_dir_search import open_below
    from streaming.common.progress_line import ProgressLine
    from streaming.terminal.offline.everything import read_list

    log_dirs = open_below(settings.log_dirs)
    with ProgressLine.on_stderr() as progress:
        read = read_list(path, log_dirs, wanted.names, settings, wanted.at, progress.add)
    return ListSource(wanted, read.answer, settings.log_dirs)


class ListSource:
    """A job, or log dirs that have been read. ``answer``: of the reading, None to ask ``wanted.job``. ``log_dirs``: what was read."""

    def __init__(self, wanted: ListRequest, answer: Answer | None, log_dirs: Sequence[Path] = ()) -> None:
        self._wanted = wanted
        self._log_dirs = log_dirs
        self._answer = answer

    def page(self, path: str, kind: type[M], most: int = ALL_ROWS, **more: object) -> M:
        """The page at a path with all rows that are asked for, ``most`` at most; they come as the list is sorted.

        Args:
            more: parameters besides those of `ListRequest`.

        Raises:
            UsageError: no job answers, or not about this.
        """
        page: Any = self._rows(self._wanted, path, kind, most, more)
        if "by" in more and page.by != more["by"]:
            raise UsageError(f"the job's answer is not understood: its rows are by {quoted(page.by)}, and not by {more['by']}")
        return page  # type: ignore[no-any-return]

    def check_names(self, path: str, kind: type[M], doubts: Sequence[str], **more: object) -> None:
        """Check that each topic that was named has a row in the list at a path, whatever text it holds, if everything could be read.

        Raises:
            UsageError: one has none.
        """
        if self._wanted.names and not doubts:
            page: Any = self._rows(replace(self._wanted, text=""), path, kind, ALL_ROWS, more)
            check_topics(self._wanted, {row.topic for row in page.rows}, doubts, partial(self._topics, path, kind, more))

    def _topics(self, path: str, kind: type[M], more: Mapping[str, object]) -> set[str]:
        """All topics, of which an answer about some has only these."""
        if self._answer is not None:
            return topics_here(self._log_dirs)
        every: Any = self._rows(replace(self._wanted, names=(), text=""), path, kind, ALL_ROWS, more)
        return {row.topic for row in every.rows}

    def single(self, path: str, kind: type[M], **more: object) -> M | None:
        """The single thing at a path, None if there is none.

        Raises:
            UsageError: no job answers.
        """
        return self._ask(f"{path}?{urlencode(more)}", kind)

    def _rows(self, wanted: ListRequest, path: str, kind: type[M], most: int, more: Mapping[str, object]) -> M:
        limit = LARGEST_LIMIT if self._answer is None else ALL_ROWS
        pages: list[Any] = []
        read = 0
        while not pages or (pages[-1].rows and read < min(most, pages[0].matched)):
            query = wanted.query(**more, offset=read, limit=min(limit, most - read))
            pages.append(page_at(self._name, self._ask, f"{path}?{query}", kind))
            read += len(pages[-1].rows)
        rows = {_identity(row): row for page in pages for row in page.rows}
        whole: M = replace(pages[0], at_ms=min(page.at_ms for page in pages), rows=[*rows.values()])
        return whole if pages[1:] else pages[0]

    @property
    def _name(self) -> str:
        if self._wanted.job is None:
            return "the log dirs"
        from streaming.terminal.cli.job_answers import shown

        return f"the job at {shown(self._wanted.job)}"

    def _ask(self, path: str, kind: type[N], /) -> N | None:
        if self._wanted.job is not None:
            from streaming.terminal.cli.job_answers import ask

            return ask(self._wanted.job, path, kind)
        assert self._answer is not None
        where, _, query = path.partition("?")
        message = self._answer(where, query)
        assert message is None or isinstance(message, kind)
        return message


def check_topics(wanted: ListRequest, present: Collection[str], doubts: Sequence[str], topics: Callable[[], Iterable[str]]) -> None:
    """Check that each topic that was named has a partition, if everything could be read.

    Args:
        topics: asked for the names of all topics if one has none.

    Raises:
        UsageError: one has none.
    """
    missing = sorted({*wanted.names} - {*present})
    if missing and not doubts:
        where = "in these log dirs" if wanted.job is None else "where that job looks"
        every = {*topics()}
        for name in missing:
            log = parse_partition_dir(name)
            if log is not None and log.topic in every:
                raise UsageError(f"{name} is partition {log.partition} of topic {log.topic}: name the topic")
        raise UsageError(
            f"no partition of {format_list([format_name(each) for each in missing], _NAMED)} lies {where}{similar_words(missing, every)}"
        )


def similar_words(missing: Iterable[str], others: Iterable[str]) -> str:
    """The names that are there and nearly those that are not, as the end of a sentence; "" if there are none."""
    every = list(others)
    near = dict.fromkeys(each for name in missing for each in get_close_matches(name, every, n=_NAMED))
    return f"; similar: {format_list([format_name(each) for each in near], _NAMED)}" if near else ""


def topics_here(log_dirs: Sequence[Path]) -> set[str]:
    """The topics that log dirs have directories of."""
    from streaming.broker.disk.log_dir_search import open_below
    from streaming.broker.disk.logdirs import list_partitions

    return {each.topic for log_dir in open_below(log_dirs).available for each in list_partitions(log_dir, lambda _: "")}


def _identity(row: object) -> tuple[object, ...]:
    """What a row is about: one that has moved between two answers is there once."""
    return tuple(
        getattr(row, name, None) for name in ("group", "topic", "partition", "broker", "log_dir", "producer_id", "first_offset", "offset")
    )
