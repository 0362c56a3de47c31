"""The producers at work. Each is a generator: it is sent the time, does one thing, and yields the time when it is due again."""

import random
from collections import defaultdict
from collections.abc import Generator, Sequence

from streaming.simulator.batch_writer import Batch, Record, next_sequence
from streaming.simulator.group_coordinator import GroupCoordinator
from streaming.simulator.log import PartitionLog
from streaming.simulator.transaction_coordinator import Coordinator
from streaming.simulator.workload import Traffic

Actor = Generator[int, int, None]

_KEYS = 5000
_QUIET = 200
"""How much less is written while there is little to do."""

_AHEAD_MS = 26 * 3_600_000
_TEXT_BYTES = 1 << 16
_WORDS = ("checkout", "customer", "delivered", "error", "item", "latency", "level", "page", "path", "price", "region", "session", "status")


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


def plain_producer(writer: Writer, producer_id: int, first_due: int) -> Actor:
    """Writes for ever, partition after partition; idempotent with a producer id, plain with -1."""
    now = yield first_due
    partition = 0
    while True:
        size = writer.write(partition, now, producer_id=producer_id)
        partition = (partition + 1) % len(writer.logs)
        now = yield writer.later(now, writer.pause(size))


def transactional_producer(
    writer: Writer, coordinator: Coordinator, groups: GroupCoordinator, sources: Sequence[PartitionLog], first_due: int
) -> Actor:
    """Transaction after transaction: about one in seven is aborted. With a group it commits the group's offsets as part of each.

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


def _text(rng: random.Random) -> bytes:
    words = [f'"{rng.choice(_WORDS)}":{rng.randrange(100_000)},' for _ in range(_TEXT_BYTES // 10)]
    return "".join(words).encode()[:_TEXT_BYTES]
