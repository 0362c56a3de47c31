"""Lists that a job serves as JSON, and one of their things in detail: partitions, transactions, retention, topics, brokers, counts.

Offsets are Kafka's own, times are Unix milliseconds, sizes bytes, rates a second. In memory -1 and "" mean "not known" or "none", and
never 0; in JSON that is null.
"""

from dataclasses import dataclass, field
from typing import Annotated
from urllib.parse import quote

from streaming.broker.protocol.json_message import (
    ASC,
    DESC,
    WIDE,
    Bytes,
    BytesRate,
    Count,
    Curve,
    Duration,
    Flag,
    Heading,
    Id,
    Moment,
    Name,
    Names,
    Number,
    Partition,
    PublicMessage,
    Rate,
    Ratio,
    Sentence,
    Unit,
    Verdict,
    Word,
)
from streaming.broker.protocol.status_json import AnswerHead, Problem, SomeRows

PARTITIONS_PATH = "/api/v1/partitions"
"""`PartitionPage`, by ``?sort=FIELD&order=asc|desc&filter=TEXT&offset=N&limit=N``."""

TRANSACTIONS_PATH = "/api/v1/transactions"
"""`TransactionPage`, likewise."""

RETENTION_PATH = "/api/v1/retention"
"""`RetentionPage`, likewise."""

ALL_ROWS = 1 << 40
"""As a limit of what is read here and sent nowhere."""

DEFAULT_LIMIT, LARGEST_LIMIT = 50, 1000
"""The number of rows of a page: if ``limit`` is not given, and at most."""

TOPICS_PATH = "/api/v1/topics"
"""`TopicPage`, by ``?sort=FIELD&order=asc|desc&topic=NAME&filter=TEXT&offset=N&limit=N``."""

ANSWERS = YES, NO, UNKNOWN = ("yes", "no", "unknown")
"""Words for what may not be known."""

NOT_YET = "not_yet"
"""Of a use: it was never used, and is too young to be called unused."""

MOST_READERS = 1000
"""The most groups of one topic that are named: those in trouble first."""

MOST_PROBLEMS = 100
"""The most problems of one topic: the most severe."""

BROKERS_PATH = "/api/v1/brokers"
"""`BrokerPage`, by ``?sort=FIELD&order=asc|desc&filter=TEXT&offset=N&limit=N``."""

COUNT_PATH = "/api/v1/count"
"""`CountPage`, by ``?by=topic|partition&topic=NAME&filter=TEXT&offset=N&limit=N``."""

BY_TOPIC, BY_PARTITION = BY = ("topic", "partition")

