"""What coordinators write in the model, and what a replica of their log holds: the newest entry of each transactional id."""

import numpy as np

from streaming.common.rows import COORDINATOR, TOMBSTONE, unpack_rows
from streaming.kafka.formats.names import TRANSACTION_TOPIC
from streaming.kafka.scan.coordinator_entries import CoordinatorEntry, coordinator_entries
from streaming.rules.log_state import LogState
from streaming.simulator.batch_writer import Batch, Record
from streaming.simulator.coordinators import IdState, StoredTransaction, transaction_record
from streaming.simulator.log import PartitionLog
from tests.formats.dumped import columns

TOPIC = TRANSACTION_TOPIC
NAMES = ("billing", "orders", "stock")


def entry(number: int, now: int) -> Batch:
    """A batch with one entry; every fifth says that its transactional id has expired."""
    state = StoredTransaction(
        transactional_id=NAMES[number % len(NAMES)],
        producer_id=number,
        epoch=0,
        timeout_ms=60_000,
        state=IdState(number % len(IdState)),
        partitions=(("orders", 0),),
        updated=now,
    )
    record = transaction_record(state)
    return Batch(records=(Record(record.key, None, now) if number % 5 == 4 else record,))


def held(log: PartitionLog) -> list[CoordinatorEntry]:
    """All entries that lie in a log, in order."""
    found: list[CoordinatorEntry] = []
    for segment in log.segments:
        content = segment.path("log").read_bytes()
        if content:
            batches, buffer = columns(content), np.frombuffer(content, np.uint8)
            for item in range(len(batches)):
                found += coordinator_entries(batches.take(slice(item, item + 1)), buffer).entries
    return found


def superseded(log: PartitionLog) -> set[int]:
    """The offsets of entries that the cleaner may take: there is a later one of the same id."""
    entries = held(log)
    newest = {each.transactional_id: each.offset for each in entries}
    return {each.offset for each in entries if each.offset != newest[each.transactional_id]}


def on_disk(log: PartitionLog) -> dict[str, tuple[int, str]]:
    """What a log comes to: offset and state of each id that has not expired."""
    newest = {each.transactional_id: (each.offset, each.state) for each in held(log)}
    return {name: (offset, state) for name, (offset, state) in newest.items() if state != TOMBSTONE}


def known(state: LogState) -> dict[str, tuple[int, str]]:
    """The same as a job has it."""
    rows = [] if state.coordinator is None else unpack_rows(state.coordinator, COORDINATOR).to_pylist()
    return {row["transactional_id"]: (row["offset"], row["state"]) for row in rows}
