"""Records of a coordinator of transactions, and what a scan finds of them."""

from dataclasses import replace

import numpy as np

from streaming.kafka.scan.coordinator_entries import CoordinatorEntries, coordinator_entries
from streaming.kafka.scan.headers import read_headers
from streaming.simulator.batch_writer import Batch, Codec, Record
from streaming.simulator.coordinators import IdState, StoredTransaction, transaction_record
from tests.builders import NOW, batch
from tests.formats.segments import Content, written


def state(
    transactional_id: str,
    state: IdState = IdState.ONGOING,
    *,
    producer: int = 7,
    partitions: tuple[tuple[str, int], ...] = (),
) -> Record:
    return transaction_record(
        StoredTransaction(
            transactional_id=transactional_id,
            producer_id=producer,
            epoch=3,
            timeout_ms=60_000,
            state=state,
            partitions=partitions,
            updated=NOW + 1,
            started=NOW,
        )
    )


def entries(*batches: Batch) -> CoordinatorEntries:
    return entries_in(written(batches))


def entries_in(content: Content) -> CoordinatorEntries:
    return coordinator_entries(read_headers(content.buffer, np.array(content.positions, np.int64)), content.buffer)


def holding(*records: Record, codec: Codec = Codec.NONE, producer: int = -1) -> Batch:
    return replace(batch(1, codec=codec, producer=producer, transactional=producer >= 0), records=records)
