"""The messages by which a job registers as a consumer, plans ranges of a journal, and commits them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from streaming.broker.protocol.json_message import UNNAMED_SENDER, Message
from streaming.broker.protocol.json_values import AnyName, Name, Natural
from streaming.broker.protocol.versions import PROTOCOL


@dataclass(frozen=True, slots=True)
class Register(Message):
    """A consumer starts.

    ``start_from`` is used if the consumer is new to this agent's journal. ``resumed``: it has folded these logs before. ``run``: as in
    `Range`, "" where the job sends none.

    ``protocol``: the protocol of its job, see `streaming.broker.protocol.versions`; the same in other messages.
    """

    DEFAULTS: ClassVar[Mapping[str, object]] = UNNAMED_SENDER

    consumer: AnyName
    start_from: str
    resumed: bool
    protocol: int = PROTOCOL
    run: AnyName = ""


@dataclass(frozen=True, slots=True)
class PlanRequest(Message):
    """A request for how far a budget reaches.

    ``run``: the run that received the last ranges (see `Range`); ``journal`` and ``after``: the end of the last plan ("" and -1 before the
    first); ``budget``: bytes of logs, None for no limit; ``wait_ms``: how long to wait if there is nothing new; ``total``: of the last
    plan, -1 before the first.
    """

    DEFAULTS: ClassVar[Mapping[str, object]] = UNNAMED_SENDER

    consumer: AnyName
    run: AnyName
    journal: AnyName
    after: Natural
    budget: int | None
    wait_ms: int
    protocol: int = PROTOCOL
    total: Natural = -1


NOT_BEGUN = -1
"""``seq`` of a plan for a consumer whose beginning is not published yet: register, or send the request again."""


@dataclass(frozen=True, slots=True)
class Plan(Message):
    """A plan up to ``seq`` of ``journal``, which is ``total`` bytes of logs since the journal's beginning.

    ``again``: nothing is new, but something before it has not arrived; ``missed``: something has not arrived, whether or not there is more.
    ``more``: there is more than the budget allows.
    """

    agent: Name
    journal: AnyName
    seq: Natural
    total: Natural
    again: bool
    missed: bool = False
    more: bool = False


@dataclass(frozen=True, slots=True)
class Range(Message):
    """A ticket for the events of ``journal`` after the seq ``after``, up to ``upto``. ``after_total`` is the bytes at ``after``.

    If ``after`` is -1, the range begins at the consumer's own beginning.

    ``run`` names one run of the consumer's query. Events that an earlier run received do not count, because they may never have been
    committed.
    """

    DEFAULTS: ClassVar[Mapping[str, object]] = UNNAMED_SENDER

    consumer: AnyName
    run: AnyName
    journal: AnyName
    after: Natural
    after_total: Natural
    upto: Natural
    protocol: int = PROTOCOL


@dataclass(frozen=True, slots=True)
class Committed(Message):
    """The micro-batch that ends at ``seq`` is committed. Events up to there that ``run`` received will not be requested again."""

    consumer: AnyName
    run: AnyName
    journal: AnyName
    seq: Natural
