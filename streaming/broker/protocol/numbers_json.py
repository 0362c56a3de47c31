"""How a cluster is on a good day, as a job serves it as JSON: six numbers, and what comes next.

Times are Unix milliseconds, rates a second. In memory -1 and "" mean "not known" or "none"; in JSON that is null. Where a number is not
known a field says why.
"""

from dataclasses import dataclass, field

from streaming.broker.protocol.json_message import PublicMessage

NUMBERS_PATH = "/api/v1/numbers"
"""`ClusterNumbers`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNumbers(PublicMessage):
    """The numbers.

    ``bytes_rate``, ``records_rate``: appended to the partitions of which it is known; of ``rates_missing`` others it is not. ``*_rates``
    and ``*_hour``: the last hour, a number a minute, the oldest first; -1 in it is a minute without a number. ``loss_left_hour`` and
    ``full_left_hour`` are the milliseconds that were left until then.
    ``lag_records``: the largest lag of a consumer group that somebody uses, in records as far as these are known, else in offsets.
    ``loss_ms``: when retention may first delete what such a group has not read; ``loss_assumed``: by limits that are Kafka's defaults.
    ``loss_start_of``: where no such time is known, the broker, without a process, that has to be started before some group loses anything.
    ``full_ms``: when the first log dir is full. ``out_of_sync``: replicas; of ``sync_missing`` partitions it is not known. ``*_why``: why
    that is not known, "" if it is.

    ``hanging``: transactions that no coordinator will end; of ``unjudged`` open ones it cannot be told. ``oldest_ms``: since when the
    oldest open transaction is open, in ``oldest_topic`` and ``oldest_partition``; -1 if none is open.
    """

    at_ms: int
    bytes_rate: float = -1.0
    records_rate: float = -1.0
    rates_missing: int = 0
    rates_why: str = ""
    bytes_rates: list[float] = field(default_factory=list)
    records_rates: list[float] = field(default_factory=list)
    lag_records: int = -1
    lag_group: str = ""
    lag_why: str = ""
    lag_hour: list[float] = field(default_factory=list)
    loss_ms: int = -1
    loss_start_of: int = -1
    loss_group: str = ""
    loss_assumed: bool = False
    loss_why: str = ""
    loss_left_hour: list[float] = field(default_factory=list)
    full_ms: int = -1
    full_broker: int = -1
    full_log_dir: str = ""
    full_why: str = ""
    full_left_hour: list[float] = field(default_factory=list)
    out_of_sync: int = -1
    sync_missing: int = 0
    sync_why: str = ""
    out_of_sync_hour: list[float] = field(default_factory=list)
    hanging: int = -1
    unjudged: int = 0
    oldest_ms: int = -1
    oldest_topic: str = ""
    oldest_partition: int = -1
