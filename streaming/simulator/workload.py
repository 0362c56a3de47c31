"""What the simulated cluster is busy with: its topics, and who writes to them."""

from dataclasses import dataclass

from streaming.simulator.compressor import Codec
from streaming.simulator.segment_writer import LogConfig

MEBIBYTE = 1 << 20
MINUTE = 60_000


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic with the configs that are set for it, by Kafka's names."""

    name: str
    partitions: int
    configs: tuple[tuple[str, str], ...] = ()

    def log_config(self) -> LogConfig:
        """What its configs mean for its segments."""
        given = dict(self.configs)
        defaults = LogConfig()
        return LogConfig(
            segment_bytes=int(given.get("segment.bytes", defaults.segment_bytes)),
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
    transactions, a ``group`` commit that group's offsets in ``source`` with them. Random values do not compress; the others are text.
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
    group: str = ""
    source: str = ""


TRANSACTION_STATE = Topic(
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
CONSUMER_OFFSETS = Topic(
    "__consumer_offsets",
    4,
    (("compression.type", "producer"), ("cleanup.policy", "compact"), ("segment.bytes", str(MEBIBYTE))),
)


def _sized(segment: int, retention: int) -> tuple[tuple[str, str], ...]:
    return (("segment.bytes", str(segment)), ("retention.bytes", str(retention)))


def _timed(segment: int, retention_ms: int) -> tuple[tuple[str, str], ...]:
    return (("segment.bytes", str(segment)), ("retention.ms", str(retention_ms)))


TOPICS = (
    Topic("web.clicks", 4, _timed(MEBIBYTE, MINUTE)),
    Topic("orders-eu-1", 2, _sized(MEBIBYTE, 4 * MEBIBYTE)),
    Topic("payments", 3, _sized(MEBIBYTE, 32 * MEBIBYTE)),
    Topic("app.logs-json", 2, _sized(MEBIBYTE, 4 * MEBIBYTE)),
    Topic("sensor-readings.v2", 3, (*_sized(MEBIBYTE, 3 * MEBIBYTE), ("message.timestamp.type", "LogAppendTime"))),
    Topic("audit_log", 1, (*_timed(2 * MEBIBYTE, 5 * MINUTE), ("preallocate", "true"))),
    Topic("images.thumbnails", 2, _sized(4 * MEBIBYTE, 16 * MEBIBYTE)),
    Topic("nobody.writes-here", 1),
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
        group="payment-processor",
        source="orders-eu-1",
    ),
    Traffic(topic="app.logs-json", share=0.18, codec=Codec.GZIP, records=(50, 150), value_bytes=(150, 450)),
    Traffic(
        topic="sensor-readings.v2", share=0.06, codec=Codec.SNAPPY, records=(30, 120), value_bytes=(30, 60), key="device", idempotent=False
    ),
    Traffic(topic="audit_log", share=0.04, codec=Codec.NONE, records=(1, 1), value_bytes=(300, 900), key="user", headers=True),
    Traffic(
        topic="images.thumbnails", share=0.32, codec=Codec.NONE, records=(1, 4), value_bytes=(20_000, 110_000), key="image", random=True
    ),
)

STUCK = Traffic(
    topic="payments", share=0.0, codec=Codec.NONE, records=(3, 3), value_bytes=(200, 600), key="order", transactional_id="billing-batch"
)
"""The producer that opens one transaction and never ends it."""
