"""Tables that a job serves as JSON: partitions, open transactions and retention, sorted, filtered and cut to pages by the job.

Offsets are Kafka's own, times are Unix milliseconds, sizes bytes, rates a second. In memory -1 means "not known" or
"none", and never 0; in JSON that is null.
"""

from dataclasses import dataclass, field

from streaming.broker.protocol.away_json import AwayBroker
from streaming.broker.protocol.json_message import PublicMessage

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

# The last three fields of a row say what is wrong with it, as `streaming.cluster.verdicts` decides it: the kind of its worst problem, how
# severe that is ("" if nothing is wrong), and since when it is so. How all fields are headed, written and sorted:
# `streaming.pages.listings`.


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRow(PublicMessage):
    """One partition, by the replica that is shown: the leader's, if it is watched.

    ``bytes_rate``, ``records_rate``: over the last minutes. ``unread_offsets``: high watermark less last stable offset, what readers of
    committed data do not see yet. ``next_deletion_start_of``, ``retention_blocked``: as in `RetentionRow`. ``records_*``: what is on disk,
    aborted records are data, too.
    ``rates``: the bytes a second of the last hour, a number a minute, the oldest first; it is empty if none is known, and -1 in it is a
    minute without a number.
    """

    broker: int
    topic: str
    partition: int
    bytes_rate: float = -1.0
    records_rate: float = -1.0
    appended_bytes: int = -1
    appended_records: int = -1
    size_bytes: int = -1
    log_start_offset: int = -1
    log_end_offset: int = -1
    high_watermark: int = -1
    last_stable_offset: int = -1
    unread_offsets: int = -1
    open_transactions: int = -1
    hanging_transactions: int = -1
    last_append_ms: int = -1
    oldest_record_ms: int = -1
    retention_lag_ms: int = -1
    next_deletion_ms: int = -1
    next_deletion_start_of: int = -1
    next_deletion_by_size: bool = False
    retention_blocked: str = ""
    segments: int = -1
    records_data: int = -1
    records_aborted: int = -1
    records_control: int = -1
    rates: list[float] = field(default_factory=list)
    kind: str = ""
    severity: str = ""
    since_ms: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionRow(PublicMessage):
    """One open transaction in one partition.

    ``coordinator_state``: in its coordinator's log, "" if it has no entry there or is not known. ``verdict``: as `segtail transactions` has
    it; ``as_of_ms``: when that was last certain, -1 if it is now. ``holds_offsets``: the offsets that readers of committed data do not see
    because of it, -1 if another transaction before it holds them back, or if that is not known. ``held_groups``: consumer groups that do
    not read on because of it, None where no groups are read. ``groups``: those whose commits wait for it. ``deadline_ms``: when its timeout
    has passed and its coordinator ends it, -1 not known.
    ``command`` aborts it if it hangs, and ends it if it is stuck; else it asks its coordinator. If it is "", ``no_command`` is the reason.
    ``advice``: what to know before it is run, and what it does, a clause without a period; "" if it only asks.
    """

    broker: int
    topic: str
    partition: int
    producer_id: int
    producer_epoch: int = -1
    first_offset: int = -1
    start_ms: int = -1
    last_append_ms: int = -1
    transactional_id: str = ""
    coordinator_state: str = ""
    verdict: str = ""
    stuck: bool = False
    holds_offsets: int = -1
    deadline_ms: int = -1
    as_of_ms: int = -1
    held_groups: list[str] | None = None
    groups: list[str] = field(default_factory=list)
    command: str = ""
    no_command: str = ""
    advice: str = ""
    kind: str = ""
    severity: str = ""
    since_ms: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionRow(PublicMessage):
    """What is kept of one partition, and for how long.

    Fields have the names of the metrics, without ``segtail_partition_``. ``limits_assumed``: the limits are Kafka's defaults, because the
    real ones are not known. ``retention_overdue``: for longer than ``overdue_after`` and two checks Kafka could have deleted a segment and
    has not, by these limits. ``next_deletion_start_of``: the broker of the replica if it has no process, -1 if it is not so, or if nothing
    is to be deleted: it has to be started first, so ``next_deletion_ms`` is not known. ``retention_blocked``: a word for why a segment that
    is beyond a limit is not deleted, "" if none is; ``retention_blocked_why`` is the same as a sentence.
    """

    broker: int
    topic: str
    partition: int
    topic_id: str = ""
    log_dir: str = ""
    leader: bool = False
    leader_epoch: int = -1
    replicas: int = -1
    in_sync_replicas: int = -1
    min_in_sync_replicas: int = -1
    log_start_offset: int = -1
    local_log_start_offset: int = -1
    log_end_offset: int = -1
    high_watermark: int = -1
    last_stable_offset: int = -1
    size_bytes: int = -1
    segments: int = -1
    active_segment_size_bytes: int = -1
    active_segment_first_timestamp_ms: int = -1
    segment_limit_ms: int = -1
    segment_limit_bytes: int = -1
    oldest_record_ms: int = -1
    cleanup_policy: str = ""
    limit_source: str = ""
    limits_assumed: bool = False
    retention_limit_ms: int = -1
    retention_limit_bytes: int = -1
    retention_lag_ms: int = -1
    retention_overdue_ms: int = -1
    retention_overdue: bool = False
    check_interval_ms: int = -1
    retention_reclaimable_bytes: int = -1
    next_deletion_ms: int = -1
    next_deletion_start_of: int = -1
    next_deletion_by_size: bool = False
    retention_blocked: str = ""
    retention_blocked_why: str = ""
    max_timestamp_ahead_ms: int = -1
    dirty_bytes: int = -1
    dirty_ratio: float = -1.0
    uncleanable_open_transaction_bytes: int = -1
    uncleanable_compaction_lag_bytes: int = -1
    uncleanable_moving_bytes: int = -1
    cleaner_checkpoint_offset: int = -1
    kind: str = ""
    severity: str = ""
    since_ms: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPage(PublicMessage):
    """Some rows from ``offset`` on, of the ``matched`` ones that were asked for; there are ``total``.

    ``at_ms``: as of when, by segtail's ``version``. ``doubts``: what cannot be told, in sentences. ``sort``, ``order``: the field that they
    are sorted by, and "asc" or "desc". What is not known comes last in either order. ``away``: brokers without a process.
    """

    at_ms: int
    version: str = ""
    doubts: list[str] = field(default_factory=list)
    total: int
    matched: int
    offset: int
    sort: str
    order: str
    away: list[AwayBroker] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionPage(ListPage):
    """Partitions."""

    rows: list[PartitionRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionPage(ListPage):
    """Open transactions. ``omitted``: so many are only counted, because ``late_limit`` is lower.

    ``late_after_ms``: those that are open for longer are listed, -1 if all are; ``young``: so many others are open. ``aborting``: clients
    that abort most of their transactions, in sentences; only from a job.
    """

    rows: list[TransactionRow]
    omitted: int = 0
    late_after_ms: int = -1
    young: int = 0
    aborting: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPage(ListPage):
    """What is kept of partitions."""

    rows: list[RetentionRow]