MOST_SEGMENTS = 1000
"""The most segments of one answer: the oldest half and the newest half of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRow(PublicMessage):
    """One topic, by its partitions, each by the replica that is shown for it."""

    topic: Annotated[Name, Heading("Topic", 1, ASC, "T", least=16)]  # its name
    partitions: Annotated[Count, Heading("Partitions", 3, DESC, "P")] = 0  # how many are shown
    bytes_rate: Annotated[BytesRate, Heading("Bytes/s", 4, DESC, "B")] = -1.0  # of its partitions; `null` where it is not known of one
    # of them
    records_rate: Annotated[Rate, Heading("Records/s", 5, DESC, "E")] = -1.0  # likewise
    size_bytes: Annotated[Bytes, Heading("Size", 6, DESC, "S")] = -1  # likewise
    size_skew: Annotated[Ratio, Heading("Skew", 18, DESC, "K")] = -1.0  # bytes of its largest partition against the mean of all: 1 where
    # all are alike; `null` where one is not seen
    records_skew: Annotated[Ratio, Heading("Skew of records", 19, DESC, "W")] = -1.0  # likewise of data records, where they are counted
    unread_offsets: Annotated[Count, Heading("Held back", 9, DESC, "H")] = -1  # likewise
    open_transactions: Annotated[Count, Heading("Open", 12, DESC, "O")] = -1  # likewise
    out_of_sync: Annotated[Count, Heading("Out of sync", 8, DESC, "U")] = -1  # replicas that are not in sync, of its partitions; `null`
    # where it is not known of one of them
    unread_more: Flag = False  # `unread_offsets` is a lower bound, as in `PartitionRow` of one of them
    topics: Annotated[Count, Heading("Topics", WIDE + 9, rare=True)] = -1  # with `by_prefix`: how many begin with `topic`; of a topic
    # `null`
    replica_bytes: Annotated[Bytes, Heading("On all replicas", WIDE, DESC, "A")] = -1  # of all its replicas that are seen
    replica_more: Flag = False  # that is a lower bound: others are not seen
    growth_day: Annotated[Bytes, Heading("Growth a day", WIDE + 1, DESC, "R")] = -1  # appended a day, to one replica of each partition, by
    # the times of its segments
    partition_bytes: Annotated[Bytes, Heading("Bytes a partition", WIDE + 2, DESC, "I")] = -1  # the mean of its partitions
    tiny: Annotated[Word, Heading(sort=ASC, choices=ANSWERS)] = ""  # whether it has several partitions, and their mean is below
    # `tiny_bytes`: `yes`, `no` or `unknown`
    batch_bytes: Annotated[Bytes, Heading("Mean batch", WIDE + 3, DESC, "N")] = -1  # of the batches that were counted: by a job since it
    # watches, from log dirs those of active segments
    codecs: Annotated[Names, Heading("Codecs", WIDE + 4)] = field(default_factory=list)  # of these batches, those with most bytes first
    last_commit_ms: Annotated[Moment, Heading("Last commit", WIDE + 5, DESC, "C")] = -1  # the last one of any group, in any partition
    readers: Annotated[Names, Heading("Read by", WIDE + 6, least=8)] = field(default_factory=list)  # groups in use with offsets in it, or
    # that are assigned some of it
    quiet_ms: Annotated[Moment, Heading("Quiet since", WIDE + 7, ASC, "Q")] = -1  # since when no client appended, and no commit is seen
    used: Annotated[Word, Heading("Used", WIDE + 8, choices=(*ANSWERS, NOT_YET))] = ""  # whether a client appended or committed
    # within `unused_ms`, or a group in use reads it: `yes`, `no`, `unknown`, or `not_yet` if it was made within that time and is empty
    used_why: Sentence = ""  # why that is not known
    advised: Annotated[Sentence, Heading("Advised", WIDE + 10, rare=True)] = ""  # of `segtail topics --advise`: a producer's setting,
    # and what it saves
    groups: Annotated[Count, Heading("Groups", 7, DESC, "G")] = -1  # consumer groups with committed offsets in it; `null` where no groups
    # are read
    last_append_ms: Annotated[Moment, Heading("Last append", 11, DESC, "L")] = -1  # the last one in any partition
    oldest_record_ms: Annotated[Moment, Heading("Oldest record", 15, ASC, "D")] = -1  # the oldest one in any partition
    next_deletion_ms: Annotated[Moment, Heading("Next deletion", 14, ASC, "X")] = -1  # the next one in any partition, as in `RetentionRow`
    next_deletion_start_of: Id = -1  # as in `RetentionRow`, of the partition with the first such broker
    next_deletion_by_size: Flag = False  # as in `RetentionRow`
    cleanup_policy: Annotated[Word, Heading("Policy", 17)] = ""  # `delete`, `compact` or both
    retention_limit_ms: Annotated[Duration, Heading("Time limit", 13, DESC, "M")] = -1  # the limit of its first partition, `null` for none
    retention_limit_bytes: Annotated[Bytes, Heading("Size limit", 16, DESC, "Z")] = -1  # likewise
    limits_assumed: Flag = False  # the limits are Kafka's defaults, because the real ones are not known
    rates: Annotated[Curve, Heading("Last hour", 10)] = field(default_factory=list)  # as in `PartitionRow`, summed; `null` in it is a
    # minute of which no partition has a number
    kind: Verdict = ""  # the worst problem of its partitions: a `kind` of `Problem`
    severity: Word = ""  # of that problem: `critical`, `warning` or `info`; `null` if nothing is wrong
    since_ms: Moment = -1  # since when it is so


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicReader(PublicMessage):
    """A consumer group that reads a topic."""

    group: Annotated[Name, Heading("Group", 1)]  # which has committed offsets there
    partitions: Annotated[Count, Heading("Partitions", 5)] = 0  # in how many partitions
    lag_records: Annotated[Count, Heading("Records left", 3)] = -1  # what it has left there, in records by its isolation; `null` where a
    # part of it is not known
    lag_offsets: Annotated[Count, Heading("Offsets", 4)] = -1  # likewise in offsets
    verdict: Verdict = ""  # the worst about these partitions, as in `GroupPartition`
    severity: Word = ""  # likewise
    since_ms: Moment = -1  # likewise


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDetail(PublicMessage):
    """One topic, its problems and those of its partitions, and who reads it."""

    at_ms: int  # as of when
    row: TopicRow  # a `TopicRow`
    problems: list[Problem] = field(default_factory=list)  # list of `Problem`: those that name it, and their roots, the most severe first
    readers: list[TopicReader] | None = None  # list of `TopicReader`, the worst first; `null` where no groups are read
    more_readers: int = 0  # so many are left out


@dataclass(frozen=True, slots=True, kw_only=True)
class AwayBroker(PublicMessage):
    """A broker whose log dirs no process holds. What depends on the time is judged as of the page's, as by a broker that starts then."""

    broker: int  # whose log dirs no process holds: it is stopped, or they are a copy
    last_ms: int = -1  # its last sign of life: its files are as of then
    ended_ms: int = -1  # by when its process had ended, `null` if it was not seen to end


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRow(PublicMessage):
    """One partition.

    The replica that is shown for the partition: the leader's, if it is watched. With `replicas: all` each replica has a row.
    """

    broker: Annotated[Id, Heading("Broker", 10, ASC, "R")]  # whose replica is shown: the leader's, if it is watched; with `replicas: all`
    # each replica has a row
    topic: Partition  # its topic
    partition: Number  # its number in the topic
    bytes_rate: Annotated[BytesRate, Heading("Bytes/s", 3, DESC, "B")] = -1.0  # bytes appended a second, over the last minute; from log
    # dirs the mean over the log's segments
    records_rate: Annotated[Rate, Heading("Records/s", 4, DESC, "E")] = -1.0  # records appended a second, likewise
    appended_bytes: Annotated[Bytes, Heading(sort=DESC)] = -1  # since the watching began; not known before the backlog is read
    appended_records: Annotated[Count, Heading(sort=DESC)] = -1  # likewise
    size_bytes: Annotated[Bytes, Heading("Size", 7, DESC, "S")] = -1  # of its segments on disk
    log_start_offset: Annotated[Id, Heading(sort=DESC)] = -1  # Kafka's own
    log_end_offset: Annotated[Id, Heading("End offset", 12, DESC, "F")] = -1  # likewise
    high_watermark: Annotated[Id, Heading(sort=DESC)] = -1  # likewise
    last_stable_offset: Annotated[Id, Heading(sort=DESC)] = -1  # likewise
    unread_offsets: Annotated[Count, Heading("Held back", 5, DESC, "H")] = -1  # high watermark less last stable offset: what readers of
    # committed data do not see
    unread_more: Flag = False  # that is a lower bound: the high watermark is of a checkpoint, and nothing here shows how far it has come
    open_transactions: Annotated[Count, Heading("Open", 9, DESC, "O")] = -1  # how many
    hanging_transactions: Annotated[Count, Heading("Hanging", 13, DESC, "G")] = -1  # how many of them
    last_append_ms: Annotated[Moment, Heading("Last append", 6, DESC, "L")] = -1  # when
    oldest_record_ms: Annotated[Moment, Heading("Oldest record", 14, ASC, "D")] = -1  # the time of its first batch with records
    retention_lag_ms: Annotated[Duration, Heading(sort=DESC)] = -1  # as in `RetentionRow`
    next_deletion_ms: Annotated[Moment, Heading("Next deletion", 11, ASC, "X")] = -1  # likewise
    next_deletion_start_of: Id = -1  # likewise
    next_deletion_by_size: Flag = False  # likewise
    retention_blocked: Annotated[Word, Heading(sort=ASC)] = ""  # likewise
    segments: Annotated[Count, Heading("Segments", 15, DESC, "N")] = -1  # how many
    records_data: Annotated[Count, Heading(sort=DESC)] = -1  # on disk, aborted ones too
    records_aborted: Annotated[Count, Heading(sort=DESC)] = -1  # of these
    records_control: Annotated[Count, Heading(sort=DESC)] = -1  # markers of transactions, which have offsets too
    rates: Annotated[Curve, Heading("Last hour", 8)] = field(default_factory=list)  # bytes a second of the last hour, a number a minute,
    # the oldest first; `null` in it is a minute without a number; empty if none is known
    kind: Verdict = ""  # the worst problem of the log, a `kind` of `Problem`; those of groups, log dirs and agents are of no row
    severity: Word = ""  # of that problem: `critical`, `warning` or `info`; `null` if nothing is wrong
    since_ms: Moment = -1  # since when it is so


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPage(SomeRows):
    """Some rows, sorted."""

    sort: str  # the field that they are sorted by
    order: str  # `asc` or `desc`; what is not known comes last in either
    away: list[AwayBroker] = field(default_factory=list)  # list of `AwayBroker`: what is shown of these is as of when they last wrote


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionPage(ListPage):
    """Partitions."""

    rows: list[PartitionRow]  # list of `PartitionRow`


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionRow(PublicMessage):
    """One open transaction in one partition."""

    broker: Annotated[Id, Heading("Broker", 10, ASC, "R")]  # whose replica it is
    topic: Partition  # its topic
    partition: Number  # its number in the topic
    producer_id: Annotated[Id, Heading("Producer", 7, DESC, "U")]  # of the transaction there
    producer_epoch: Annotated[Id, Heading(sort=DESC)] = -1  # likewise
    first_offset: Annotated[Id, Heading("First offset", 8, DESC, "F")] = -1  # likewise
    start_ms: Annotated[Moment, Heading("Open since", 3, ASC, "S")] = -1  # when it began
    last_append_ms: Annotated[Moment, Heading("Last append", 6, DESC, "L")] = -1  # its last append, by the time of that record; not before
    # it began
    transactional_id: Annotated[Name, Heading("Transactional id", 5, ASC, "I", least=12)] = ""  # as its coordinator has it; `null` if none
    # knows its producer
    coordinator_state: Annotated[Word, Heading("Coordinator", 9, ASC, "C")] = ""  # likewise
    verdict: Verdict = ""  # as in [transactions.md](transactions.md)
    stuck: Annotated[Flag, Heading(sort=DESC)] = False  # likewise
    holds_offsets: Annotated[Count, Heading("Holds back", 4, DESC, "H")] = -1  # what readers of committed data do not see because of it;
    # `null` if another transaction before it holds them back, or if that is not known
    holds_more: Flag = False  # that is a lower bound, as in `PartitionRow`
    deadline_ms: Moment = -1  # when its timeout has passed, and its coordinator ends it; `null` if it has none, or if that is not known
    as_of_ms: Moment = -1  # when its verdict was last certain; `null` if it is now
    held_groups: Annotated[list[str] | None, Unit.NAMES, Heading("Groups that wait", 11, least=6, rare=True)] = None  # consumer groups that
    # do not read on because of it; `null` where no groups are read
    groups: Annotated[Names, Heading("Commits that wait", 12, least=6, rare=True)] = field(default_factory=list)  # consumer groups whose
    # commits wait for it
    command: Annotated[Sentence, Heading("What to do", WIDE)] = ""  # what aborts it if it hangs, or ends it if it is stuck; else what asks
    # its coordinator
    no_command: Sentence = ""  # why there is no command
    advice: Sentence = ""  # what to know before it is run, and what it does, a clause without a period; `null` if it only asks
    kind: Word = ""  # of the transaction: a `kind` of `Problem`
    severity: Word = ""  # of that problem: `critical`, `warning` or `info`; `null` if nothing is wrong
    since_ms: Moment = -1  # since when it is so


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionPage(ListPage):
    """Open transactions."""

    rows: list[TransactionRow]  # list of `TransactionRow`: what is open for longer than `late_after`
    omitted: int = 0  # so many are not listed, because of `late_limit`
    late_after_ms: int = -1  # those that are open for longer are listed: `late_after`, `null` if every open transaction is
    young: int = 0  # how many others are open
    aborting: list[str] = field(default_factory=list)  # clients that abort most of their transactions, in sentences; only a job has watched
    # them


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionRow(PublicMessage):
    """What is kept of one partition, and for how long. Fields have the names of the metrics, without ``segtail_partition_``;
    ``retention_blocked``: a word of `streaming.rules.retention_rule.BLOCKED`.
    """

    broker: Annotated[Id, Heading("Broker", 14, ASC, "R")]  # whose replica it is
    topic: Partition  # its topic
    partition: Number  # its number in the topic
    topic_id: Name = ""  # of its topic, `null` for one that has none
    log_dir: Name = ""  # where the replica is
    leader: Flag = False  # whether the replica leads
    leader_epoch: Id = -1  # Kafka's own
    replicas: Count = -1  # how many the partition has
    in_sync_replicas: Count = -1  # how many of them are in sync
    min_in_sync_replicas: Count = -1  # the limit below which nothing is appended with acks=all
    log_start_offset: Id = -1  # Kafka's own
    local_log_start_offset: Id = -1  # the first offset on this disk, with remote storage
    log_end_offset: Id = -1  # Kafka's own
    high_watermark: Id = -1  # likewise
    last_stable_offset: Id = -1  # Kafka's own; `segtail retention --log-dirs` has it of compacted topics alone, whose open transactions it
    # looks for
    size_bytes: Annotated[Bytes, Heading("Size", 3, DESC, "S")] = -1  # what it keeps
    segments: Annotated[Count, Heading("Segments", 12, DESC, "G")] = -1  # how many
    active_segment_size_bytes: Bytes = -1  # of the segment that takes appends
    active_segment_first_timestamp_ms: Moment = -1  # the time of the first batch in it
    segment_limit_ms: Duration = -1  # after so long it is rolled
    segment_limit_bytes: Bytes = -1  # at this size it is rolled
    oldest_record_ms: Annotated[Moment, Heading("Oldest record", 8, ASC, "D")] = -1  # the time of its first batch with records
    cleanup_policy: Annotated[Word, Heading("Policy", 13)] = ""  # `delete`, `compact` or both
    limit_source: Word = ""  # the level that sets the limit
    limits_assumed: Flag = False  # the limits are Kafka's defaults, because the real ones are not known
    limit_lowered: Sentence = ""  # the last change of the limit that lets the first segment go, if it was lowered, in a sentence
    retention_limit_ms: Annotated[Duration, Heading("Time limit", 9, DESC, "M")] = -1  # its limit, `null` for none
    retention_limit_bytes: Annotated[Bytes, Heading("Size limit", 10, DESC, "Z")] = -1  # likewise
    retention_lag_ms: Annotated[Duration, Heading("Kept too long", 11, DESC, "L")] = -1  # how much older the oldest record is than the
    # limit lets it be
    retention_overdue_ms: Annotated[Duration, Heading("Overdue", 6, DESC, "O")] = -1  # for how long Kafka could have deleted a segment and
    # has not
    retention_overdue: Flag = False  # that is longer than `overdue_after` and than two checks; it is a problem where `limits_assumed`
    # is false
    check_interval_ms: Duration = -1  # of its broker's checks for what may be deleted
    retention_reclaimable_bytes: Annotated[Bytes, Heading("Reclaimable", 7, DESC, "C")] = -1  # of all segments that a check would delete
    next_deletion_ms: Annotated[Moment, Heading("Next deletion", 4, ASC, "X")] = -1  # when the first segment may be deleted, by the limit
    # that lets it go first
    next_deletion_start_of: Id = -1  # its broker, if that has no process and something is to be deleted: it has to be started first, and
    # when is not known
    next_deletion_by_size: Flag = False  # that is `retention.bytes`, if the log grows on as it does, and not `retention.ms`
    retention_blocked: Annotated[Word, Heading("Blocked", 5, ASC, "K", least=8)] = ""  # why a segment beyond its limit stays
    retention_blocked_why: Annotated[Sentence, Heading("Why", WIDE)] = ""  # the same as a sentence
    max_timestamp_ahead_ms: Duration = -1  # how far the largest time of its records is ahead of the clock
    dirty_bytes: Bytes = -1  # of a compacted topic: what the cleaner has before it
    dirty_ratio: Ratio = -1.0  # the share of them in what may be cleaned
    uncleanable_open_transaction_bytes: Bytes = -1  # what it may not touch because of an open transaction
    uncleanable_compaction_lag_bytes: Bytes = -1  # what is younger than `min.compaction.lag.ms`
    uncleanable_moving_bytes: Bytes = -1  # what waits until the log has moved to another log dir
    cleaner_checkpoint_offset: Id = -1  # up to where it has cleaned
    kind: Verdict = ""  # the worst problem of what is kept of it: a `kind` of `Problem`
    severity: Word = ""  # of that problem: `critical`, `warning` or `info`; `null` if nothing is wrong
    since_ms: Moment = -1  # since when it is so


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPage(ListPage):
    """What is kept of partitions."""

    rows: list[RetentionRow]  # list of `RetentionRow`


