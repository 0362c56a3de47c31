"""What a log remembers of its producers, and the ``.snapshot`` that holds it (`ProducerStateManager`)."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace

import google_crc32c

from streaming.simulator.batch_writer import BatchEntry

_HEADER = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
_ABORTED = struct.Struct(">hqqqq")


@dataclass(frozen=True, slots=True, kw_only=True)
class Producer:
    """One producer of one log; -1 stands for "none"."""

    producer_id: int
    epoch: int = -1
    last_sequence: int = -1
    last_offset: int = -1
    offset_delta: int = 0
    timestamp: int = -1
    coordinator_epoch: int = -1
    first_offset: int = -1  # of its open transaction


@dataclass(frozen=True, slots=True)
class ClosedTransaction:
    """A transaction with data that a marker closed; ``last_stable_offset`` as of that moment."""

    producer_id: int
    first_offset: int
    marker_offset: int
    last_stable_offset: int
    committed: bool


class ProducerTable:
    """The producers of one log, brought forward batch by batch."""

    def __init__(self, producers: Iterable[Producer] = ()) -> None:
        self._producers = {producer.producer_id: producer for producer in producers}

    def values(self) -> tuple[Producer, ...]:
        """All of them, as a ``.snapshot`` holds them."""
        return tuple(self._producers.values())

    def first_unstable_offset(self) -> int | None:
        """First offset of the oldest open transaction."""
        return min((p.first_offset for p in self._producers.values() if p.first_offset >= 0), default=None)

    def open_transactions(self) -> tuple[tuple[int, int], ...]:
        """(producer id, first offset) of every open transaction, oldest first."""
        opened = [(p.producer_id, p.first_offset) for p in self._producers.values() if p.first_offset >= 0]
        return tuple(sorted(opened, key=lambda item: item[1]))

    def append(self, entry: BatchEntry) -> ClosedTransaction | None:
        """Take one batch into account; a marker ends a transaction."""
        if entry.producer_id < 0:
            return None
        producer = self._producers.get(entry.producer_id, Producer(producer_id=entry.producer_id))
        if entry.producer_epoch != producer.epoch:
            # A new epoch forgets the batches of the one before, also when it arrives with a marker.
            producer = replace(producer, epoch=entry.producer_epoch, last_sequence=-1, last_offset=-1, offset_delta=0)
        if entry.control:
            return self._end(producer, entry)
        first_offset = entry.base_offset if entry.transactional and producer.first_offset < 0 else producer.first_offset
        self._producers[entry.producer_id] = replace(
            producer,
            last_sequence=entry.last_sequence,
            last_offset=entry.last_offset,
            offset_delta=entry.last_offset - entry.base_offset,
            timestamp=entry.max_timestamp,
            first_offset=first_offset,
        )
        return None

    def _end(self, producer: Producer, entry: BatchEntry) -> ClosedTransaction | None:
        if entry.marker is None:
            return None
        self._producers[producer.producer_id] = replace(
            producer, timestamp=entry.max_timestamp, coordinator_epoch=entry.marker.coordinator_epoch, first_offset=-1
        )
        if producer.first_offset < 0:
            return None
        stable = self.first_unstable_offset()
        return ClosedTransaction(
            producer.producer_id,
            producer.first_offset,
            entry.base_offset,
            entry.last_offset + 1 if stable is None else stable,
            entry.marker.committed,
        )


def encode_snapshot(producers: Iterable[Producer]) -> bytes:
    """The content of a ``.snapshot``, version 1."""
    entries = [
        _ENTRY.pack(
            p.producer_id, p.epoch, p.last_sequence, p.last_offset, p.offset_delta, p.timestamp, p.coordinator_epoch, p.first_offset
        )
        for p in producers
    ]
    checked = _COUNT.pack(len(entries)) + b"".join(entries)
    return _HEADER.pack(1, google_crc32c.value(checked)) + checked


def encode_aborted(ended: ClosedTransaction) -> bytes:
    """One entry of a ``.txnindex`` (`AbortedTxn`)."""
    return _ABORTED.pack(0, ended.producer_id, ended.first_offset, ended.marker_offset, ended.last_stable_offset)
