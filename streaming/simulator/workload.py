"""The work of the simulated cluster: its topics, who writes to them and who reads them, and the producers at work."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Generator, Sequence
from dataclasses import dataclass

from streaming.simulator.batch_writer import Batch, Codec, Record, next_sequence
from streaming.simulator.coordinators import Coordinator, Group, GroupCoordinator
from streaming.simulator.log import PartitionLog
from streaming.simulator.segment_writer import LogConfig

MEBIBYTE = 1 << 20
MINUTE = 60_000

Actor = Generator[int, int, None]

_KEYS = 5000

_QUIET = 200
"""How much less is written while there is little to do."""

_AHEAD_MS = 26 * 3_600_000
_TEXT_BYTES = 1 << 16
_WORDS = ("checkout", "customer", "delivered", "error", "item", "latency", "level", "page", "path", "price", "region", "session", "status")


def plain_producer(writer: Writer, producer_id: int, first_due: int) -> Actor:
    """Writes for ever, partition after partition; idempotent with a producer id, plain with -1."""
    now = yield first_due
    partition = 0
    while True:
        size = writer.write(partition, now, producer_id=producer_id)
        partition = (partition + 1) % len(writer.logs)
        now = yield writer.later(now, writer.pause(size))


class Writer:
    """Makes the batches of one producer and appends them to partitions in turn.

    Args:
        logs: the partitions of its topic.
        rate: bytes a second that it may write.
        log_append_time: whether its topic's batches are stamped by the broker.
        busy_from: until then, in Unix milliseconds, there is little to do.
    """

    def __init__(
        self,
        traffic: Traffic,
        logs: Sequence[PartitionLog],
        rate: float,
        rng: random.Random,
        *,
        log_append_time: bool,
        busy_from: int = 0,
    ) -> None:
        self.traffic = traffic
        self.logs = logs
        self.rng = rng
        self._rate = rate
        self._log_append_time = log_append_time
        self._busy_from = busy_from
        self._sequences: defaultdict[int, int] = defaultdict(int)
        self._text = _text(rng)
        self._keys = [f"{traffic.key}-{n}".encode() if traffic.key else None for n in range(_KEYS)]

    def write(self, partition: int, now: int, *, producer_id: int = -1, epoch: int = 0, transactional: bool = False) -> int:
        """Append one batch.

        Returns:
            Its bytes in the log.
        """
        low, high = self.traffic.records
        count = self.rng.randint(low, high)
        sequence = self._sequences[partition]
        batch = Batch(
            records=tuple(self._record(now - count + 1 + index) for index in range(count)),
            codec=self.traffic.codec,
            producer_id=producer_id,
            producer_epoch=epoch if producer_id >= 0 else -1,
            base_sequence=sequence if producer_id >= 0 else -1,
            transactional=transactional,
            log_append_time=now if self._log_append_time else None,
        )
        self._sequences[partition] = next_sequence(sequence, count)
        log = self.logs[partition]
        log.append(batch)
        return log.active.entries[-1].size

    def pause(self, size: int) -> int:
        """How many milliseconds ``size`` bytes take at the producer's rate, more or less."""
        return max(1, round(size * 1000 / self._rate * self.rng.uniform(0.7, 1.3)))

    def later(self, now: int, pause: int, spent: int = 0) -> int:
        """When it goes on: after a pause or, while there is little to do, after many times that and what it ``spent`` on its work.

        Times in milliseconds.
        """
        if now >= self._busy_from:
            return now + pause
        return min(now + (pause + spent) * _QUIET, self._busy_from + pause)

    def new_epoch(self) -> None:
        """Sequence numbers begin again."""
        self._sequences.clear()

    def _record(self, timestamp: int) -> Record:
        headers = (("trace", self.rng.randbytes(8)), ("source", b"web")) if self.traffic.headers else ()
        return Record(self._keys[int(self.rng.random() * _KEYS)], self._value(), timestamp, headers)

    def _value(self) -> bytes:
        low, high = self.traffic.value_bytes
        size = low + int(self.rng.random() * (high - low))
        if self.traffic.random:
            return self.rng.randbytes(size)
        start = int(self.rng.random() * (len(self._text) - size))
        return self._text[start : start + size]


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


