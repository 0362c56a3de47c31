"""What a range of ``__transaction_state`` says of transactional ids; what of it cannot be read is told too, or a verdict would be wrong."""

import logging
from collections.abc import Callable

import numpy as np

from streaming.kafka.coordinator import CoordinatorEntry, coordinator_entries
from streaming.kafka.names import TRANSACTION_TOPIC
from streaming.kafka.scan import Scanned
from streaming.kafka.walk import Bytes
from streaming.rows import NOT_UNDERSTOOD
from streaming.watcher.blobs import encode_entries
from streaming.watcher.tail import Tail

log = logging.getLogger(__name__)


def find_entries(tail: Tail, scanned: Scanned, buffer: Bytes, told_as: Callable[[str], str]) -> bytes | None:
    """The newest entries in what was scanned at the tail's place, as a column of its event; None where it is another topic's.

    Records of which not even the transactional id can be read are one entry without an id.

    Args:
        told_as: what stands for a transactional id in what is told.

    Raises:
        OSError: a batch that is larger than the buffer cannot be read.
    """
    if tail.place.log.topic != TRANSACTION_TOPIC:
        return None
    if scanned.end > len(buffer):  # of one that large only the header has been looked at
        buffer = np.frombuffer(tail.open().read(tail.place.position, scanned.end), np.uint8)
    found = coordinator_entries(scanned.batches, buffer)
    entries = found.entries
    if found.unreadable:
        entries = (*entries, CoordinatorEntry(transactional_id="", offset=int(scanned.batches.last_offset[-1]), state=NOT_UNDERSTOOD))
    if found.unreadable or found.not_understood:
        log.error(
            "entries of a coordinator are not understood: no verdict on transactions is certain",
            extra={
                "log": str(tail.place.log),
                "path": tail.path,
                "position": tail.place.position,
                "records": found.unreadable,
                "transactional_ids": found.not_understood,
            },
        )
    return encode_entries(entries, told_as)
