"""The transactions that end in the ranges of a log, and those that are open at an offset of it, with the bytes that they have there."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from streaming.broker.disk.replay import batches_between
from streaming.broker.disk.segment_files import Segment
from streaming.broker.watcher.bootstrap import Replay
from streaming.common.rows import TRANSACTIONS, Step
from streaming.errors import FormatError
from streaming.kafka.formats.layout import CURRENT_MAGIC, TRANSACTIONAL_BIT
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.walk import Bytes
from streaming.rules.transaction_fold import OPEN, Steps, Transactions, advance, open_ones

UNKNOWN = -1
"""``bytes`` of a transaction of which a part is not there any more, or was not looked at."""

ENDED = np.dtype([*((name, TRANSACTIONS[name]) for name in TRANSACTIONS.names or ()), ("end_ms", "<i8")])
"""Transactions with the times of their markers (Unix milliseconds), by ``marker_offset``.

A marker without a transaction here has no first offset, no times of data and no source (-1, -1 and 0), and no bytes.
"""

Ended = NDArray[np.void]
"""An array of `ENDED`."""


def end_transactions(before: Transactions, steps: Steps) -> tuple[Transactions, Ended]:
    """Add a range that begins where the log was read up to: which transactions are open after it, and those that ended in it.

    Args:
        before: those that were open before it, ``bytes`` `UNKNOWN` where that is so.
        steps: of the range, in order.
    """
    after, _ = advance(before, steps, 0)
    after = after.copy()
    vague = before.compress(before["bytes"] == UNKNOWN)
    if len(vague):
        those = np.isin(after["producer_id"], vague["producer_id"]) & np.isin(after["first_offset"], vague["first_offset"])
        after["bytes"][those] = UNKNOWN
    closed = after.compress(after["committed"] != OPEN)
    markers = steps.compress((steps["step"] == Step.COMMIT) | (steps["step"] == Step.ABORT))
    ended = np.zeros(len(markers), ENDED)
    for name in ("producer_epoch", "producer_id"):
        ended[name] = markers[name]
    for name in ("first_offset", "next_offset", "start_ms", "last_ms", "bytes_at"):
        ended[name] = -1
    ended["committed"] = markers["step"] == Step.COMMIT
    ended["marker_offset"], ended["end_ms"] = markers["first_offset"], markers["start_ms"]
    places = np.searchsorted(markers["first_offset"], closed["marker_offset"])
    for name in TRANSACTIONS.names or ():
        ended[name][places] = closed[name]
    return open_ones(after), ended


@dataclass(frozen=True, slots=True, eq=False)
class OpenThere:
    """``transactions`` that are open at an offset. ``cold``: those that were open before the first batch on disk are not among them.

    ``whole``: False if the log was not understood up to there. ``doubts``: what was not understood, as messages.
    """

    transactions: Transactions
    cold: bool
    whole: bool
    doubts: tuple[str, ...]


def open_at(directory: Path, segments: Sequence[Segment], offset: int, buffer: Bytes, *, most_bytes: int | None = None) -> OpenThere:
    """What is open in a log at an offset: by the nearest producer snapshot, and the batches after it.

    ``bytes`` of a transaction cover all its batches if the first of them is still there, else they are `UNKNOWN`.

    Args:
        segments: of the log, one at least.
        offset: a batch boundary.
        most_bytes: how much of the log before the snapshot may be read for ``bytes``; None: all that it takes.

    Raises:
        OSError: a segment is gone or cannot be read: list them again.
    """
    replay = Replay(directory, segments, offset, producers_limit=None, buffer=buffer)
    try:
        replay.advance(segments, offset)
        past = replay.past()
    finally:
        replay.close()
    transactions = past.opened.copy()
    early = transactions["first_offset"] < past.begins
    doubts = past.doubts
    if early.any():
        there = early & (transactions["first_offset"] >= segments[0].base_offset)
        transactions["bytes"][early & ~there] = UNKNOWN
        if there.any():
            try:
                transactions["bytes"][there] = _with_earlier(transactions.compress(there), segments, past.begins, buffer, most_bytes)
            except FormatError as error:
                transactions["bytes"][there] = UNKNOWN
                doubts = (*doubts, f"{directory}: what is open there is not counted: {error}")
    return OpenThere(transactions, past.cold, past.whole, doubts)


def _with_earlier(
    transactions: Transactions, segments: Sequence[Segment], end: int, buffer: Bytes, most_bytes: int | None
) -> NDArray[np.int64]:
    """The bytes of transactions, with their batches from their first ones up to ``end``, a batch boundary."""
    begin = int(transactions["first_offset"].min())
    bases = [segment.base_offset for segment in segments]
    first = int(np.searchsorted(bases, begin, side="right")) - 1
    between = sum(segment.size for segment in segments[first:] if segment.base_offset < end)
    if most_bytes is not None and between > most_bytes:
        return np.full(len(transactions), UNKNOWN)
    order = np.argsort(transactions["producer_id"], kind="stable")
    producers = transactions["producer_id"][order]
    firsts, sizes = transactions["first_offset"][order], transactions["bytes"][order].astype(np.int64)
    for batches, _ in batches_between(segments, begin, end, buffer):
        _add(batches, producers, firsts, sizes)
    found = np.empty(len(transactions), np.int64)
    found[order] = sizes
    return found


def _add(batches: Batches, producers: NDArray[np.int64], firsts: NDArray[np.int64], sizes: NDArray[np.int64]) -> None:
    """Add the sizes of transactional data batches to those of their producers' transactions. A producer has one that is open."""
    data = (batches.magic == CURRENT_MAGIC) & (batches.attributes & TRANSACTIONAL_BIT != 0) & ~batches.control
    items = np.flatnonzero(data)
    if not len(items):
        return
    own = batches.headers["producer_id"][items]
    places = np.minimum(np.searchsorted(producers, own), len(producers) - 1)
    those = (producers[places] == own) & (batches.base_offset[items] >= firsts[places])
    np.add.at(sizes, places[those], batches.size[items][those])
