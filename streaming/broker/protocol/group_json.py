"""What a job serves about consumer groups as JSON: a page of all groups, and one group with its partitions.

Offsets are Kafka's own, times are Unix milliseconds, sizes bytes, rates a second. In memory -1 and "" mean "not known" or "none", and
never 0; in JSON that is null.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Annotated
from urllib.parse import quote

from streaming.broker.protocol.json_message import (
    ASC,
    DESC,
    WIDE,
    Bytes,
    Count,
    Duration,
    Flag,
    Heading,
    Id,
    Moment,
    Name,
    Number,
    Partition,
    PublicMessage,
    Rate,
    Verdict,
    Word,
)
from streaming.broker.protocol.listing_json import AwayBroker, ListPage
from streaming.broker.protocol.status_json import AnswerHead
from streaming.common.units import format_be, format_count, format_duration

GROUPS_PATH = "/api/v1/groups"
"""`GroupPage`, by ``?sort=FIELD&order=asc|desc&filter=TEXT&offset=N&limit=N``."""

MADE_ANEW, CUT_OFF, PARTED, RESUMED = "made_anew", "cut_off", "parted", "resumed"
"""Why a committed offset is not valid any more."""

READ_COMMITTED, READ_UNCOMMITTED = "read_committed", "read_uncommitted"
"""The isolation of consumers; with the second one they get records of transactions which are open or aborted."""

OLD_DATA_MS = 30_000
"""A job that is not behind knows what its agents have read some seconds before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldingTransaction(PublicMessage):
    """The open transaction that holds the last stable offset of a partition."""

    producer_id: int  # as in `TransactionRow`
    producer_epoch: int  # likewise
    first_offset: int  # likewise
    start_ms: int  # likewise
    last_append_ms: int  # likewise
    transactional_id: str = ""  # likewise
    state: str = ""  # that of its coordinator; `null` if it is not known
    verdict: str = ""  # as in `TransactionRow`
    deadline_ms: int = -1  # when its timeout has passed, and its coordinator ends it; `null` if it has none, or if that is not known
    stuck: bool = False  # it has been silent for longer than `stuck_after`


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingOffset(PublicMessage):
    """An offset that was committed in a transaction which is open."""

    producer_id: int  # whose transaction it is
    offset: int  # what was committed
    coordinator: int  # in which partition of `__consumer_offsets`
    since_ms: int = -1  # since when commits of the transaction wait, as far as that is known: from its first batch there, else since this
    # commit
    start_ms: int = -1  # of the transaction there, as in `HoldingTransaction`; `null` if it is not known, as while it ends
    first_offset: int = -1  # likewise
    transactional_id: str = ""  # likewise
    verdict: str = ""  # likewise
    deadline_ms: int = -1  # likewise


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedOffset(PublicMessage):
    """A commit that moved a partition's offset, and not by reading. ``kind``: a `streaming.kafka.groups.offset_moves.MoveKind`."""

    kind: str  # `admin`: by hand; `reset`: back from beyond the end of the log; `consumer`: by a member; `external`: by a program beside it
    from_offset: int  # what was committed before
    to_offset: int  # what was committed then
    from_ms: int = -1  # when the former was, by the coordinator's clock
    at_ms: int = -1  # when the latter was
    records: int = -1  # between both, as far as they are in the log; `null` where they are not counted
    offsets: int = 0  # of those that are not counted, else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCheck(PublicMessage):
    """A batch as it is on disk, with the next record of it: sizes and numbers, no content. ``unlike``: an `Unlike` each."""

    sound: bool  # it can be read
    error: str = ""  # what is wrong with it, or why it cannot be read
    base_offset: int = -1  # as its header has it
    last_offset: int = -1  # likewise; `null` if the header is damaged
    size: int = -1  # as the header has it
    codec: str = ""  # likewise
    records: int = -1  # likewise
    producer_id: int = -1  # likewise
    position: int = -1  # where it begins in the file of its segment
    segment: int = -1  # the base offset of that
    file: str = ""  # the path of that
    format: int = -1  # its message format (magic); `null` if the header is damaged
    record_offset: Id = -1  # of the first record at the offset that was asked for, or after it; `null` where the batch was not opened
    record_bytes: Bytes = -1  # what its key, value and headers take
    tombstone: Flag = False  # it has no value
    neighbors: Count = -1  # how many batches with data were looked at before and after it, in its segment
    unlike: list[str] = field(default_factory=list)  # how it differs from these: `largest`, `producer`, `codec`, `format`; and its record
    # from the others of the batch: `largest_record`, `only_tombstone`


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPartition(PublicMessage):
    """One partition of a group. ``unknown``: a `streaming.cluster.consumers.group_lag.LagReason`."""

    topic: Partition  # its topic
    partition: Number  # its number in the topic
    topic_id: Name = ""  # of the topic, as Kafka's tools write it
    broker: Id = -1  # that leads it
    committed: Annotated[Id, Heading("Committed", 8, DESC, "C")] = -1  # the committed offset; of a share group its start offset
    commit_ms: Annotated[Moment, Heading("Last commit", WIDE, DESC, "T")] = -1  # when it was committed, by the coordinator's clock
    expiration_ms: Moment = -1  # when its coordinator may first delete the offset
    log_start: Id = -1  # the log start offset
    high_watermark: Annotated[Id, Heading("High watermark", 9, DESC, "H")] = -1  # Kafka's own
    last_stable_offset: Id = -1  # likewise
    unknown: Word = ""  # why the lag is not known, `null` if it is
    uncommitted_records: Count = -1  # without a commit: at most so many records are in the log; no lag counts them
    lag_offsets: Annotated[Count, Heading("Offsets", 7, DESC, "F")] = -1  # what `kafka-consumer-groups` calls LAG
    lag_records_read_committed: Annotated[Count, Heading("Records left", 3, DESC, "R")] = -1  # the records that a consumer with
    # `read_committed` will get; a table shows those of the group's own isolation
    lag_records_read_uncommitted: Count = -1  # the records that other consumers will get
    lag_bytes: Annotated[Bytes, Heading("Bytes", 6, DESC, "B")] = -1  # of the whole batches that the records are in
    next_offset: Id = -1  # of the next record that the group will get
    next_timestamp_ms: Moment = -1  # its own timestamp
    next_append_ms: Annotated[Moment, Heading("Oldest unread", 4, ASC, "O")] = -1  # when it was appended; a table shows its own timestamp
    # where that was not seen
    next_batch_bytes: Bytes = -1  # of the batch that it is in
    next_segment: Id = -1  # the base offset of the segment of that batch
    next_position: Count = -1  # the position of that batch in its segment
    next_expired_ms: Duration = -1  # how old the next record was at least when it was written, if its topic keeps records for less; `null`
    # if it came in time, or if no agent saw it come
    lost_records: Count = -1  # deleted before they were read; `null` where only offsets are known
    lost_offsets: Count = 0  # likewise in offsets; of a share group at most so many
    buffered_records: Count = -1  # deleted, and perhaps in the memory of its consumers: lost if they are restarted; `null` where only
    # offsets are known
    buffered_offsets: Count = 0  # likewise in offsets
    lost_expired: Flag = False  # all of these had come past the retention of their topic
    lost_lately_records: Count = -1  # deleted before they were read within the last 24 hours, as far as the job has watched, also where it
    # has gone on since
    lost_lately_offsets: Count = -1  # offsets that were, beside these records, which were not counted, within the last 24 hours, as far as
    # the job has watched
    lost_lately_ms: Moment = -1  # when the last of these losses was seen; `null` if there was none
    loss_ms: Annotated[Moment, Heading("Next loss", 5, ASC, "L")] = -1  # when retention deletes the next record at the earliest
    loss_silent_ms: Moment = -1  # when, if nothing more is written to its log from now on, where that is earlier
    loss_latest_ms: Moment = -1  # when it does so at the latest, one check interval later
    loss_start_of: Id = -1  # the broker that would delete it and has no process: it has to be started first, and when is not known
    loss_records: Count = -1  # how many go with that record, as all of it is due at the same check, if that comes as late as it may; `null`
    # where more comes there until then
    loss_bytes: Bytes = -1  # likewise
    loss_records_least: Count = -1  # likewise, if the check comes as early as it may
    loss_bytes_least: Bytes = -1  # likewise
    loss_by_size: Flag = False  # `retention.bytes` deletes it, not `retention.ms`
    limits_assumed: Flag = False  # the limits of its log are Kafka's defaults or weaker ones; `false` if nothing is unread
    retention_ms: Duration = -1  # the limit in force
    retention_bytes: Bytes = -1  # likewise
    history: Word = ""  # why the committed offset is not valid any more: `made_anew`, its topic was; `cut_off`, its log lost what
    # the group had read; perhaps not valid: `parted`, the log has a later epoch from below the offset on; `resumed`, its topic
    # was made again, and the first offset that was committed there is the old topic's; `null` if it is valid, or nothing shows why not
    history_epoch: Id = -1  # the leader epoch that began then
    history_ms: Moment = -1  # when that epoch began, or the topic was created
    history_at: Id = -1  # where that epoch begins in the log, or that first offset
    history_unclean: Flag = False  # an unclean election cut the log off there: of `cut_off` certainly, of `parted` perhaps
    go_on_at: Id = -1  # the first offset that the group has perhaps not read, where the committed one is not valid, or perhaps not
    passed_records: Count = -1  # records between there and the committed offset, or the end of the log
    stopped_since_ms: Moment = -1  # since when a record was readable and the offset has not moved
    stopped_earlier: Flag = False  # it may have stopped earlier: that is when it was known first
    undated: Flag = False  # its own timestamp is not believed, and the disk does not show when it was appended
    held: Flag = False  # nothing is readable, but records wait behind an open transaction
    isolation: Word = ""  # `read_uncommitted` if an offset of the group shows that, or what is given for a streaming query; else `null`:
    # then `read_committed` is assumed
    consumed_rate: Annotated[Rate, Heading("Read/s", 10, DESC, "D")] = -1.0  # records read a second
    appended_rate: Annotated[Rate, Heading("Appended/s", 11, DESC, "A")] = -1.0  # records appended a second
    held_by: HoldingTransaction | None = None  # that transaction, a `HoldingTransaction`; `null` if it is not known
    pending: list[PendingOffset] = field(default_factory=list)  # list of `PendingOffset`: commits that wait in open transactions
    moves: list[MovedOffset] = field(default_factory=list)  # list of `MovedOffset`: how its offset was moved within a day, and not by
    # reading, as far as an operator should know; the last one last
    batch: BatchCheck | None = None  # a `BatchCheck` of the next record's batch; `null` if it was not checked
    verdict: Verdict = ""  # the worst of its findings, as in [groups.md](groups.md)
    severity: Word = ""  # of that finding; `null` for what needs no look
    since_ms: Moment = -1  # since when it is so

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