def path_of_topic(topic: str) -> str:
    """The path of a topic's `TopicDetail`; the name may contain anything."""
    return f"{TOPICS_PATH}/{quote(topic, safe='')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPage(ListPage):
    """Topics."""

    rows: list[TopicRow]  # list of `TopicRow`
    commits_from_ms: Moment = -1  # since when each commit is seen: 0 for all that there ever were; `null` if that is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRow(PublicMessage):
    """One broker. ``phase``: a `streaming.kafka.formats.metadata_records.Phase`."""

    broker: Annotated[Id, Heading("Broker", 1, ASC, "B")]  # its id
    phase: Annotated[Word, Heading("Phase", 3, ASC, "P")] = ""  # `running`, `starting`, `stopping` (or stopped) or `down`, by the metadata
    # log and its process
    phase_ms: Moment = -1  # since when, at the latest
    agent: Annotated[Name, Heading("Agent", 7, ASC, "A", least=12)] = ""  # that watches its log dirs
    agent_up: Flag = False  # whether it answers
    behind_ms: Annotated[Duration, Heading("Behind", 10, DESC, "D")] = -1  # as in `AgentState`
    leaders: Annotated[Count, Heading("Leaders", 4, DESC, "L")] = -1  # partitions that it leads, of the replicas on it that are watched
    replicas: Annotated[Count, Heading("Replicas", 6, DESC, "R")] = -1  # those that are watched
    out_of_sync: Annotated[Count, Heading("Out of sync", 5, DESC, "O")] = -1  # of these, the ones that are not in sync; `null` where that
    # is not known of one
    bytes_rate: Annotated[BytesRate, Heading("Bytes/s", 8, DESC, "Y")] = -1.0  # appended to the partitions that it leads; `null` where it
    # is not known of one
    size_bytes: Annotated[Bytes, Heading("Size", 9, DESC, "S")] = -1  # of its replicas
    log_dirs: Annotated[Count, Heading("Log dirs", 11, DESC, "G")] = -1  # those that its agent reports
    restart: Annotated[Word, Heading("Restart", 12, ASC, "T")] = ""  # whether it may be restarted now: `safe`, `unsafe` or `unknown`
    restart_reason: Word = ""  # the `code` of the first reason why not
    kind: Verdict = ""  # the worst problem of the broker, its log dirs or its agent: a `kind` of `Problem`
    severity: Word = ""  # of that problem: `critical`, `warning` or `info`; `null` if nothing is wrong
    since_ms: Moment = -1  # since when it is so


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerPage(ListPage):
    """Brokers."""

    rows: list[BrokerRow]  # list of `BrokerRow`


