"""What commands about lists have in common: their options, whom they ask, all rows of a page, and how it is printed."""

import json
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Protocol, TypeVar
from urllib.parse import urlencode

import click

from streaming.broker.protocol.json_message import PublicMessage
from streaming.broker.protocol.listing_json import ALL_ROWS, LARGEST_LIMIT
from streaming.common.formatting import format_list
from streaming.common.settings import Settings
from streaming.errors import UsageError
from streaming.terminal.cli.job_answers import ask, shown
from streaming.terminal.cli.source import check_source, with_source
from streaming.terminal.cli.times import Moment

R = TypeVar("R")
M = TypeVar("M", bound=PublicMessage)

_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is asked of a list: whole names of ``topics`` (none: all), a text that rows hold, and as of when (None: now)."""

    topics: tuple[str, ...]
    text: str
    at: int | None
    job: str | None
    form: str

    @property
    def now_ms(self) -> int:
        """As of when log dirs are judged, Unix milliseconds."""
        return time.time_ns() // 1_000_000 if self.at is None else self.at

    def query(self, **more: object) -> str:
        """The same as the query of a path of `/api/v1/`."""
        parameters: list[tuple[str, object]] = [("topic", topic) for topic in self.topics]
        parameters += [("filter", self.text)] if self.text else []
        return urlencode([*parameters, *more.items()])


def with_list(*of_log_dirs: str) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Pass a command the settings and a `Wanted`: TOPIC... and ``--topic``, ``--filter``, ``--at``, ``--job`` and the form of the output.

    Args:
        of_log_dirs: settings besides ``log_dirs`` that are options of the command, and that only an answer from log dirs needs.
    """

    def decorate(command: Callable[..., R]) -> Callable[..., R]:
        @wraps(command)
        def run(
            settings: Settings,
            job: str | None,
            form: str,
            names: tuple[str, ...],
            topics: tuple[str, ...],
            text: str,
            at: int | None,
            **more: object,
        ) -> R:
            check_source(settings, job, *of_log_dirs)
            if job is not None and at is not None:
                raise UsageError("--at cannot be given with --job: a job says what is so now")
            wanted = Wanted(topics=tuple(dict.fromkeys((*names, *topics))), text=text, at=at, job=job, form=form)
            return command(settings, wanted, **more)

        decorated: Any = run
        for option in (
            click.option("--at", type=Moment(), metavar="TIME", help=f"Judge log dirs as of this time: {Moment.accepts}.  [default: now]"),
            click.option("--filter", "text", default="", metavar="TEXT", help="Only rows that hold this text."),
            click.option("--topic", "topics", multiple=True, metavar="TOPIC", help="Only this topic, as if it were named as TOPIC."),
            click.argument("names", metavar="[TOPIC]...", nargs=-1),
        ):
            decorated = option(decorated)
        return with_source(*of_log_dirs)(decorated)

    return decorate


class Answers(Protocol):
    """Whoever answers: a reading of log dirs."""

    def answer(self, path: str, query: str = "", /) -> PublicMessage | None:
        """What is at a path, None if there is nothing."""
        ...


class ListSource:
    """A job, or log dirs that have been read.

    Args:
        answers: the reading, None to ask ``wanted.job``.
    """

    def __init__(self, wanted: Wanted, answers: Answers | None) -> None:
        self._wanted = wanted
        self._answers = answers

    def page(self, path: str, kind: type[M], **more: object) -> M:
        """The page at a path with all rows that are asked for, and those that ``more`` says: they come as the list is sorted.

        Raises:
            UsageError: nobody answers, or not about this.
        """
        limit = LARGEST_LIMIT if self._answers is None else ALL_ROWS
        first: Any = self._ask(path, kind, offset=0, limit=limit, **more)
        rows = list(first.rows)
        while len(rows) < first.matched:
            following: Any = self._ask(path, kind, offset=len(rows), limit=limit, **more)
            if not following.rows:
                break
            rows += following.rows
        whole: M = replace(first, rows=rows)
        return whole

    def _ask(self, path: str, kind: type[M], **more: object) -> M:
        query = self._wanted.query(**more)
        if self._answers is not None:
            message = self._answers.answer(path, query)
            assert isinstance(message, kind)
            return message
        assert self._wanted.job is not None
        answer = ask(self._wanted.job, f"{path}?{query}", kind)
        if answer is None:
            raise UsageError(f"{shown(self._wanted.job)} has no {path}: its version may be an earlier one, or it is no job")
        return answer


def check_topics(wanted: Wanted, present: Collection[str], doubts: Sequence[str]) -> None:
    """Check that each topic that was named has a partition, if everything could be read.

    Raises:
        UsageError: one has none.
    """
    missing = sorted({*wanted.topics} - {*present})
    if missing and not doubts:
        where = "in these log dirs" if wanted.job is None else "where that job looks"
        raise UsageError(f"no partition of {format_list(missing, _NAMED)} lies {where}")


def print_page(page: PublicMessage) -> None:
    """The message as JSON, each row on a line of its own; what cannot be told on stderr, too."""
    fields = page.fields()
    rows, doubts = (value if isinstance(value, list) else [] for value in (fields.pop("rows"), fields["doubts"]))
    lines = ",\n  ".join(map(json.dumps, rows))
    click.echo(f'{json.dumps(fields)[:-1]}, "rows": [\n  {lines}\n]}}' if rows else json.dumps(fields | {"rows": []}))
    for doubt in doubts:
        click.echo(f"segtail: {doubt}", err=True)
