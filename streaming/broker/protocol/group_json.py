"""What a job serves about consumer groups as JSON: a page of all groups, and one group with its partitions.

Offsets are Kafka's own, times are Unix milliseconds, sizes bytes, rates records a second. In memory -1 means "not known" or
"none", and never 0; in JSON that is null.
"""

from dataclasses import dataclass, field
from urllib.parse import quote

from streaming.broker.protocol.away_json import AwayBroker
from streaming.broker.protocol.json_message import PublicMessage
from streaming.broker.protocol.listing_json import ListPage

GROUPS_PATH = "/api/v1/groups"
"""`GroupPage`, by ``?sort=FIELD&order=asc|desc&filter=TEXT&offset=N&limit=N``."""


MADE_ANEW, CUT_OFF = "made_anew", "cut_off"
"""Why a committed offset is not valid any more."""

READ_COMMITTED, READ_UNCOMMITTED = "read_committed", "read_uncommitted"
"""The isolation of consumers; with the second one they get records of transactions which are open or aborted."""


def path_of(group: str) -> str:
    """The path of a group's `GroupDetail`; its name may contain anything."""
    return f"{GROUPS_PATH}/{quote(group, safe='')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSummary(PublicMessage):
    """A group, and the sums over its partitions; ``oldest_`` are the earliest times of their next unread records.

    ``oldest_ms``: the earliest of all; each record's time is that of its append, or its own timestamp where that was not seen.

    ``uncommitted`` partitions are assigned to members, or have commits that wait, and none that counts; they are ``unknown``, too.
    ``uncommitted_records``: at most so many records are in their logs, as far as these are observed; no lag counts them.

    Sums are over the partitions whose value is known, so they are lower bounds if ``unknown`` is not 0. ``stopped``, ``held``,
    ``beyond_end``, ``below_start`` and ``unknown`` are numbers of partitions. ``members`` is -1 if nothing is known of them.
    ``limits_assumed``: as in `GroupPartition`, of some partition; ``loss_start_of`` likewise, of the first such broker.
    ``oldest_pending_ms``: when the first of the ``pending`` commits was committed, by the coordinator's clock; -1 if there is none, or if
    that is not known. ``isolation``: as in `GroupPartition`. ``interval_ms``: its usual interval between two commits. ``use``: a word of
    `streaming.broker.protocol.group_use.GroupUse`. ``verdict``, ``severity``, ``since_ms``: of the worst of its findings, as in
    `GroupFinding`. ``epoch``: of a classic group its generation, of a streaming query (``type`` Spark) its last micro-batch that is
    committed; its ``state`` is Planned since ``state_ms`` while a later one is planned. ``last_rebalance_ms``: when it last rebalanced;
    ``rebalances_lately``: how often members have interrupted each other by that within half an hour, -1 if that is not known.
    """

    group: str
    type: str = ""
    protocol: str = ""
    state: str = ""
    members: int = -1
    epoch: int = -1
    state_ms: int = -1
    partitions: int = 0
    unknown: int = 0
    uncommitted: int = 0
    uncommitted_records: int = -1
    stopped: int = 0
    held: int = 0
    beyond_end: int = 0
    below_start: int = 0
    pending: int = 0
    oldest_pending_ms: int = -1
    isolation: str = ""
    lag_offsets: int = -1
    lag_records_read_committed: int = -1
    lag_records_read_uncommitted: int = -1
    lag_bytes: int = -1
    oldest_ms: int = -1
    oldest_append_ms: int = -1
    oldest_timestamp_ms: int = -1
    loss_ms: int = -1
    loss_start_of: int = -1
    limits_assumed: bool = False
    last_commit_ms: int = -1
    interval_ms: int = -1
    expiration_ms: int = -1
    last_rebalance_ms: int = -1
    rebalances_lately: int = -1
    use: str = ""
    verdict: str = ""
    severity: str = ""
    since_ms: int = -1

    @property
    def records_left(self) -> int:
        """As in `GroupPartition`: the sum over its partitions."""
        return _records_left(self)

    @property
    def records_waiting(self) -> int:
        """As in `GroupPartition`, where some partition is held up."""
        return _records_waiting(self) if self.held else 0

    @property
    def lag(self) -> int:
        """The records of its partitions that are counted, or their offsets if none is; never the sum of both."""
        return _lag(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadMoments(PublicMessage):
    """Between which moments log dirs were read: committed offsets first, and then the ends of the logs that they are held against.

    ``commits_from_ms``: where only a checkpoint shows what is replicated, that is when it was written. What was appended between
    ``commits_from_ms`` and ``ends_until_ms`` may be in a lag.
    """

    commits_from_ms: int
    commits_until_ms: int
    ends_from_ms: int
    ends_until_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPage(ListPage):
    """Groups. ``omitted``: those that are not followed, because of ``groups_limit``.

    ``unread``: partitions of the coordinators' topic that are not read to their high watermark from a current replica: groups of theirs may
    be missing. ``read``: when log dirs were read; None for a job, as of another time (``--at``), and if no log of a coordinator was read.
    ``data_age_ms``: what a job knows of groups is older than ``at_ms`` by so much, of the group of which it is the oldest.
    ``coordinators``: so many coordinators' logs are read from a current replica, -1 not known.
    """

    rows: list[GroupSummary]
    omitted: int = 0
    unread: int = 0
    coordinators: int = -1
    read: ReadMoments | None = None
    data_age_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldingTransaction(PublicMessage):
    """The open transaction that holds the last stable offset of a partition. ``verdict``, ``state`` (of its coordinator): "" not known.

    ``deadline_ms``: when its timeout has passed, and its coordinator ends it; -1 if it has none, or if that is not known. ``stuck``: it has
    been silent for longer than `stuck_after`.
    """

    producer_id: int
    producer_epoch: int
    first_offset: int
    start_ms: int
    last_append_ms: int
    transactional_id: str = ""
    state: str = ""
    verdict: str = ""
    deadline_ms: int = -1
    stuck: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingOffset(PublicMessage):
    """An offset that was committed in a transaction which is open; ``coordinator``: the partition of `__consumer_offsets`.

    ``since_ms``: since when commits of the transaction wait, as far as that is known: from its first batch there, else since this commit.
    ``start_ms``, ``first_offset``, ``transactional_id``, ``verdict``, ``deadline_ms``: of the transaction in that partition, as in
    `HoldingTransaction`; ``start_ms`` is -1 if the transaction is not known, as while it ends.
    """

    producer_id: int
    offset: int
    coordinator: int
    since_ms: int = -1
    start_ms: int = -1
    first_offset: int = -1
    transactional_id: str = ""
    verdict: str = ""
    deadline_ms: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedOffset(PublicMessage):
    """A commit that moved a partition's offset, and not by reading. ``kind``: a `streaming.kafka.groups.offset_moves.MoveKind`.

    ``from_offset``, committed at ``from_ms``, and ``to_offset`` at ``at_ms``, by the coordinator's clock. ``records``: between both, as far
    as they are in the log; -1 where they are not counted, and then ``offsets`` of them are there, else 0.
    """

    kind: str
    from_offset: int
    to_offset: int
    from_ms: int = -1
    at_ms: int = -1
    records: int = -1
    offsets: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCheck(PublicMessage):
    """A batch as it is on disk. ``error``: what is wrong with it, or why it cannot be read; "" if it is sound. -1 is "not known".

    ``segment``, ``file``: the base offset and the path of its segment. ``last_offset``: -1 if its header is damaged.
    """

    sound: bool
    error: str = ""
    base_offset: int = -1
    last_offset: int = -1
    size: int = -1
    codec: str = ""
    records: int = -1
    producer_id: int = -1
    position: int = -1
    segment: int = -1
    file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPartition(PublicMessage):
    """One partition of a group.

    ``isolation``: `READ_UNCOMMITTED` if some offset of the group proves that it reads so, "" if not: then ``read_committed`` is assumed. Of
    a streaming query what was given with its checkpoint.
    ``broker`` leads it. ``unknown``: why its lag is not known, one of `streaming.cluster.consumers.group_lag.REASONS`, "" if it is.
    ``uncommitted_records``: at most so many records are in the log of one without a commit; no lag counts them.
    ``lost_records`` and ``lost_offsets``: what was deleted before it was read, 0 if nothing; records -1 where only offsets are known.
    ``buffered_records`` and ``buffered_offsets``: likewise what is deleted and perhaps in the memory of its consumers: that is not lost.
    ``lost_lately_records``, ``lost_lately_offsets``: what was seen to be lost within the last 24 hours, also where it has gone on since:
    records, and besides them offsets whose records were not counted; ``lost_lately_ms``: when last. -1 where nobody watched.
    ``loss_ms``: when retention deletes the first unread record at the earliest, ``loss_latest_ms`` at the latest: the broker checks now
    and then. All that the same check deletes is at stake: ``loss_records_least`` with ``loss_bytes_least`` at the earliest check,
    ``loss_records`` with ``loss_bytes`` at the latest. ``loss_start_of``: the broker that would delete it and has no process, -1 if it is
    not so: it has to be started first, so neither time is known. ``loss_by_size``: ``retention.bytes`` deletes it. ``limits_assumed``: a
    level that could set the limits is not known here, so a weaker one or Kafka's defaults are used; false if nothing is unread.
    ``next_expired_ms``: how old the next record was at least when it was appended, where that is longer than its topic keeps records; -1 if
    it came in time, or if that was not seen. ``lost_expired``: all of the offsets that are lost had come so.

    ``history``: why a committed offset is not valid any more: ``made_anew``, its topic was deleted and made anew, at ``history_ms``; or
    ``cut_off``, its log has other records from an offset below on, of ``history_epoch`` and later leader epochs, which began after the
    commit, at ``history_ms``; "" if it is valid, or nothing shows why not. ``go_on_at``: the offset where its consumers go on without
    skipping a record that they have not read; ``passed_records``: so many records are between there and the committed offset, or the end.
    -1 where it is valid, or that is not known.

    ``stopped_since_ms``: since when the committed offset has not moved although a record was readable, -1 if it is not stopped;
    ``stopped_earlier``: it may have stopped earlier: that is when it was first looked at, or when its next record was there at the latest.
    ``moves``: how its offset was moved within a day, and not by reading, as far as somebody should know; the last one last.
    ``undated``: when the next record was appended is not on disk. ``held``: nothing is readable with that isolation, but data records
    wait behind an open transaction. ``held_by``: that transaction, None if it is not known. ``batch``: that of the next record, as it was
    checked for this answer; None if it was not. ``verdict``, ``severity``, ``since_ms``: of the worst of its findings, as in
    `GroupFinding`.
    """

    topic: str
    partition: int
    topic_id: str = ""
    broker: int = -1
    committed: int = -1
    commit_ms: int = -1
    expiration_ms: int = -1
    log_start: int = -1
    high_watermark: int = -1
    last_stable_offset: int = -1
    unknown: str = ""
    uncommitted_records: int = -1
    lag_offsets: int = -1
    lag_records_read_committed: int = -1
    lag_records_read_uncommitted: int = -1
    lag_bytes: int = -1
    next_offset: int = -1
    next_timestamp_ms: int = -1
    next_append_ms: int = -1
    next_batch_bytes: int = -1
    next_segment: int = -1
    next_position: int = -1
    next_expired_ms: int = -1
    lost_records: int = -1
    lost_offsets: int = 0
    buffered_records: int = -1
    buffered_offsets: int = 0
    lost_expired: bool = False
    lost_lately_records: int = -1
    lost_lately_offsets: int = -1
    lost_lately_ms: int = -1
    loss_ms: int = -1
    loss_latest_ms: int = -1
    loss_start_of: int = -1
    loss_records: int = -1
    loss_bytes: int = -1
    loss_records_least: int = -1
    loss_bytes_least: int = -1
    loss_by_size: bool = False
    limits_assumed: bool = False
    retention_ms: int = -1
    retention_bytes: int = -1
    history: str = ""
    history_epoch: int = -1
    history_ms: int = -1
    go_on_at: int = -1
    passed_records: int = -1
    stopped_since_ms: int = -1
    stopped_earlier: bool = False
    undated: bool = False
    held: bool = False
    isolation: str = ""
    consumed_rate: float = -1.0
    appended_rate: float = -1.0
    held_by: HoldingTransaction | None = None
    pending: list[PendingOffset] = field(default_factory=list)
    moves: list[MovedOffset] = field(default_factory=list)
    batch: BatchCheck | None = None
    verdict: str = ""
    severity: str = ""
    since_ms: int = -1

    @property
    def records_left(self) -> int:
        """The records that a consumer of the group gets, by its isolation; -1 if that is not known."""
        return _records_left(self)

    @property
    def records_waiting(self) -> int:
        """At most so many more it gets when open transactions have ended: those that are aborted are among them."""
        return _records_waiting(self) if 0 <= self.last_stable_offset < self.high_watermark else 0

    @property
    def lag(self) -> int:
        """What is left to read: records that a consumer of the group gets, else offsets; -1 if neither is known."""
        return _lag(self)

    @property
    def reads_uncommitted(self) -> bool:
        """Whether the group is known to read so."""
        return self.isolation == READ_UNCOMMITTED

    @property
    def next_ms(self) -> int:
        """When the next record was appended, or its own timestamp where that was not seen; -1 if neither is known."""
        return self.next_append_ms if self.next_append_ms >= 0 else self.next_timestamp_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFinding(PublicMessage):
    """A finding about a partition, or about the group: then ``topic`` is "" and ``partition`` -1.

    ``verdict``: a label of `streaming.broker.protocol.group_verdicts.GroupVerdict`. ``severity``: "" for what needs no look. ``since_ms``:
    since when it is so. ``lag``: what is left, records, or offsets where those are not known; of the group, as `GroupSummary.lag`.
    ``text``: a sentence without a period.
    ``command``: what mends it, to copy into a shell; if it is "", ``no_command`` is the reason. ``because``: the verdict of the finding
    about the same partition from which it follows, and which stands before it; "" if it has no cause that is known.
    """

    verdict: str
    severity: str = ""
    since_ms: int = -1
    topic: str = ""
    partition: int = -1
    lag: int = -1
    text: str = ""
    command: str = ""
    no_command: str = ""
    because: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalancedMember(PublicMessage):
    """A member that joined or left, or is in a generation: its client id and its host."""

    client: str
    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRebalance(PublicMessage):
    """A rebalance of a group.

    ``kind``: a word of `streaming.kafka.groups.rebalances.RebalanceKind`. ``generation``: to which it came, of a newer group its epoch;
    ``generations``: by how much that was raised, ``unfinished`` of them without an assignment. ``members``: how many there were then.
    ``joined_members``, ``left_members``: how many, -1 if that is not on disk; ``joined``, ``left``: the first of them.
    """

    at_ms: int = -1
    kind: str = ""
    generation: int = -1
    generations: int = 0
    unfinished: int = 0
    members: int = 0
    joined_members: int = -1
    left_members: int = -1
    joined: list[RebalancedMember] = field(default_factory=list)
    left: list[RebalancedMember] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDetail(PublicMessage):
    """One group. ``at_ms``: as of when. ``unread``, ``data_age_ms``: as in `GroupPage`. ``clients``, ``hosts``: of its first members.

    ``partitions`` are those with the largest lag if there are too many for one answer; ``omitted`` are left out. ``findings``: what is to
    be said of them and of the group, the worst first. Every partition that is there has at least one. ``rebalances``: its last ones that
    are still on disk, the newest first. ``notes``: what is known of a streaming query besides, in sentences without a period.
    """

    at_ms: int
    summary: GroupSummary
    partitions: list[GroupPartition]
    findings: list[GroupFinding] = field(default_factory=list)
    omitted: int = 0
    unread: int = 0
    data_age_ms: int = 0
    clients: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    rebalances: list[GroupRebalance] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDetailPage(PublicMessage):
    """Some groups with their partitions, and what is not known, in sentences. ``read``, ``away``: as in `GroupPage`."""

    at_ms: int
    version: str = ""
    doubts: list[str] = field(default_factory=list)
    read: ReadMoments | None = None
    rows: list[GroupDetail] = field(default_factory=list)
    away: list[AwayBroker] = field(default_factory=list)


def _records_left(row: GroupSummary | GroupPartition) -> int:
    return row.lag_records_read_uncommitted if row.isolation == READ_UNCOMMITTED else row.lag_records_read_committed


def _records_waiting(row: GroupSummary | GroupPartition) -> int:
    if row.isolation == READ_UNCOMMITTED or row.lag_records_read_committed < 0:
        return 0
    return max(0, row.lag_records_read_uncommitted - row.lag_records_read_committed)


def _lag(row: GroupSummary | GroupPartition) -> int:
    records = _records_left(row)
    return records if records >= 0 else row.lag_offsets