@dataclass(frozen=True, slots=True, kw_only=True)
class CountRow(PublicMessage):
    """How many records there are.

    A topic, or a partition by the replica that is shown for it. `segtail count` counts up to the high watermark; a job has counted whole
    logs, so some fields are `null`. So are all numbers of what could not be counted, which has an `error`, and `readable` and `waiting`
    where the last stable offset is not known. Of a topic a sum is `null` if it is so of one of its partitions.
    """

    topic: Name  # which one
    partition: Id = -1  # which one; `null` in a row of a topic
    partitions: Count = 1  # how many the row is about
    broker: Id = -1  # whose replica was counted
    leader: Flag = False  # whether it leads
    first_offset: Id = -1  # it was counted from here: the log start, or the first offset that is on this disk
    next_offset: Id = -1  # and up to before this: the high watermark, or the end of the log where that is not known
    high_watermark: Id = -1  # Kafka's own
    last_stable_offset: Id = -1  # likewise
    data: Count = -1  # records that producers have sent, without those compacted
    aborted: Count = -1  # of these, in aborted transactions
    control: Count = -1  # markers of transactions, which have offsets too
    readable: Count = -1  # what a consumer with read_committed gets; `null` from a job, which counts by whole logs
    waiting: Count = -1  # data between the last stable offset and the high watermark
    unreplicated: Count = -1  # data after the high watermark
    remote_offsets: Count = -1  # offsets that are only in remote storage
    error: Sentence = ""  # why it is not counted, or where it is damaged; of a topic that of its first such partition


