"""Where `top` gets its answers: from a job, or from log dirs by one reading, kept until another one is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import unquote, urlencode

from streaming.broker.protocol.group_json import GroupDetail, GroupPage, doubts_of_page, path_of
from streaming.broker.protocol.json_message import ASC, DESC, Message
from streaming.broker.protocol.listing_json import PARTITIONS_PATH, PartitionDetail, TransactionPage, path_of_partition
from streaming.broker.protocol.status_json import STATUS_PATH, EventPage, Status
from streaming.common.units import format_time
from streaming.errors import NotYetError, UsageError
from streaming.pages.listings.declared_lists import LISTS, admin_since, open_long
from streaming.terminal.top.questions import Answer, Content, Detail, DetailAnswer, DetailQuestion, ListName, ListQuestion, Question, Rows

if TYPE_CHECKING:  # it imports what reads the disk, which a job's screen does not need
    from streaming.pages.api.state import State


M = TypeVar("M", bound=Message)


class DirSource:
    """Asks a reading what a job is asked, by the same paths. ``read``: reads the log dirs. Raises `SegtailError`."""

    name = "the log dirs"

    def __init__(self, read: Callable[[], State]) -> None:
        self._read = read
        self._state: State | None = None

    def ask(self, question: Question, *, again: bool) -> Answer:
        """Answer from the last reading, or from a new one; see `AnswerSource`."""
        if again or self._state is None:
            self._state = self._read()
        state = self._state

        def find(path: str, kind: type[M]) -> M | None:
            message = _message(state, path)
            return message if isinstance(message, kind) else None

        return JobSource(self.name, find).ask(question, again=again)


def _message(state: State, path: str) -> Message | None:
    """What a job would answer at a path with its query."""
    where, _, query = path.partition("?")
    if (message := state.answer(where, query)) is not None:
        return message
    *_, topic, last = map(unquote, where.split("/"))
    if where.startswith(f"{PARTITIONS_PATH}/"):
        return state.partition(topic, int(last))
    return state.group(last, query)


class JobSource:
    """A job, by a function that asks it.

    Answers from a job: its lists and details, sorted, filtered and cut to pages by the job.
    """

    def __init__(self, name: str, ask: JobCall) -> None:
        self.name = name
        self._ask = ask

    def ask(self, question: Question, *, again: bool) -> Answer:
        """Answer with what the job knows now; see `AnswerSource`."""
        status = self._page(STATUS_PATH, Status)
        content: Content
        if isinstance(question, DetailQuestion):
            detail: Detail | None
            if question.topic:
                detail = self._ask(path_of_partition(question.topic, question.partition), PartitionDetail)
            else:
                detail = self._ask(path_of(question.group), GroupDetail)
            content = DetailAnswer(question=question, detail=detail)
        else:
            content = self._rows(question)
        return Answer(status=status, content=content)

    def _page(self, path: str, kind: type[M]) -> M:
        return page_at(self.name, self._ask, path, kind)

    def _rows(self, question: ListQuestion) -> Rows:
        listing = LISTS[question.view]
        try:
            page: Any = self._page(f"{listing.path}?{_query(question)}", listing.page)
        except NotYetError as error:  # of everything else it may know all
            nothing = Rows(question=question, at_ms=-1, total=0, matched=0, offset=0, rows=(), sort=question.sort)
            return replace(nothing, descending=question.descending, notes=(f"{error}.",))
        return Rows(
            question=question,
            at_ms=page.at_ms,
            total=page.total,
            matched=page.matched,
            offset=page.offset,
            rows=tuple(page.rows),
            sort=getattr(page, "sort", ""),
            descending=getattr(page, "order", ASC) == DESC,
            notes=tuple(_notes(page)),
            page=page,
        )


class JobCall(Protocol):
    """Asks the job for what is at a path; None if there is nothing. Raises `SegtailError`."""

    def __call__(self, path: str, kind: type[M], /) -> M | None: ...


def page_at(name: str, ask: JobCall, path: str, kind: type[M]) -> M:
    """What is at a path that every job has.

    Raises:
        UsageError: there is nothing.
    """
    page = ask(path, kind)
    if page is None:
        raise UsageError(f"{name} has no {path.partition('?')[0]}: its version may be an earlier one, or it is no job")
    return page


def _query(question: ListQuestion) -> str:
    order = {"sort": question.sort, "order": DESC if question.descending else ASC} if question.sort else {}
    words = {name: word for name, word in (("filter", question.filter), ("use", question.use)) if word}
    roots = {"roots": "true"} if question.view is ListName.PROBLEMS else {}
    return urlencode({**order, **words, **roots, "offset": question.offset, "limit": question.limit})


def _notes(page: Message) -> Iterator[str]:
    """What is left out of a list, or not known of it, in sentences."""
    if isinstance(page, TransactionPage):
        if page.omitted > 0:
            yield f"{page.omitted:,} more are only counted: late_limit is lower."
        if page.young:
            yield f"Listed are only transactions {open_long(page.late_after_ms, page.young)}."
    if isinstance(page, GroupPage):
        yield from (f"{doubt}." for doubt in doubts_of_page(page))
    if isinstance(page, EventPage):
        yield f"Changes since {format_time(page.since_ms)}." if page.since_ms >= 0 else "Only a running job sees what else changes."
        yield admin_since(page)
