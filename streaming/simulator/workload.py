"""The work of the simulated cluster: its topics, who writes to them and who reads them."""

from dataclasses import dataclass

from streaming.simulator.batch_writer import Codec
from streaming.simulator.group_coordinator import Group
from streaming.simulator.segment_writer import LogConfig

MEBIBYTE = 1 << 20
MINUTE = 60_000


@dataclass(frozen=True, slots=True)
class SimulatedTopic:
    """A topic with the configs that are set for it, by Kafka's names."""

    name: str
    partitions: int
    configs: tuple[tuple[str, str], ...] = ()

    def log_config(self) -> LogConfig:
        """The configs of its segments."""
        given = dict(self.configs)
        defaults = LogConfig()
        return LogConfig(
            segment_bytes=int(given.get("segment.bytes", defaults.segment_bytes)),
            roll_ms=int(given.get("segment.ms", defaults.roll_ms)),
            retention_ms=int(given.get("retention.ms", defaults.retention_ms)),
            retention_bytes=int(given.get("retention.bytes", defaults.retention_bytes)),
            compacted=given.get("cleanup.policy") == "compact",
            preallocate=given.get("preallocate") == "true",
        )

    def log_append_time(self) -> bool:
        """Whether the broker stamps the batches."""
        return ("message.timestamp.type", "LogAppendTime") in self.configs


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """One producer.

    Records per batch and bytes per value are ranges; ``share`` is its part of the broker's bytes. A ``transactional_id`` makes it write in
    transactions, a ``group`` commit the offsets of that group with them. Random values do not compress; the others are text.
    """

    topic: str
    share: float
    codec: Codec
    records: tuple[int, int]
    value_bytes: tuple[int, int]
    key: str = ""
    headers: bool = False
    random: bool = False
    idempotent: bool = True
    transactional_id: str = ""
    group: Group | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A group that reads its topic.

    ``pace`` is how many offsets it reads for each one that is appended. With ``stops_after_ms`` it reads nothing from then on.
    """

    group: Group
    pace: float = 2.0
    stops_after_ms: int | None = None


TRANSACTION_STATE = SimulatedTopic(
    "__transaction_state",
    4,
    (
        ("compression.type", "uncompressed"),
        ("cleanup.policy", "compact"),
        ("min.insync.replicas", "1"),
        ("segment.bytes", str(MEBIBYTE)),
        ("unclean.leader.election.enable", "false"),
    ),
)
CONSUMER_OFFSETS = SimulatedTopic(
    "__consumer_offsets",
    4,
    (("compression.type", "producer"), ("cleanup.policy", "compact"), ("segment.bytes", str(MEBIBYTE))),
)


def _sized(segment: int, retention: int) -> tuple[tuple[str, str], ...]:
    return (("segment.bytes", str(segment)), ("retention.bytes", str(retention)))


def _timed(segment: int, retention_ms: int) -> tuple[tuple[str, str], ...]:
    return (("segment.bytes", str(segment)), ("retention.ms", str(retention_ms)))


TOPICS = (
    SimulatedTopic("web.clicks", 4, (*_timed(MEBIBYTE, MINUTE), ("segment.ms", str(MINUTE)))),
    SimulatedTopic("orders-eu-1", 2, _sized(MEBIBYTE, 4 * MEBIBYTE)),
    SimulatedTopic("payments", 3, _sized(MEBIBYTE, 32 * MEBIBYTE)),
    SimulatedTopic("app.logs-json", 2, _sized(MEBIBYTE, 4 * MEBIBYTE)),
    SimulatedTopic("sensor-readings.v2", 3, (*_sized(MEBIBYTE, 3 * MEBIBYTE), ("message.timestamp.type", "LogAppendTime"))),
    SimulatedTopic("audit_log", 1, (*_timed(2 * MEBIBYTE, 45 * MINUTE), ("segment.ms", str(5 * MINUTE)), ("preallocate", "true"))),
    SimulatedTopic("images.thumbnails", 2, _sized(4 * MEBIBYTE, 16 * MEBIBYTE)),
    SimulatedTopic("invoices", 2, (("segment.bytes", str(MEBIBYTE)),)),
    # As in clusters of before Kafka 4, any time is accepted.
    SimulatedTopic("mobile.events", 2, (*_timed(MEBIBYTE, 10 * MINUTE), ("message.timestamp.after.max.ms", str(2**63 - 1)))),
    SimulatedTopic("nobody.writes-here", 1),
)

TRAFFIC = (
    Traffic(topic="web.clicks", share=0.14, codec=Codec.LZ4, records=(20, 80), value_bytes=(80, 240), key="user"),
    Traffic(
        topic="orders-eu-1",
        share=0.14,
        codec=Codec.ZSTD,
        records=(40, 160),
        value_bytes=(300, 900),
        key="order",
        transactional_id="order-writer",
    ),
    Traffic(
        topic="payments",
        share=0.12,
        codec=Codec.NONE,
        records=(15, 60),
        value_bytes=(200, 600),
        key="order",
        headers=True,
        transactional_id="payment-processor",
        group=Group(name="payment-processor", topic="orders-eu-1", classic=True),
    ),
    Traffic(topic="app.logs-json", share=0.18, codec=Codec.GZIP, records=(50, 150), value_bytes=(150, 450)),
    Traffic(
        topic="sensor-readings.v2", share=0.06, codec=Codec.SNAPPY, records=(30, 120), value_bytes=(30, 60), key="device", idempotent=False
    ),
    Traffic(topic="audit_log", share=0.02, codec=Codec.NONE, records=(1, 1), value_bytes=(300, 900), key="user", headers=True),
    Traffic(
        topic="invoices",
        share=0.01,
        codec=Codec.LZ4,
        records=(5, 20),
        value_bytes=(200, 500),
        key="order",
        transactional_id="invoice-writer",
    ),
    Traffic(topic="mobile.events", share=0.01, codec=Codec.LZ4, records=(10, 40), value_bytes=(80, 240), key="user"),
    Traffic(
        topic="images.thumbnails", share=0.32, codec=Codec.NONE, records=(1, 4), value_bytes=(20_000, 110_000), key="image", random=True
    ),
)

STUCK = Traffic(
    topic="payments", share=0.0, codec=Codec.NONE, records=(3, 3), value_bytes=(200, 600), key="order", transactional_id="billing-batch"
)
"""The producer that opens one transaction and never ends it."""

LATE = Traffic(
    topic="invoices", share=0.0, codec=Codec.LZ4, records=(5, 20), value_bytes=(200, 500), key="order", transactional_id="invoice-import"
)
"""The producer with a request that comes after the end of its transaction."""

AHEAD = Traffic(topic="mobile.events", share=0.0, codec=Codec.LZ4, records=(3, 3), value_bytes=(80, 240), key="user")
"""The producer with a wrong clock."""

READING = (
    Reading(group=Group(name="click-counter", topic="web.clicks", members=2)),
    Reading(group=Group(name="log-search", topic="app.logs-json", classic=True), pace=0.8),  # retention overtakes it within minutes
    Reading(group=Group(name="ledger", topic="payments", members=3, classic=True)),  # it waits behind the transaction of STUCK
    Reading(group=Group(name="invoice-mailer", topic="invoices", members=2)),  # and this one behind that of LATE
    Reading(group=Group(name="audit-export", topic="audit_log"), stops_after_ms=20_000),
)
"""The groups that commit by themselves; another one does in its producer's transactions."""