def _records_left(row: GroupSummary | GroupPartition) -> int:
    return row.lag_records_read_uncommitted if row.isolation == READ_UNCOMMITTED else row.lag_records_read_committed


class GroupUse(StrEnum):
    """Decided by `streaming.cluster.verdicts.group_bounds`."""

    IN_USE = "in_use"  # it has members, or commits in its own rhythm
    UNATTENDED = "unattended"  # it has no members, and the next commit is overdue, but not for long
    ABANDONED = "abandoned"  # it has no members, and has had none for long, or no consumer will miss what it loses
    THROW_AWAY = "throw_away"  # its name says that no consumer comes back to it
    UNKNOWN = "unknown"  # its coordinator is not read, or nothing shows when it was last used


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSummary(PublicMessage):
    """A group, and the sums over its partitions; ``oldest_`` are the earliest times of their next unread records."""

    group: Annotated[Name, Heading("Group", 1, ASC, "G", least=16)]  # its name
    type: Annotated[Word, Heading("Type", 11, ASC, "Y")] = ""  # as Kafka's tools call it; one that has only commits is `Classic`, a
    # streaming query `Spark`
    protocol: Word = ""  # of a classic group, as `consumer` or `connect`
    state: Annotated[Word, Heading("State", 10, ASC, "S")] = ""  # as Kafka's tools call it; of a query `Planned` while a micro-batch after
    # the last committed one is, else `Committed`
    members: Annotated[Count, Heading("Members", 7, DESC, "M")] = -1  # `null` if nothing is known of them
    epoch: Id = -1  # of a classic group its generation, of a streaming query its last micro-batch that is committed
    state_ms: Moment = -1  # since when it is in its state; of a newer protocol only while it is empty
    partitions: Annotated[Count, Heading("Partitions", 12, DESC, "P")] = 0  # those with a committed offset, or with one that waits in
    # a transaction
    unknown: Annotated[Count, Heading(sort=DESC)] = 0  # the partitions of which the lag is not known: sums are lower bounds if there
    # are any
    uncommitted: Count = 0  # of those, the ones that are assigned to a member, or have commits that wait, and none that counts
    uncommitted_records: Count = -1  # at most so many records are in the logs of these, as far as they are observed; no lag counts them
    stopped: Annotated[Count, Heading(sort=DESC)] = 0  # the partitions of which this is so
    held: Annotated[Count, Heading(sort=DESC)] = 0  # likewise
    beyond_end: Count = 0  # likewise
    below_start: Count = 0  # likewise
    pending: Annotated[Count, Heading(sort=DESC)] = 0  # commits that wait in open transactions
    oldest_pending_ms: Moment = -1  # when the first of those was committed, by the coordinator's clock
    isolation: Word = ""  # `read_uncommitted` if an offset of the group shows that, or what is given for a streaming query; else `null`:
    # then `read_committed` is assumed
    lag_offsets: Annotated[Count, Heading("Offsets", 9, DESC, "F")] = -1  # what `kafka-consumer-groups` calls LAG
    lag_records_read_committed: Annotated[Count, Heading("Records left", 3, DESC, "R")] = -1  # the records that a consumer with
    # `read_committed` will get; a table shows those of the group's own isolation
    lag_records_read_uncommitted: Count = -1  # the records that other consumers will get
    lag_bytes: Annotated[Bytes, Heading("Bytes", 6, DESC, "B")] = -1  # of the whole batches that the records are in
    oldest_ms: Annotated[Moment, Heading("Oldest unread", 4, ASC, "O")] = -1  # since when the oldest unread record is there: its append, or
    # its own timestamp where that was not seen
    oldest_append_ms: Moment = -1  # the oldest append of a next unread record
    oldest_timestamp_ms: Moment = -1  # the oldest timestamp of a next unread record
    loss_ms: Annotated[Moment, Heading("Next loss", 5, ASC, "L")] = -1  # when retention may delete the first unread record
    loss_start_of: Id = -1  # the first broker that would delete it and has no process: it has to be started first, and when is not known
    limits_assumed: Flag = False  # the limits of some partition are Kafka's defaults or weaker ones
    last_commit_ms: Annotated[Moment, Heading("Last commit", WIDE, DESC, "C")] = -1  # the last commit of an offset
    interval_ms: Annotated[Duration, Heading(sort=DESC)] = -1  # its usual interval between two commits,
    # see [groups.md](groups.md#who-uses-a-group)
    expiration_ms: Moment = -1  # when its coordinator may first delete an offset
    last_rebalance_ms: Annotated[Moment, Heading(sort=DESC)] = -1  # when it last rebalanced
    rebalances_lately: Annotated[Count, Heading(sort=DESC)] = -1  # how often members have interrupted each other by that within half an
    # hour, see [groups.md](groups.md#rebalances)
    use: Annotated[Word, Heading("Use", 8, ASC, "U", choices=tuple(GroupUse))] = ""  # who uses it,
    # see [groups.md](groups.md#who-uses-a-group)
    verdict: Verdict = ""  # the worst of its findings, as in [groups.md](groups.md)
    severity: Word = ""  # of that finding; `null` for what needs no look
    since_ms: Moment = -1  # since when it is so

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


