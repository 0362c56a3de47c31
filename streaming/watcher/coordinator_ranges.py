"""The entries in a range of ``__transaction_state``. Entries that cannot be read are published too, or a verdict would be wrong."""

import logging
from collections.abc import Callable

import numpy as np

from streaming.journal.blobs import encode_entries
from streaming.kafka.names import TRANSACTION_TOPIC
from streaming.rows import NOT_UNDERSTOOD
from streaming.scan.coordinator_entries import CoordinatorEntry, coordinator_entries
from streaming.scan.pieces import Scanned
from streaming.scan.walk import Bytes
from streaming.watcher.tail import Tail

log = logging.getLogger(__name__)


def find_entries(tail: Tail, scanned: Scanned, buffer: Bytes, redact: Callable[[str], str]) -> bytes | None:
    """The newest entries in the range that was scanned at the tail's cursor, as a column of its event; None for other topics.

    If not even the transactional id of some records can be read, these records become one entry without an id.

    Args:
        redact: returns the text that replaces a transactional id in the entries.

    Raises:
        OSError: a batch that is larger than the buffer cannot be read.
    """
    if tail.cursor.log.topic != TRANSACTION_TOPIC:
        return None
    if scanned.end > len(buffer):  # of such a large batch only the header was read
        buffer = np.frombuffer(tail.open().read(tail.cursor.position, scanned.end), np.uint8)
    found = coordinator_entries(scanned.batches, buffer)
    entries = found.entries
    if found.unreadable:
        entries = (*entries, CoordinatorEntry(transactional_id="", offset=int(scanned.batches.last_offset[-1]), state=NOT_UNDERSTOOD))
    if found.unreadable or found.not_understood:
        log.error(
            "entries of a coordinator are not understood: no verdict on transactions is certain",
            extra={
                "log": str(tail.cursor.log),
                "path": tail.path,
                "position": tail.cursor.position,
                "records": found.unreadable,
                "transactional_ids": found.not_understood,
            },
        )
    return encode_entries(entries, redact)
