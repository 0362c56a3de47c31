"""The messages by which a reader of logs by positions plans, and gets what lies between two of them. An agent keeps nothing of it.

Positions travel packed (`streaming.common.log_positions.pack`). They are those of one broker, whose log dirs several agents may share.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from streaming.broker.protocol.consumer_messages import Selection
from streaming.broker.protocol.excerpt_messages import Excerpt
from streaming.broker.protocol.json_message import Message
from streaming.broker.protocol.json_values import AnyName, Name, Natural, Packed, Small
from streaming.broker.protocol.versions import PROTOCOL

MOST_LOGS = 250_000
"""The most logs of a request."""

MOST_AT_ONCE = 4_096
"""The most excerpts and parts of one message of an answer."""

SKIPPED, TRUNCATED, GONE = "skipped", "truncated", "gone"
"""What is missing: bytes that were never read, what was read and is cut off, or a whole log that was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BetweenRequest(Message):
    """Asks what lies between two positions of each of these logs. One that ``before`` lacks begins at the ``begin`` in ``to``.

    ``excerpt_bytes``: excerpts are cut at multiples of it.
    """

    broker: Small
    before: Packed
    to: Packed
    excerpt_bytes: int
    protocol: int = PROTOCOL


@dataclass(frozen=True, slots=True)
class Selected(Message):
    """A `streaming.broker.protocol.consumer_messages.Selection`, as it is sent."""

    topics: list[AnyName]
    pattern: str
    partitions: list[int]

    @classmethod
    def of(cls, selection: Selection) -> "Selected":
        """The message."""
        return cls(list(selection.topics), selection.pattern, list(selection.partitions))

    def selection(self) -> Selection:
        """The selection."""
        return Selection(tuple(self.topics), self.pattern, tuple(self.partitions))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachRequest(Message):
    """Asks how far the logs of ``broker`` can be read from the positions ``at`` on.

    ``first``: nothing was planned of this broker yet, so its logs begin at ``start``: earliest, active, latest, or Unix milliseconds. Later
    ones begin at their first offset. ``budget``: bytes of logs, None for no limit; ``wait_ms``: how long to wait if there is nothing new.
    """

    broker: Small
    at: Packed
    first: bool
    start: str
    selected: Selected
    budget: int | None
    wait_ms: Natural = 0
    protocol: int = PROTOCOL


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached(Message):
    """How far they can be read.

    ``changed``: the positions that differ from those that were asked about; ``absent``: those of logs that are in none of the log dirs
    which can be used now; ``available``: up to where logs could be read, of those that are planned no further than the budget reaches.
    ``away``: log dirs of the broker that cannot be used, or logs that cannot be read: of what is absent, they may have any. ``brokers``:
    those of the agent. ``matched``: how many partitions are selected.
    """

    agent: Name
    brokers: list[Small]
    changed: Packed
    absent: Packed
    available: Packed
    matched: int
    away: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing(Message):
    """What a reader had, or would have had, and a log has no more: ``kind`` is `SKIPPED`, `TRUNCATED` or `GONE`.

    ``log_dir``: "" where the log is in none; ``base_offset`` and ``next_offset``: the offsets, -1 not known, of what is truncated where the
    log ends now; ``bytes``: -1 not known.
    """

    kind: str
    topic: str
    partition: Small
    topic_id: str
    reason: str
    log_dir: str = ""
    base_offset: Natural = -1
    next_offset: Natural = -1
    bytes: Natural = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Between(Message):
    """Some of the excerpts between positions, in the order of each log, and what is missing. ``last``: there are no more.

    ``agent``: the name of who answers; ``absent``: positions of logs that this agent does not have now, in the last message.
    """

    MOST_VALUES: ClassVar[int] = 32 * MOST_AT_ONCE

    agent: Name
    excerpts: list[Excerpt] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    absent: Packed = ""
    last: bool = False
    away: list[str] = field(default_factory=list)