@dataclass(frozen=True, slots=True, kw_only=True)
class CountPage(AnswerHead):
    """Some rows."""

    by: str  # what a row is: `topic` or `partition`
    total: int  # as in `PartitionPage`
    matched: int  # likewise
    offset: int  # likewise
    rows: list[CountRow]  # list of `CountRow`, by their names
    away: list[AwayBroker] = field(default_factory=list)  # list of `AwayBroker`: what is shown of these is as of when they last wrote


def path_of_partition(topic: str, partition: int) -> str:
    """The path of a partition's `PartitionDetail`; the topic's name may contain anything."""
    return f"{PARTITIONS_PATH}/{quote(topic, safe='')}/{partition}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentRow(PublicMessage):
    """One segment."""

    base_offset: Annotated[Id, Heading("Base offset", 1)]  # of the segment
    size_bytes: Annotated[Bytes, Heading("Size", 3)] = -1  # likewise
    max_timestamp_ms: Annotated[Moment, Heading("Largest timestamp", 4)] = -1  # likewise
    active: Annotated[Flag, Heading("State", 2)] = False  # it takes appends
    deletable: Flag = False  # it is beyond a limit, and nothing before it stays
    deletion_ms: Annotated[Moment, Heading("Deletion", 5)] = -1  # when the limit that lets it go first does so, by the forecast of
    # `next_deletion_ms` in `RetentionRow`; what is
    # before it has to go first; `null` for never or not known
    deletion_by_size: Flag = False  # that is `retention.bytes`, and not `retention.ms`


