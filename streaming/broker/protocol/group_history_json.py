"""What `segtail groups NAME --history --json` prints: what the coordinator's log still has of groups, record by record.

Offsets are Kafka's own, times are Unix milliseconds. In memory -1 means "not known" or "none"; in JSON that is null.
"""

from dataclasses import dataclass, field

from streaming.broker.protocol.group_json import RebalancedMember
from streaming.broker.protocol.json_message import PublicMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEvent(PublicMessage):
    """A record. ``event``: `commit`, `pending` (in a transaction), `deleted` (an offset), `generation`, `gone` (the group).

    ``record_offset``: in the coordinator's log. ``at_ms``: of a commit by its coordinator, else when the record or its marker was written.
    ``topic``, ``partition``, ``committed``: of a commit; ``before``: what counted until then, -1 if nothing did. ``moved``: a
    `streaming.kafka.groups.offset_moves.MoveKind` if it moved the offset, and not by reading, else "". ``epoch``: the generation, or the
    group epoch; ``members``: how many it has, of which ``first_members`` are some.
    """

    event: str
    record_offset: int
    at_ms: int = -1
    topic: str = ""
    partition: int = -1
    committed: int = -1
    before: int = -1
    moved: str = ""
    epoch: int = -1
    members: int = -1
    first_members: list[RebalancedMember] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHistory(PublicMessage):
    """The events of one group, the oldest first, the newest of them if there are too many: ``omitted`` came before.

    ``log``: the directory of the coordinator's log. ``whole_from``: from this offset of it on nothing was compacted yet, and everything is
    there; ``whole_from_ms``: when what is there was written. Of what is older, compaction leaves the last record of each partition, and of
    the group.
    """

    group: str
    log: str
    whole_from: int
    whole_from_ms: int = -1
    omitted: int = 0
    events: list[HistoryEvent] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHistoryPage(PublicMessage):
    """The histories of some groups, and what is not known, in sentences."""

    at_ms: int
    version: str = ""
    doubts: list[str] = field(default_factory=list)
    rows: list[GroupHistory] = field(default_factory=list)
