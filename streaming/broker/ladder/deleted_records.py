"""How many of the offsets that were deleted before the first segment were records, as far as the producer snapshot beside it shows that.

The snapshot of a segment holds the producers of what is before it: the last data offset of each, and whether its transaction is open. So a
data offset there is a record, and the offset after the last record of a closed transaction, or a later one, is its marker. It does not hold
producers without an id, nor those that have been silent for `producer.id.expiration.ms`, and of one whose epoch a marker has raised
(transaction version 2) it does not hold the data offset. So nothing follows from what is not in it.
"""

from typing import NamedTuple

from streaming.broker.disk.producer_snapshots import SnapshotFile, load_producer_snapshot
from streaming.broker.disk.segment_files import Segment
from streaming.errors import FormatError
from streaming.kafka.formats.producer_snapshot import ProducerState


class DeletedRecords(NamedTuple):
    """Bounds of a number of records, -1 twice if nothing is known."""

    least: int = -1
    most: int = -1


def deleted_records(first: Segment, offset: int, *, reads_uncommitted: bool = False) -> DeletedRecords:
    """The records from an offset on that were deleted before the first segment of a log, and that a consumer of that isolation got.

    No snapshot shows whether a transaction was committed: with ``read_committed`` its records are perhaps some, with the other all are.
    """
    try:
        states = load_producer_snapshot(SnapshotFile.beside(first)).states
    except (FormatError, OSError):
        return DeletedRecords()
    there = [each for each in states if offset <= each.last_offset < first.base_offset]
    records = sum(reads_uncommitted or not _has_transactions(each) for each in there)
    marker = any(_is_closed(each) and each.last_offset == offset - 1 for each in states)
    return DeletedRecords(records, first.base_offset - offset - marker)


def _has_transactions(producer: ProducerState) -> bool:
    """Whether the last record of a producer may be of a transaction."""
    return producer.coordinator_epoch >= 0 or producer.current_txn_first_offset >= 0


def _is_closed(producer: ProducerState) -> bool:
    """Whether a marker follows the last record of a producer."""
    return producer.coordinator_epoch >= 0 and producer.current_txn_first_offset < 0