def _records_waiting(row: GroupSummary | GroupPartition) -> int:
    if row.isolation == READ_UNCOMMITTED or row.lag_records_read_committed < 0:
        return 0
    return max(0, row.lag_records_read_uncommitted - row.lag_records_read_committed)


def _lag(row: GroupSummary | GroupPartition) -> int:
    records = _records_left(row)
    return records if records >= 0 else row.lag_offsets


NOBODYS = frozenset({GroupUse.ABANDONED, GroupUse.THROW_AWAY})
"""No consumer misses what these have not read, or lose: lists say so beside it, and the numbers of a cluster are without them."""


def path_of(group: str) -> str:
    """The path of a group's `GroupDetail`; its name may contain anything."""
    return f"{GROUPS_PATH}/{quote(group, safe='')}"


class Unlike(StrEnum):
    """What a batch has and none of its neighbors, or its next record and no other record of the batch."""

    LARGEST = "largest"
    PRODUCER = "producer"  # that none of the batches before it is of
    CODEC = "codec"
    FORMAT = "format"
    LARGEST_RECORD = "largest_record"
    ONLY_TOMBSTONE = "only_tombstone"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadMoments(PublicMessage):
    """Between which moments log dirs were read: committed offsets first, and then the ends of the logs that they are held against."""

    commits_from_ms: int  # from then on committed offsets were read; where only a checkpoint shows what is replicated, when it was written
    commits_until_ms: int  # until then
    ends_from_ms: int  # from then on the ends of the logs that they are held against were read
    ends_until_ms: int  # until then: what was appended since `commits_from_ms` may be in a lag


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFinding(PublicMessage):
    """A finding about a partition, or about the group. ``verdict``: a `streaming.broker.protocol.group_json.GroupVerdict`."""

    verdict: str  # as in `GroupPartition`
    severity: str = ""  # likewise
    since_ms: int = -1  # likewise
    topic: str = ""  # which; `null` for what is said of the group
    partition: int = -1  # likewise
    lag: int = -1  # what is left there: records, or offsets where those are not known
    text: str = ""  # a sentence without a period
    command: str = ""  # what mends it, to be copied into a shell
    no_command: str = ""  # why there is none
    because: str = ""  # the verdict of the finding before it, about the same partition, from which it follows; `null` if none is known


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalancedMember(PublicMessage):
    """A member that joined or left, or is in a generation."""

    client: str  # its client id; a hash where `redact_ids` is set
    host: str  # its host, likewise


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRebalance(PublicMessage):
    """A rebalance of a group. ``kind``: a `streaming.kafka.groups.rebalance_log.RebalanceKind`."""

    at_ms: int = -1  # when, by its coordinator
    kind: str = ""  # `members`, `metadata` where only partitions or topics came or went, or `rejoined`: a static member came back,
    # no rebalance
    generation: int = -1  # to which it came; of consumer, share and streams groups the group epoch
    generations: int = 0  # by how much that was raised
    unfinished: int = 0  # how many of those had no assignment
    members: int = 0  # how many there were then
    joined_members: int = -1  # how many joined; `null` where that is not on disk
    left_members: int = -1  # how many left, likewise
    joined: list[RebalancedMember] = field(default_factory=list)  # list of `RebalancedMember`: the first of them, four at most
    left: list[RebalancedMember] = field(default_factory=list)  # likewise


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDetail(PublicMessage):
    """One group."""

    at_ms: int  # as of when
    summary: GroupSummary  # a `GroupSummary`
    partitions: list[GroupPartition]  # list of `GroupPartition`, the worst first, 10,000 at most: those with the largest lag
    findings: list[GroupFinding] = field(default_factory=list)  # list of `GroupFinding`, the worst first; every partition that is there has
    # at least one
    omitted: int = 0  # how many are left out
    unread: int = 0  # as in `GroupPage`
    data_age_ms: int = 0  # likewise, of this group
    clients: list[str] = field(default_factory=list)  # of its first members
    hosts: list[str] = field(default_factory=list)  # likewise
    rebalances: list[GroupRebalance] = field(default_factory=list)  # list of `GroupRebalance`, the newest first, 20 at most: those that are
    # still on disk
    notes: list[str] = field(default_factory=list)  # what is known of a streaming query besides, in sentences:
    # see [groups.md](groups.md#streaming-queries)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDetailPage(AnswerHead):
    """Some groups with their partitions."""

    read: ReadMoments | None = None
    rows: list[GroupDetail] = field(default_factory=list)
    away: list[AwayBroker] = field(default_factory=list)


