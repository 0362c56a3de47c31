"""Answers from a job: its lists and details, sorted, filtered and cut to pages by the job."""

from collections.abc import Callable
from typing import Protocol, TypeVar
from urllib.parse import urlencode

from streaming.broker.protocol.group_doubts import doubts_of_page
from streaming.broker.protocol.group_json import GROUPS_PATH, GroupDetail, GroupPage, path_of
from streaming.broker.protocol.json_message import Message
from streaming.broker.protocol.listing_json import (
    PARTITIONS_PATH,
    RETENTION_PATH,
    TRANSACTIONS_PATH,
    ListPage,
    PartitionDetail,
    PartitionPage,
    RetentionPage,
    TransactionPage,
    path_of_partition,
)
from streaming.broker.protocol.status_json import EVENTS_PATH, PROBLEMS_PATH, STATUS_PATH, EventPage, ProblemPage, Status
from streaming.common.formatting import format_time
from streaming.errors import NotYetError, UsageError
from streaming.pages.listings.transaction_list import open_long
from streaming.terminal.top.questions import (
    Answer,
    Content,
    Detail,
    DetailAnswer,
    DetailQuestion,
    ListName,
    ListQuestion,
    Question,
    Row,
    Rows,
)

M = TypeVar("M", bound=Message)


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


class JobSource:
    """A job, by a function that asks it."""

    def __init__(self, name: str, ask: JobCall) -> None:
        self.name = name
        self._ask = ask

    def ask(self, question: Question, *, again: bool) -> Answer:
        """Answer with what the job knows now; see `AnswerSource`."""
        status = self._page(STATUS_PATH, Status)
        content: Content
        if isinstance(question, DetailQuestion):
            content = self._found(question)
        else:
            content = _READERS[question.view](self, question)
        return Answer(status=status, content=content)

    def _page(self, path: str, kind: type[M]) -> M:
        return page_at(self.name, self._ask, path, kind)

    def _found(self, subject: DetailQuestion) -> DetailAnswer:
        detail: Detail | None
        if subject.topic:
            detail = self._ask(path_of_partition(subject.topic, subject.partition), PartitionDetail)
        else:
            detail = self._ask(path_of(subject.group), GroupDetail)
        return DetailAnswer(question=subject, detail=detail)

    def _problems(self, question: ListQuestion) -> Rows:
        page = self._page(f"{PROBLEMS_PATH}?{_query(question)}&roots=true", ProblemPage)
        return Rows(
            question=question,
            at_ms=page.at_ms,
            total=page.total,
            matched=page.matched,
            offset=page.offset,
            rows=tuple(page.rows),
            page=page,
        )

    def _partitions(self, question: ListQuestion) -> Rows:
        page = self._page(f"{PARTITIONS_PATH}?{_query(question)}", PartitionPage)
        return _rows(question, page, tuple(page.rows))

    def _transactions(self, question: ListQuestion) -> Rows:
        page = self._page(f"{TRANSACTIONS_PATH}?{_query(question)}", TransactionPage)
        omitted = [f"{page.omitted:,} more are only counted: late_limit is lower."] if page.omitted > 0 else []
        young = [f"Listed is what is {open_long(page.late_after_ms, page.young)}."] if page.young else []
        return _rows(question, page, tuple(page.rows), (*omitted, *young))

    def _retention(self, question: ListQuestion) -> Rows:
        page = self._page(f"{RETENTION_PATH}?{_query(question)}", RetentionPage)
        return _rows(question, page, tuple(page.rows))

    def _groups(self, question: ListQuestion) -> Rows:
        try:
            page = self._page(f"{GROUPS_PATH}?{_query(question)}", GroupPage)
        except NotYetError as error:  # of everything else it may know all
            return Rows(
                question=question,
                at_ms=-1,
                total=0,
                matched=0,
                offset=0,
                rows=(),
                sort=question.sort,
                descending=question.descending,
                notes=(f"{error}.",),
            )
        return _rows(question, page, tuple(page.rows), tuple(f"{doubt}." for doubt in doubts_of_page(page)))

    def _events(self, question: ListQuestion) -> Rows:
        page = self._page(f"{EVENTS_PATH}?{_query(question)}", EventPage)
        known = f"Changes since {format_time(page.since_ms)}." if page.since_ms >= 0 else "Only a running job sees what changes."
        return Rows(
            question=question,
            at_ms=page.at_ms,
            total=page.total,
            matched=page.matched,
            offset=page.offset,
            rows=tuple(page.rows),
            notes=(known,),
            page=page,
        )


def _query(question: ListQuestion) -> str:
    order = {"sort": question.sort, "order": "desc" if question.descending else "asc"} if question.sort else {}
    words = {name: word for name, word in (("filter", question.filter), ("use", question.use)) if word}
    return urlencode({**order, **words, "offset": question.offset, "limit": question.limit})


def _rows(question: ListQuestion, page: ListPage, rows: tuple[Row, ...], notes: tuple[str, ...] = ()) -> Rows:
    return Rows(
        question=question,
        at_ms=page.at_ms,
        total=page.total,
        matched=page.matched,
        offset=page.offset,
        rows=rows,
        sort=page.sort,
        descending=page.order == "desc",
        notes=notes,
        page=page,
    )


_READERS: dict[ListName, Callable[[JobSource, ListQuestion], Rows]] = {
    ListName.PROBLEMS: JobSource._problems,
    ListName.PARTITIONS: JobSource._partitions,
    ListName.TRANSACTIONS: JobSource._transactions,
    ListName.RETENTION: JobSource._retention,
    ListName.GROUPS: JobSource._groups,
    ListName.EVENTS: JobSource._events,
}
