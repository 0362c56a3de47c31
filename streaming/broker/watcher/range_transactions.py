"""The transactions in a range: its steps, with the times of them that the watcher knows, and the entries of a coordinator."""

import logging
from collections.abc import Callable

import numpy as np

from streaming.broker.journal.blobs import encode_entries
from streaming.broker.watcher.tail import Tail
from streaming.common.rows import NOT_UNDERSTOOD
from streaming.kafka.formats.names import TRANSACTION_TOPIC
from streaming.kafka.scan.coordinator_entries import CoordinatorEntry, coordinator_entries
from streaming.kafka.scan.pieces import Scanned
from streaming.kafka.scan.range_steps import understood_steps
from streaming.kafka.scan.transaction_steps import AppendTimes, Steps
from streaming.kafka.scan.walk import Bytes

log = logging.getLogger(__name__)

SEEN_WITHIN_MS = 10_000
"""If the last poll that found nothing is at most this old, the batches were appended now, by the watcher's clock."""


def find_steps(tail: Tail, scanned: Scanned, buffer: Bytes, start: int, now_ms: int, *, singly: bool) -> tuple[Scanned, Steps]:
    """The steps of the batches scanned from ``start`` of the buffer, at the tail's cursor; ends before a marker that is not understood.

    Args:
        singly: a row for every batch, so that a consumer can cut the range at any of them.

    Raises:
        OSError: the file is gone.
    """
    return understood_steps(scanned, buffer, start, lambda: _times(tail, now_ms), singly=singly)


def _times(tail: Tail, now_ms: int) -> AppendTimes:
    if tail.live and 0 <= now_ms - tail.looked_ms <= SEEN_WITHIN_MS:
        return AppendTimes.seen(tail.looked_ms, now_ms)
    before = [segment.modified_ms for segment in tail.segments if segment.base_offset < tail.cursor.segment]
    return AppendTimes.recorded(before[-1] if before else 0, tail.open().modified_ms())


def find_entries(tail: Tail, scanned: Scanned, buffer: Bytes, redact: Callable[[str], str]) -> bytes | None:
    """The newest entries in the range that was scanned at the tail's cursor, as a column of its event; None for other topics.

    Entries that cannot be read are published too, or a verdict would be wrong. If not even the transactional id of some records can be
    read, these records become one entry without an id.

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
