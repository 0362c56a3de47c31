"""What a job has seen and keeps under its checkpoint, as JSON: changes, how everything was then, and what its verdicts remember.

No counter is among it, and nothing that the disks still show: without it a job is right, and says less of what was before its start.
Times are Unix milliseconds.
"""

from dataclasses import dataclass, field

from streaming.broker.protocol.group_json import RebalancedMember
from streaming.broker.protocol.json_message import Message, PublicMessage
from streaming.broker.protocol.status_json import ClusterEvent, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptTransaction(Message):
    """An open transaction that needs an operator, or may: ``log`` is topic-partition, and ``last_ms`` when it was last appended to.

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
class DeletedTopic(Message):
    """A topic that was deleted at ``at_ms`` while a group had records of it to read.

    ``records``: at least so many, as of ``counted_ms``; ``offsets``: besides them those of partitions whose records were not counted.
    """

    group: str
    topic: str
    topic_id: str
    records: int
    offsets: int
    at_ms: int
    counted_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptGroups(Message):
    """What rounds over groups have seen."""

    commits: list[KeptCommit] = field(default_factory=list)
    deleted_topics: list[DeletedTopic] = field(default_factory=list)


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
    """All that a job keeps over a restart. ``changes``: None as long as a job has compared nothing."""

    changes: KeptChanges | None = None
    transactions: list[KeptTransaction] = field(default_factory=list)
    groups: KeptGroups = field(default_factory=KeptGroups)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEvent(PublicMessage):
    """A record. ``event``: `commit`, `pending` (in a transaction), `aborted` (with that), `deleted` (an offset), `generation`, or `gone`
    (the group).

    What `segtail groups NAME --history --json` prints: what the coordinator's log still has of groups, record by record. Offsets are
    Kafka's own, times are Unix milliseconds. In memory -1 means "not known" or "none"; in JSON that is null.

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
