"""What a job has seen and keeps under its checkpoint, as JSON: changes, how everything was then, and what its verdicts remember.

No counter is among it, and nothing that the disks still show: without it a job is right, and says less of what was before its start.
Times are Unix milliseconds.
"""

from dataclasses import dataclass, field

from streaming.broker.protocol.json_message import Message
from streaming.broker.protocol.status_json import ClusterEvent, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptTransaction(Message):
    """An open transaction that needs somebody, or may: ``log`` is topic-partition, and ``last_ms`` when it was last appended to.

    ``uncovered_ms``: since when no coordinator is known to end it. ``hangs``, ``stuck``: what was certain of it at ``at_ms``, -1 never.
    """

    log: str
    producer_id: int
    first_offset: int
    last_ms: int
    uncovered_ms: int
    hangs: bool
    stuck: bool
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptCommit(Message):
    """A partition of a group that stands, is held up or loses records. The columns are those of
    `streaming.cluster.consumers.group_memory.GroupProgress`, -1 where they say nothing; ``lost_records`` and ``lost_offsets`` are of a day.
    ``deleted``: as `streaming.cluster.consumers.below_start.kept_pieces`.
    """

    group: str
    topic: str
    partition: int
    offset: int
    unmoved_ms: int
    stopped_since_ms: int
    stopped_earlier: bool
    held_next: int
    held_since_ms: int
    lost_ms: int
    losing_since_ms: int
    lost_records: int
    lost_offsets: int
    deleted: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptBlind(Message):
    """Something that could not be seen: as `streaming.cluster.verdicts.cluster_changes.Blind`."""

    name: str
    broker: int
    groups: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptSighting(Message):
    """A problem as it was seen last: as `streaming.cluster.verdicts.cluster_changes.Sighting`."""

    problem: Problem
    blind: list[KeptBlind]
    first_ms: int
    missing_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptLeader(Message):
    """Who led a partition, as a node id."""

    topic: str
    topic_id: str
    partition: int
    leader: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptChanges(Message):
    """The events, the oldest first; from when on changes are known; and what the next look is compared with: as
    `streaming.cluster.verdicts.cluster_changes.ClusterMoment`.
    """

    events: list[ClusterEvent]
    since_ms: int
    at_ms: int
    sightings: list[KeptSighting]
    blind: list[KeptBlind]
    epochs: dict[str, int]
    agents: dict[str, int]
    controller: int
    leaders: list[KeptLeader]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptHistory(Message):
    """All of it. ``changes``: None as long as a job has compared nothing."""

    changes: KeptChanges | None = None
    transactions: list[KeptTransaction] = field(default_factory=list)
    commits: list[KeptCommit] = field(default_factory=list)