def _text(rng: random.Random) -> bytes:
    words = [f'"{rng.choice(_WORDS)}":{rng.randrange(100_000)},' for _ in range(_TEXT_BYTES // 10)]
    return "".join(words).encode()[:_TEXT_BYTES]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A group that reads its topic.

    ``pace`` is how many offsets it reads for each one that is appended. With ``stops_after_ms`` it reads nothing from then on.
    """

    group: Group
    pace: float = 2.0
    stops_after_ms: int | None = None


READING = (
    Reading(group=Group(name="click-counter", topic="web.clicks", members=2)),
    Reading(group=Group(name="log-search", topic="app.logs-json", classic=True), pace=0.8),  # retention overtakes it within minutes
    Reading(group=Group(name="ledger", topic="payments", members=3, classic=True)),  # it waits behind the transaction of STUCK
    Reading(group=Group(name="invoice-mailer", topic="invoices", members=2)),  # and this one behind that of LATE
    Reading(group=Group(name="audit-export", topic="audit_log"), stops_after_ms=20_000),
)
"""The groups that commit by themselves; another one does in its producer's transactions."""


def transactional_producer(
    writer: Writer, coordinator: Coordinator, groups: GroupCoordinator, sources: Sequence[PartitionLog], first_due: int
) -> Actor:
    """Transaction after transaction: about one in seven is aborted. With a group it commits the group's offsets as part of each.

    The producers at work. Each is a generator: it is sent the time, does one thing, and yields the time when it is due again.

    Args:
        sources: the partitions that its group reads.
    """
    now = yield first_due
    transaction = coordinator.init(writer.traffic.transactional_id, 60_000, now)
    group = writer.traffic.group
    if group is not None:
        groups.join(group, sources, now)
    while True:
        began = now
        for _ in range(writer.rng.randint(3, 8)):
            partition = writer.rng.randrange(len(writer.logs))
            transaction = coordinator.add(transaction, writer.traffic.topic, partition, now)
            size = writer.write(partition, now, producer_id=transaction.producer_id, epoch=transaction.epoch, transactional=True)
            now = yield now + writer.pause(size)
        if group is not None:
            log = groups.log_of(group.name)
            transaction = coordinator.add(transaction, log.topic, log.partition, now)
            groups.commit_in(transaction, group.name, sources, [source.last_stable_offset() for source in sources], now)
        transaction = coordinator.end(transaction, committed=writer.rng.random() > 1 / 7, now=now)
        writer.new_epoch()
        now = yield writer.later(now, writer.rng.randint(5, 50), now - began)


def stuck_producer(writer: Writer, coordinator: Coordinator, first_due: int) -> Actor:
    """Opens one transaction, writes to it three times in ten seconds, and is never heard of again.

    Its timeout is a week, so a coordinator would not have ended it meanwhile.
    """
    now = yield first_due
    transaction = coordinator.init(writer.traffic.transactional_id, 7 * 24 * 3_600_000, now)
    partition = len(writer.logs) - 1
    for _ in range(3):
        transaction = coordinator.add(transaction, writer.traffic.topic, partition, now)
        writer.write(partition, now, producer_id=transaction.producer_id, epoch=transaction.epoch, transactional=True)
        now = yield now + 5_000


def late_producer(writer: Writer, coordinator: Coordinator, first_due: int) -> Actor:
    """Aborts a transaction of two batches, of which the second comes to the broker when the transaction is over.

    The request was delayed on its way. The producer is of before Kafka 4, so its next transaction has the same epoch, and the broker does
    not verify transactions: it takes the batch for the beginning of a transaction, of which no coordinator knows.
    """
    now = yield first_due
    transaction = coordinator.init(writer.traffic.transactional_id, 60_000, now, client_version=0)
    transaction = coordinator.add(transaction, writer.traffic.topic, 0, now)
    writer.write(0, now, producer_id=transaction.producer_id, epoch=transaction.epoch, transactional=True)
    now = yield now + 1_000
    coordinator.end(transaction, committed=False, now=now)
    now = yield now + 1_000
    writer.write(0, now, producer_id=transaction.producer_id, epoch=transaction.epoch, transactional=True)


def producer_ahead(writer: Writer, first_due: int) -> Actor:
    """Writes one batch, with records that are dated more than a day ahead."""
    now = yield first_due
    writer.write(len(writer.logs) - 1, now + _AHEAD_MS)
