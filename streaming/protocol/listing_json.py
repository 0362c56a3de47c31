"""Tables that a job serves as JSON: partitions, open transactions and retention, sorted, filtered and cut to pages by the job.

Offsets are Kafka's own, times are Unix milliseconds, sizes bytes, rates a second. -1 means "not known" or "none", and never 0.
"""

from dataclasses import dataclass, field

from streaming.protocol.json_message import Message

PARTITIONS_PATH = "/api/v1/partitions"
"""`PartitionPage`, by ``?sort=FIELD&order=asc|desc&filter=TEXT&offset=N&limit=N``."""

TRANSACTIONS_PATH = "/api/v1/transactions"
"""`TransactionPage`, likewise."""

RETENTION_PATH = "/api/v1/retention"
"""`RetentionPage`, likewise."""

DEFAULT_LIMIT, LARGEST_LIMIT = 50, 1000
"""The number of rows of a page: if ``limit`` is not given, and at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRow(Message):
    """One partition, by the replica that is shown: the leader's, if it is watched.

    ``bytes_rate``, ``records_rate``: over the last minutes. ``unread_offsets``: high watermark less last stable offset, what readers of
    committed data do not see yet. ``blocked``: as in `RetentionRow`. ``records_*``: what is on disk, aborted records are data, too.
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
    blocked: str = ""
    segments: int = -1
    records_data: int = -1
    records_aborted: int = -1
    records_control: int = -1
    rates: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionRow(Message):
    """One open transaction in one partition.

    ``coordinator_state``: in its coordinator's log, "" if it has no entry there or is not known. ``verdict``: as `segtail transactions` has
    it. ``holds_offsets``: the offsets that readers of committed data do not see because of it, -1 if another transaction before it holds
    them back, or if that is not known. ``groups``: consumer groups whose commits wait for it. ``command`` aborts it, for a hanging one
    only; if it is "", ``no_command`` is the reason.
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
    groups: list[str] = field(default_factory=list)
    command: str = ""
    no_command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionRow(Message):
    """What is kept of one partition, and for how long.

    ``retention_ms``, ``retention_bytes``: the limits, -1 for none; ``limits_assumed``: Kafka's defaults, because the real ones are not
    known. ``lag_ms``: how much older its oldest record is than its limit lets it be. ``overdue_ms``: for how long Kafka could have deleted
    a segment and has not. ``reclaimable_bytes``: of segments that are beyond a limit. ``blocked``: a word for why a segment that is beyond
    a limit is not deleted, "" if none is; ``blocked_why`` is the same as a sentence.
    """

    broker: int
    topic: str
    partition: int
    size_bytes: int = -1
    segments: int = -1
    oldest_record_ms: int = -1
    retention_ms: int = -1
    retention_bytes: int = -1
    limits_assumed: bool = False
    lag_ms: int = -1
    overdue_ms: int = -1
    reclaimable_bytes: int = -1
    next_deletion_ms: int = -1
    blocked: str = ""
    blocked_why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPage(Message):
    """Some rows from ``offset`` on, of the ``matched`` ones that hold the filter's text; there are ``total``.

    ``at_ms``: as of when. ``sort``, ``order``: the field that they are sorted by, and "asc" or "desc". What is not known comes last in
    either order.
    """

    at_ms: int
    total: int
    matched: int
    offset: int
    sort: str
    order: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionPage(ListPage):
    """Partitions."""

    rows: list[PartitionRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionPage(ListPage):
    """Open transactions. ``omitted``: so many are only counted, because ``late_limit`` is lower or they are younger than ``late_after``."""

    rows: list[TransactionRow]
    omitted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPage(ListPage):
    """What is kept of partitions."""

    rows: list[RetentionRow]