def doubts_of_page(page: GroupPage) -> Iterator[str]:
    """What it may lack, or not know yet."""
    yield from _unread(page.unread)
    yield from _old(page.data_age_ms)
    if page.omitted:
        yield f"{format_count(page.omitted, 'group')} {format_be(page.omitted)} left out, because groups_limit is lower"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPage(ListPage):
    """Groups."""

    rows: list[GroupSummary]  # list of `GroupSummary`
    omitted: int = 0  # so many are not followed, because of `groups_limit`
    unread: int = 0  # so many partitions of `__consumer_offsets` are not read to their high watermark: groups may be missing
    coordinators: int = -1  # so many logs of coordinators are read from a current replica: without any, no group is known
    read: ReadMoments | None = None  # when log dirs were read, a `ReadMoments`; `null` from a job, with `--at`, and if no log of a
    # coordinator was read
    data_age_ms: int = 0  # what a job knows of groups is older than `at_ms` by so much, of the group of which it is the oldest


def _unread(coordinators: int) -> Iterator[str]:
    if coordinators:
        yield f"{coordinators} coordinators' logs are not read to their end from a current replica: groups of theirs may be missing"


def _old(data_age_ms: int) -> Iterator[str]:
    if data_age_ms > OLD_DATA_MS:
        age = format_duration(data_age_ms // 1000)
        yield f"what the job knows is up to {age} old: it is behind its agents, or one of them stands still or is away"


def doubts_of_groups(groups: Collection[GroupDetail], page: GroupPage | None) -> Iterator[str]:
    """What may be unknown of some groups; ``page``: of those from which they were chosen, or None."""
    yield from _unread(max((each.unread for each in groups), default=0) if page is None else page.unread)
    yield from _old(max((each.data_age_ms for each in groups), default=0))


class GroupVerdict(IntEnum):
    """What is the matter with a partition of a group, or with the group; of one severity, the first is the most severe."""

    LOST = 0  # records were deleted before they were read
    WILL_LOSE = 1  # retention will delete the next unread record soon
    BUFFERED = 2  # records were deleted that its consumers may have in memory
    DAMAGED = 3  # the next batch cannot be read
    TOO_LARGE = 4  # the next batch is larger than consumers fetch at once
    HELD = 5  # an open transaction holds back everything that is left
    BEYOND_END = 6  # the committed offset is beyond the end of the log
    OTHER_HISTORY = 7  # the committed offset is of a history that has ended: records that were not read are skipped
    PENDING = 8  # commits wait for an open transaction
    STOPPED = 9  # it has not moved although a record is readable
    SKIPPED = 10  # its offset was moved by hand over records that it had not read
    REBALANCING = 11  # it rebalances all the time
    WILL_EXPIRE = 12  # its coordinator deletes the committed offset soon
    SLOWER = 13  # more is appended than it reads
    REWOUND = 14  # its offset was moved back, so that it reads records again
    SKEWED = 15  # one partition has most of the lag
    NO_MEMBERS = 16  # it had members and has none
    UNKNOWN = 17  # its lag is not known
    PERHAPS_LOST = 18  # offsets were deleted that may all have been markers
    NOT_COMMITTED = 19  # it is assigned and was never committed, and its log has records
    CATCHING_UP = 20  # it reads more than is appended
    BETWEEN_RUNS = 21  # it has no members, as usual at this time
    ONLY_MARKERS = 22  # only markers or aborted records are left
    NO_OFFSETS = 23  # nothing is committed, and no consumer is there that would
    FINE = 24  # nothing is left, or it goes on
    LEFT_OVER = 25  # no member subscribes to its topic; a group is so if all of its partitions are

    @property
    def label(self) -> str:
        """The spelling in tables and JSON."""
        return self.name.lower()

    @property
    def is_finding(self) -> bool:
        """Whether an operator should look at it."""
        return self < GroupVerdict.UNKNOWN


NOT_KNOWN = frozenset({GroupVerdict.UNKNOWN.label, GroupVerdict.PERHAPS_LOST.label})
"""The labels of verdicts by which something is not known here that a log dir, an agent or time may show.

What was never committed is on no disk, and healthy groups have such partitions: `GroupVerdict.NOT_COMMITTED` is none of them.
"""


def is_finding(message: GroupFinding | GroupSummary | GroupPartition) -> bool:
    """Whether an operator should look at what a message says."""
    return message.verdict in FINDINGS


FINDINGS = frozenset(each.label for each in GroupVerdict if each.is_finding)
"""The labels of verdicts that an operator should look at."""
