"""Steady traffic to a live broker, and what of it a page does not show yet."""

import os
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

from tests.broker.clients import producer

RECORD_BYTES = 1000
TRANSACTION_SECONDS = 1.0
"""How long a transaction takes."""

_TICK_SECONDS = 0.02
_PATIENT_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Load:
    """What is produced: ``batches`` a second over ``partitions`` of one topic, ``records`` of a kilobyte each in one.

    By one idempotent producer, as clients are by default; ``transactional``: in transactions, one after the other.
    """

    name: str
    partitions: int
    batches: int
    records: int
    codec: str
    transactional: bool = False

    @property
    def bytes_a_second(self) -> int:
        """Of values."""
        return self.batches * self.records * RECORD_BYTES


def values() -> list[bytes]:
    """Some values, half random: a codec takes them down to about half."""
    return [os.urandom(RECORD_BYTES // 2).ljust(RECORD_BYTES, b".") for _ in range(64)]


class Traffic:
    """Produces on a thread until it is closed."""

    def __init__(self, bootstrap: str, topic: str, load: Load) -> None:
        quiet = {"log_level": 0}  # that the broker is gone at the end
        batches = {"linger.ms": 20 if load.records > 1 else 0, "batch.num.messages": load.records}
        transactional_id = "bench" if load.transactional else None
        self._client = producer(bootstrap, load.codec, idempotent=True, transactional_id=transactional_id, more=quiet | batches)
        self._topic = topic
        self._load = load
        self._values = values()
        self._lock = threading.Lock()
        self._unseen: list[deque[tuple[int, float]]] = [deque() for _ in range(load.partitions)]
        self.failures: list[str] = []
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="traffic")
        self._thread.start()

    def age(self, ends: dict[int, int], now: float) -> float:
        """How long ago the first record was delivered that lies behind the ends that somebody shows, over all partitions."""
        oldest = 0.0
        with self._lock:
            for partition, unseen in enumerate(self._unseen):
                while unseen and unseen[0][0] < ends.get(partition, 0):
                    unseen.popleft()
                if unseen:
                    oldest = max(oldest, now - unseen[0][1])
        return oldest

    def close(self) -> None:
        """Stop producing."""
        self._ends.set()
        self._thread.join()

    def _run(self) -> None:
        if self._load.transactional:
            self._client.init_transactions(_PATIENT_SECONDS)
            self._client.begin_transaction()
        began, done = time.monotonic(), 0
        committed = began
        while not self._ends.is_set():
            due = int((time.monotonic() - began) * self._load.batches)
            for number in range(done, due):
                for record in range(self._load.records):
                    self._produce(self._values[(number + record) % len(self._values)], number % self._load.partitions)
            done = due
            self._client.poll(_TICK_SECONDS)
            if self._load.transactional and time.monotonic() - committed >= TRANSACTION_SECONDS:
                self._client.commit_transaction(_PATIENT_SECONDS)
                self._client.begin_transaction()
                committed = time.monotonic()
        if self._load.transactional:
            self._client.commit_transaction(_PATIENT_SECONDS)
        self._client.flush(_PATIENT_SECONDS)

    def _produce(self, value: bytes, partition: int) -> None:
        while True:
            try:
                self._client.produce(self._topic, value, partition=partition, on_delivery=self._delivered)
            except BufferError:  # a broker that has just made many partitions takes a while to answer
                self._client.poll(_TICK_SECONDS)
            else:
                return

    def _delivered(self, error: object, message: Any) -> None:
        if error is not None:
            self.failures.append(str(error))
            return
        with self._lock:
            self._unseen[message.partition()].append((message.offset(), time.monotonic()))
