"""Entries of a coordinator of transactions, as its log and its events have them."""

from streaming.common.event_row import Event
from streaming.common.rows import COORDINATOR, unpack_rows
from streaming.simulator.batch_writer import Batch
from streaming.simulator.coordinators import IdState, StoredTransaction, transaction_record
from tests.builders import NOW

P, Q = 4000, 4001


def state(name: str, state: IdState, producer: int = P) -> Batch:
    reported = StoredTransaction(
        transactional_id=name,
        producer_id=producer,
        epoch=3,
        timeout_ms=60_000,
        state=state,
        partitions=(("t", 1),),
        updated=NOW,
        started=NOW,
    )
    return Batch(records=(transaction_record(reported),))


def entries(events: list[Event]) -> list[tuple[str, str, int]]:
    rows = [unpack_rows(event.coordinator, COORDINATOR).to_pylist() for event in events if event.coordinator is not None]
    return [(row["transactional_id"], row["state"], row["offset"]) for some in rows for row in some]
