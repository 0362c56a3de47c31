"""What is asked for a screen, and what comes back: a list in the order that was asked for, or one thing in detail."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from streaming.broker.protocol.group_json import GroupDetail, GroupSummary
from streaming.broker.protocol.json_message import PublicMessage
from streaming.broker.protocol.listing_json import PartitionDetail, PartitionRow, RetentionRow, TransactionRow
from streaming.broker.protocol.status_json import ClusterEvent, Problem, Status

Row = Problem | PartitionRow | TransactionRow | RetentionRow | GroupSummary | ClusterEvent
Detail = PartitionDetail | GroupDetail


@dataclass(frozen=True, slots=True, kw_only=True)
class DetailQuestion:
    """One thing in detail: a partition, or a group if ``topic`` is ""."""

    topic: str = ""
    partition: int = -1
    group: str = ""


class ListName(StrEnum):
    """The lists, in the order of their keys 1 to 6."""

    PROBLEMS = "problems"
    PARTITIONS = "partitions"
    TRANSACTIONS = "transactions"
    RETENTION = "retention"
    GROUPS = "groups"
    EVENTS = "events"


VIEWS = tuple(ListName)


class AnswerSource(Protocol):
    """What answers: a job, or log dirs that are read."""

    name: str
    """How it is called in sentences: ``the job at 127.0.0.1:9712``."""

    def ask(self, question: Question, *, again: bool) -> Answer:
        """Answer.

        Args:
            again: what was read before does not count any more.

        Raises:
            SegtailError: there is no answer. The message says why.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ListQuestion:
    """Some rows of a view."""

    view: ListName
    sort: str = ""  # a field of the rows, "" for the order that the source chooses
    descending: bool = False
    filter: str = ""
    use: str = ""  # of groups alone, words of `GroupUse` with commas between them; "" for all
    offset: int = 0
    limit: int = 50


Question = ListQuestion | DetailQuestion


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The answer to a `ListQuestion`: ``rows`` from ``offset`` on, of ``matched`` ones that the filter leaves of ``total``.

    ``sort``, ``descending``: the order that they have.
    """

    question: ListQuestion
    at_ms: int  # as of when, Unix milliseconds
    total: int
    matched: int
    offset: int
    rows: tuple[Row, ...]
    sort: str = ""
    descending: bool = False
    notes: tuple[str, ...] = ()  # what is left out, in sentences
    page: PublicMessage | None = None  # the message that they came in, if one message has them all


@dataclass(frozen=True, slots=True, kw_only=True)
class DetailAnswer:
    """The answer to a `DetailQuestion`; ``detail`` is None if there is no such thing (any more)."""

    question: DetailQuestion
    detail: Detail | None


Content = Rows | DetailAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How everything is, and what was asked for."""

    status: Status
    content: Content
