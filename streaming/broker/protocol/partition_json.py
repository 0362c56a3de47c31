"""One partition, as a job serves it as JSON: its state, its last hour, its segments and its replicas.

Offsets are Kafka's own, times are Unix milliseconds, sizes bytes, rates a second. In memory -1 means "not known" or
"none", and never 0; in JSON that is null.
"""

from dataclasses import dataclass, field
from urllib.parse import quote

from streaming.broker.protocol.json_message import PublicMessage
from streaming.broker.protocol.listing_json import PARTITIONS_PATH, PartitionRow, RetentionRow, TransactionRow
from streaming.broker.protocol.problem_json import Problem

MOST_SEGMENTS = 1000
"""The most segments of one answer: the oldest half and the newest half of them."""


def path_of_partition(topic: str, partition: int) -> str:
    """The path of a partition's `PartitionDetail`; the topic's name may contain anything."""
    return f"{PARTITIONS_PATH}/{quote(topic, safe='')}/{partition}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentRow(PublicMessage):
    """One segment. ``active``: it takes appends. ``deletable``: it is beyond a limit; ``deletion_ms``: when it will be, -1 never or not
    known; ``deletion_by_size``: by ``retention.bytes``, and not by ``retention.ms``.
    """

    base_offset: int
    size_bytes: int = -1
    max_timestamp_ms: int = -1
    active: bool = False
    deletable: bool = False
    deletion_ms: int = -1
    deletion_by_size: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Minute(PublicMessage):
    """A minute of the last hour, which ends at ``at_ms``. Offsets are those at its end."""

    at_ms: int
    bytes_rate: float = -1.0
    records_rate: float = -1.0
    log_end_offset: int = -1
    last_stable_offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaRow(PublicMessage):
    """One replica that is watched. ``role``: "leader", "follower" or "unknown"; ``in_sync``: "yes", "no" or "unknown".

    ``shown``: the one that the rest of the answer is about.
    """

    broker: int
    role: str = "unknown"
    in_sync: str = "unknown"
    shown: bool = False
    log_dir: str = ""
    size_bytes: int = -1
    log_start_offset: int = -1
    log_end_offset: int = -1
    last_append_ms: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDetail(PublicMessage):
    """One partition. ``omitted``: segments in the middle that are left out. ``minutes``: the last hour, the oldest first.

    ``late_after_ms``, ``young_transactions``: as in `TransactionPage`, of those on it. ``records_why``: why its records are not counted, a
    clause without a period; "" if they are.
    """

    at_ms: int
    row: PartitionRow
    records_why: str = ""
    retention: RetentionRow | None = None
    transactions: list[TransactionRow] = field(default_factory=list)
    late_after_ms: int = -1
    young_transactions: int = 0
    problems: list[Problem] = field(default_factory=list)
    segments: list[SegmentRow] = field(default_factory=list)
    omitted: int = 0
    minutes: list[Minute] = field(default_factory=list)
    replicas: list[ReplicaRow] = field(default_factory=list)
