"""The parts of segments that an agent reads on request, and the messages about them.

An answer that lists them is `Excerpts`, one message after the other. One that scans some is tables of Arrow: `BATCHES` or
`TRANSACTION_ROWS` of `streaming.common.rows`, or `streaming.common.event_row.EVENTS`. Its last message is `ScanEnd`.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from streaming.broker.protocol.json_message import Message
from streaming.broker.protocol.json_values import Natural, Small
from streaming.broker.protocol.versions import PROTOCOL
from streaming.common.start_from import StartFrom

EVERYTHING = (1 << 63) - 1
"""No bound of a position, an offset or a leader epoch."""

MOST_EXCERPTS = 4_096
"""The most excerpts of a message: with the longest names of topics these are 2 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcerptsRequest(Message):
    """Asks what lies in some logs from a start on, cut at multiples of ``excerpt_bytes``.

    ``topics``, ``partitions``: see `streaming.broker.protocol.consumer_messages.Selection`. It has no pattern: an agent matches none
    that others write, because some take for ever. ``only_topics``: asks for the names of all topics instead. ``start``: a `StartFrom`;
    ``timestamp``, if it is not -1, takes its place: Unix milliseconds.
    """

    excerpt_bytes: int
    topics: list[str] = field(default_factory=list)
    partitions: list[Small] = field(default_factory=list)
    start: str = StartFrom.EARLIEST
    timestamp: Natural = -1
    only_topics: bool = False
    protocol: int = PROTOCOL


@dataclass(frozen=True, slots=True)
class Excerpt(Message):
    """The batches of a segment that fit all of these bounds.

    ``segment``: its base offset. Batches that begin at ``begin`` <= position < ``end``, bytes in the file, with ``from_offset`` <= base
    offset < ``until_offset``, and before the first batch of a later leader epoch than ``until_epoch``: that has overwritten what was there
    when the excerpt was chosen. No batch has to begin at ``begin``. ``bytes``: how many are expected, for those who share out the work.
    """

    broker: Small
    log_dir: str
    topic: str
    partition: Small
    topic_id: str
    segment: int
    begin: int
    end: int
    bytes: int
    from_offset: int = 0
    until_offset: int = EVERYTHING
    until_epoch: int = EVERYTHING

    @property
    def log(self) -> tuple[int, str, str, int]:
        """The log of the excerpt: broker, log dir, topic and partition."""
        return self.broker, self.log_dir, self.topic, self.partition


@dataclass(frozen=True, slots=True, kw_only=True)
class UnavailableDir(Message):
    """A log dir of an agent that cannot be used now: what it holds is not known."""

    broker: Small
    log_dir: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpts(Message):
    """Some of the excerpts. ``last``: there are no more. ``matched``: how many partitions are selected, in the last message.

    ``topics``: some of those that are there, if none is selected; all of them, where only they are asked for. ``unavailable``: log dirs in
    which nothing was looked for, in the last message.
    """

    excerpts: list[Excerpt]
    last: bool
    matched: int = 0
    topics: list[str] = field(default_factory=list)
    unavailable: list[UnavailableDir] = field(default_factory=list)


class Scan(StrEnum):
    """What becomes of the batches of excerpts."""

    BATCHES = "batches"
    RANGES = "ranges"
    TRANSACTIONS = "transactions"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanRequest(Message):
    """Asks for the rows of excerpts, in their order. Those of one log follow each other.

    ``scan``: a `Scan`. ``ongoing``: of transactions, a row also for each that is open at the end of each log.
    """

    scan: str
    excerpts: list[Excerpt]
    ongoing: bool = False
    protocol: int = PROTOCOL


@dataclass(frozen=True, slots=True)
class ReadUpto(Message):
    """A log of `__transaction_state` of which everything before an offset is known."""

    broker: Small
    partition: Small
    offset: Natural


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnersRequest(Message):
    """Asks for `streaming.common.rows.PRODUCER_OWNERS` in the coordinators' logs that the agent has, from where they are ``known`` on."""

    known: list[ReadUpto] = field(default_factory=list)
    protocol: int = PROTOCOL


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadPart(Message):
    """What of the excerpt ``item`` of a request was not there to be read: ``bytes`` from ``position`` on.

    ``next_offset``: after the batches before it, -1 not known. ``reason``: "deleted", or "corrupt: " and what is wrong.
    """

    item: int
    position: int
    bytes: int
    next_offset: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanEnd(Message):
    """The end of the rows of a request, with what was not there to be read."""

    MOST_VALUES: ClassVar[int] = 16 * MOST_EXCERPTS

    unread: list[UnreadPart]
