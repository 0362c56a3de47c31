"""Topics that a job serves as JSON: what their partitions come to, and who reads them.

Times are Unix milliseconds, sizes bytes, rates a second. In memory -1 means "not known" or "none", and never 0; in JSON that is null.
"""

from dataclasses import dataclass, field
from urllib.parse import quote

from streaming.broker.protocol.json_message import PublicMessage
from streaming.broker.protocol.listing_json import ListPage
from streaming.broker.protocol.problem_json import Problem

TOPICS_PATH = "/api/v1/topics"
"""`TopicPage`, by ``?sort=FIELD&order=asc|desc&topic=NAME&filter=TEXT&offset=N&limit=N``."""

MOST_READERS = 1000
"""The most groups of one topic that are named: those in trouble first."""


MOST_PROBLEMS = 100
"""The most problems of one topic: the most severe."""


def path_of_topic(topic: str) -> str:
    """The path of a topic's `TopicDetail`; the name may contain anything."""
    return f"{TOPICS_PATH}/{quote(topic, safe='')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRow(PublicMessage):
    """One topic, by its partitions, each by the replica that is shown for it.

    ``bytes_rate``, ``records_rate``, ``size_bytes``, ``unread_offsets``, ``open_transactions`` and ``out_of_sync`` are sums, and not known
    where one of their parts is not. ``out_of_sync``: replicas. ``groups``: how many have committed offsets in it, -1 where no groups are
    read. ``oldest_record_ms`` to ``next_deletion_by_size``: of the partition that has the oldest, the last and the next;
    ``next_deletion_start_of``: as in `RetentionRow`, of the partition with the first such broker. The limits are those of its first
    partition. ``rates``: as in `PartitionRow`, summed; a minute is not known if it is so of every partition.
    """

    topic: str
    partitions: int = 0
    bytes_rate: float = -1.0
    records_rate: float = -1.0
    size_bytes: int = -1
    unread_offsets: int = -1
    open_transactions: int = -1
    out_of_sync: int = -1
    groups: int = -1
    last_append_ms: int = -1
    oldest_record_ms: int = -1
    next_deletion_ms: int = -1
    next_deletion_start_of: int = -1
    next_deletion_by_size: bool = False
    cleanup_policy: str = ""
    retention_limit_ms: int = -1
    retention_limit_bytes: int = -1
    limits_assumed: bool = False
    rates: list[float] = field(default_factory=list)
    kind: str = ""
    severity: str = ""
    since_ms: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPage(ListPage):
    """Topics."""

    rows: list[TopicRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicReader(PublicMessage):
    """A consumer group that has committed offsets in a topic: in how many partitions, and what it has left there.

    Sums are not known where one of their parts is not. ``verdict``, ``severity``, ``since_ms``: the worst about these partitions.
    """

    group: str
    partitions: int = 0
    lag_records: int = -1
    lag_offsets: int = -1
    verdict: str = ""
    severity: str = ""
    since_ms: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDetail(PublicMessage):
    """One topic, its problems and those of its partitions, and who reads it.

    ``readers``: None where no groups are read. ``more_readers``: so many are left out.
    """

    at_ms: int
    row: TopicRow
    problems: list[Problem] = field(default_factory=list)
    readers: list[TopicReader] | None = None
    more_readers: int = 0