@dataclass(frozen=True, slots=True, kw_only=True)
class Minute(PublicMessage):
    """A minute of the last hour."""

    at_ms: int  # the minute of the clock that begins then
    bytes_rate: float = -1.0  # appended until this minute, since the one before
    records_rate: float = -1.0  # likewise
    log_end_offset: int = -1  # as it was
    last_stable_offset: int = -1  # likewise


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaRow(PublicMessage):
    """One replica that is watched."""

    broker: Annotated[Id, Heading("Broker", 1)]  # whose it is
    role: Annotated[Word, Heading("Role", 2)] = "unknown"  # `leader`, `follower` or `unknown`
    in_sync: Annotated[Word, Heading("In sync", 3)] = "unknown"  # `yes`, `no` or `unknown`
    shown: Flag = False  # the rest of the answer is about this one
    log_dir: Annotated[Name, Heading("Log dir", 7, least=12)] = ""  # where it is
    size_bytes: Annotated[Bytes, Heading("Size", 5)] = -1  # as it is there
    log_start_offset: Id = -1  # likewise
    log_end_offset: Annotated[Id, Heading("Log end offset", 4)] = -1  # likewise
    last_append_ms: Annotated[Moment, Heading("Last append", 6)] = -1  # likewise


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDetail(PublicMessage):
    """One partition."""

    at_ms: int  # as of when
    row: PartitionRow  # a `PartitionRow`
    records_why: str = ""  # why its records are not counted, a clause without a period; `null` if they are
    retention: RetentionRow | None = None  # a `RetentionRow`
    transactions: list[TransactionRow] = field(default_factory=list)  # list of `TransactionRow`
    late_after_ms: int = -1  # as in `TransactionPage`
    young_transactions: int = 0  # as `young` in `TransactionPage`, of this partition
    problems: list[Problem] = field(default_factory=list)  # list of `Problem`; those of the whole topic, of groups that read it, and of its
    # broker about logs like this one are among them
    segments: list[SegmentRow] = field(default_factory=list)  # list of `SegmentRow`, 1,000 at most
    omitted: int = 0  # how many are left out in the middle
    minutes: list[Minute] = field(default_factory=list)  # the last hour, list of `Minute`, the oldest first
    replicas: list[ReplicaRow] = field(default_factory=list)  # list of `ReplicaRow`, the one that is shown first
