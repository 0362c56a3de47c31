"""The transactional batches and markers of a byte range, as rows of `streaming.common.rows.TRANSACTION_STEPS`.

The producer of a batch is in its header. Whether a marker commits or aborts is only in its one record (`ControlRecordType`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from streaming.common.arrays import Longs
from streaming.common.rows import TRANSACTION_STEPS, StartSource, Step
from streaming.errors import FormatError
from streaming.kafka.formats.control import EndTxnMarker, read_control
from streaming.kafka.formats.layout import CONTROL_BIT, DELETE_HORIZON_BIT, HEADER_BYTES, TIMESTAMP_TYPE_BIT, TRANSACTIONAL_BIT
from streaming.kafka.formats.records import read_batch, read_records
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.pieces import Piece, Scanned, scan
from streaming.kafka.scan.walk import Bytes, Stop

Steps = NDArray[np.void]
"""An array of `TRANSACTION_STEPS`."""

NO_STEPS: Steps = np.empty(0, TRANSACTION_STEPS)
"""The steps of a range without transactional batches."""

_FEW = 16
_MARKER_BYTES = 78
# The record of a marker as every broker writes it: length 16, no attributes, both deltas 0, a key of 4 bytes in version 0. The next two
# bytes, its last ones, are the type. Compaction sets a delta when it sets a delete horizon, and then the batch is larger.
_MARKER_HEAD = np.frombuffer(bytes.fromhex("2000000008") + bytes(2), np.uint8)
_TYPE_AT = HEADER_BYTES + len(_MARKER_HEAD)


def understood_steps(
    scanned: Scanned, buffer: Bytes, start: int, times: Callable[[], AppendTimes], *, singly: bool = False
) -> tuple[Scanned, Steps]:
    """The piece up to there, whose ``flaw`` says what is not understood, and its steps.

    Args:
        scanned: its batches begin at ``start`` of the buffer.
        times: the limits for when they were appended; asked for if there are transactional batches.
        singly: a row for every batch, so that a consumer can cut the range at any of them.
    """
    if not (scanned.batches.attributes & TRANSACTIONAL_BIT).any():
        return scanned, NO_STEPS
    limits = times()
    try:
        return scanned, steps_of(scanned.batches, buffer, limits, singly=singly)
    except FormatError as error:
        before = _before(scanned, buffer, start, start if error.position is None else error.position)
        return replace(before, flaw=error.what), steps_of(before.batches, buffer, limits, singly=singly)


@dataclass(frozen=True, slots=True)
class AppendTimes:
    """The limits for when the batches of a range were appended: not before ``earliest_ms``, not after ``latest_ms`` (Unix milliseconds).

    Between these limits, a batch's own timestamp is used. It comes from the client, and is often the time of an event, not of the append. A
    batch without a timestamp counts as appended at ``latest_ms``, so a transaction seems younger rather than older than it is.
    """

    source: StartSource
    earliest_ms: int
    latest_ms: int

    @classmethod
    def seen(cls, looked_ms: int, seen_ms: int) -> Self:
        """The range was seen within seconds of its append: it was not there at the poll before, at ``looked_ms``."""
        return cls(StartSource.SEEN, looked_ms, seen_ms)

    @classmethod
    def recorded(cls, before_ms: int, modified_ms: int) -> Self:
        """The range existed before. ``modified_ms``: time of its segment's file; ``before_ms``: that of the segment before, 0 for none."""
        rounded = modified_ms % 1000 == 0  # some file systems, and archives for copying files, keep whole seconds
        return cls(StartSource.RECORDED, before_ms, modified_ms + 999 if rounded else modified_ms)

    def clamp_one(self, timestamp: int) -> int:
        """When a batch with this timestamp was appended."""
        return self.latest_ms if timestamp < 0 else min(max(timestamp, self.earliest_ms), self.latest_ms)

    def clamp(self, timestamps: Longs) -> Longs:
        """When batches with these timestamps were appended."""
        clamped: Longs = np.where(timestamps < 0, self.latest_ms, np.clip(timestamps, self.earliest_ms, self.latest_ms))
        return clamped


def steps_of(batches: Batches, buffer: Bytes, times: AppendTimes, *, singly: bool = False) -> Steps:
    """The steps of a range, ordered by ``first_offset``.

    Args:
        batches: the sound batches of the range, in order; their positions count from the beginning of ``buffer``.
        buffer: contains the markers completely. Other batches in it are not read.
        times: the limits for when they were appended.
        singly: make one row for every batch, so that the range can be cut at any of them (`steps_from`). Otherwise make one row for all
            batches of a producer between two of its markers.

    Raises:
        FormatError: a marker is not understood; with its position in ``buffer``.
    """
    marked = batches.attributes & (TRANSACTIONAL_BIT | CONTROL_BIT)
    if not marked.any():
        return NO_STEPS
    if len(batches) <= _FEW:
        return _few(batches, buffer, times, singly=singly)
    headers: Any = batches.headers
    # A control batch without a producer is the quorum's own. A control batch that compaction has emptied ended a transaction whose data is
    # gone already. A data batch that compaction has emptied is still a part of its transaction.
    kept = (marked != 0) & (headers["producer_id"] >= 0) & ((marked & CONTROL_BIT == 0) | (batches.records > 0))
    types = np.full(len(batches), Step.DATA, np.int64)
    control = np.flatnonzero(kept & batches.control)
    if len(control):
        types[control] = _marker_types(batches, buffer, control)
        kept &= types >= 0
    rows = _rows(batches, types, np.flatnonzero(kept), times)
    return rows if singly else _grouped(rows)


def _few(batches: Batches, buffer: Bytes, times: AppendTimes, *, singly: bool) -> Steps:
    """The steps of some batches, one by one: a few cost less in this way than by arrays, and most ranges of a live log are that small."""
    headers: Any = batches.headers
    columns = (headers["producer_id"], headers["producer_epoch"], batches.base_offset, batches.last_offset, batches.size, batches.positions)
    more = (batches.attributes, batches.records, first_timestamps(batches), batches.max_timestamp)
    rows: list[tuple[int, ...]] = []
    goes_on: dict[int, int] = {}  # by producer: the row to which its next batch of data belongs
    before = following = 0
    for own, epoch, first, last, size, position, attributes, records, oldest, newest in zip(
        *(column.tolist() for column in (*columns, *more)), strict=True
    ):
        before, following = following, following + size
        control = attributes & CONTROL_BIT
        if own < 0 or not attributes & (TRANSACTIONAL_BIT | CONTROL_BIT) or (control and records <= 0):
            continue
        start_ms, last_ms = times.clamp_one(oldest), times.clamp_one(newest)
        if control:
            step = marker_type(buffer, position, size)
            if step >= 0:
                goes_on.pop(own, None)
                rows.append((step, 0, epoch, own, first, last + 1, size, before, start_ms, last_ms))
        elif own in goes_on and not singly:
            data = rows[goes_on[own]]
            rows[goes_on[own]] = (*data[:2], epoch, *data[3:5], last + 1, data[6] + size, *data[7:9], max(data[9], last_ms))
        else:
            goes_on[own] = len(rows)
            rows.append((int(Step.DATA), int(times.source), epoch, own, first, last + 1, size, before, start_ms, last_ms))
    return np.array(rows, TRANSACTION_STEPS)


def first_timestamps(batches: Batches) -> Longs:
    """The first timestamp of each batch of magic 2, -1 none.

    It differs from the largest one only if the client's clock is used and compaction has not replaced it by a delete horizon.
    """
    headers: Any = batches.headers
    first = headers["base_timestamp"]
    own = (batches.attributes & (TIMESTAMP_TYPE_BIT | DELETE_HORIZON_BIT) == 0) & (first >= 0)
    timestamps: Longs = np.where(own, first, batches.max_timestamp)
    return timestamps


def marker_type(buffer: Bytes, position: int, size: int) -> int:
    """COMMIT or ABORT for the control batch of ``size`` bytes at ``position``, -1 for one of another type.

    Raises:
        FormatError: it is not understood; with its position in ``buffer``.
    """
    usual = _usual_marker_type(buffer, position, size)
    return _marker_type(buffer, position, size) if usual < 0 else usual


def _usual_marker_type(buffer: Bytes, position: int, size: int) -> int:
    """COMMIT or ABORT for a marker as every broker writes it, -1 for any other record."""
    body = bytes(buffer.data[position + HEADER_BYTES : position + _TYPE_AT + 2])
    if size != _MARKER_BYTES or not body.startswith(_MARKER_HEAD.tobytes()):
        return -1
    return {b"\0\0": int(Step.ABORT), b"\0\1": int(Step.COMMIT)}.get(body[-2:], -1)


def _marker_type(buffer: Bytes, position: int, size: int) -> int:
    try:
        batch = read_batch(buffer.data[position : position + size], check_crc=False)
        if batch is None:
            raise FormatError("the batch is not all there")
        for record in read_records(batch):
            control = read_control(record)
            if isinstance(control, EndTxnMarker):
                return Step.COMMIT if control.committed else Step.ABORT
    except FormatError as error:
        raise FormatError(f"marker of a transaction: {error.what}", position) from error
    return -1


def _marker_types(batches: Batches, buffer: Bytes, items: NDArray[np.intp]) -> Longs:
    """COMMIT, ABORT, or -1 for a control record of another type, which is ignored as Kafka ignores it."""
    found = np.full(len(items), -1, np.int64)
    positions, sizes = batches.positions[items], batches.size[items]
    usual = (sizes == _MARKER_BYTES) & (positions + _MARKER_BYTES <= len(buffer))
    if usual.any():
        at = positions[usual, None] + np.arange(HEADER_BYTES, _TYPE_AT + 2)
        bodies = buffer[at]
        kinds = bodies[:, -2].astype(np.int64) << 8 | bodies[:, -1]
        plain = (bodies[:, :-2] == _MARKER_HEAD).all(axis=1) & (kinds <= 1)
        found[np.flatnonzero(usual)[plain]] = np.where(kinds[plain] == 1, int(Step.COMMIT), int(Step.ABORT))
        usual[np.flatnonzero(usual)[~plain]] = False
    for item in np.flatnonzero(~usual).tolist():
        found[item] = _marker_type(buffer, int(positions[item]), int(sizes[item]))
    return found


def _rows(batches: Batches, types: Longs, items: NDArray[np.intp], times: AppendTimes) -> Steps:
    headers: Any = batches.headers.take(items)  # many times faster than indexing, as always for structured items
    data = types[items] == Step.DATA
    rows = np.zeros(len(items), TRANSACTION_STEPS)
    rows["step"] = types[items]
    rows["source"] = np.where(data, int(times.source), 0)
    rows["producer_epoch"] = headers["producer_epoch"]
    rows["producer_id"] = headers["producer_id"]
    rows["first_offset"] = batches.base_offset[items]
    rows["next_offset"] = batches.last_offset[items] + 1
    rows["bytes"] = batches.size[items]
    rows["bytes_before"] = (np.cumsum(batches.size) - batches.size)[items]
    rows["start_ms"] = times.clamp(first_timestamps(batches)[items])
    rows["last_ms"] = times.clamp(batches.max_timestamp[items])
    return rows


def _grouped(rows: Steps) -> Steps:
    """Merge the data of each producer between two of its markers into one row."""
    if len(rows) < 2:
        return rows
    in_order, rows = rows, rows.take(order_by_producer(rows["producer_id"]))
    data = rows["step"] == Step.DATA
    joins = np.empty(len(rows), np.bool_)  # to the row before it
    joins[0] = False
    joins[1:] = data[1:] & data[:-1] & (rows["producer_id"][1:] == rows["producer_id"][:-1])
    if not joins.any():
        return in_order
    firsts = np.flatnonzero(~joins)
    lasts = np.append(firsts[1:], len(rows)) - 1
    grouped = rows.take(firsts)
    grouped["producer_epoch"] = rows["producer_epoch"][lasts]
    grouped["next_offset"] = rows["next_offset"][lasts]
    grouped["bytes"] = np.add.reduceat(rows["bytes"], firsts)
    grouped["last_ms"] = np.maximum.reduceat(rows["last_ms"], firsts)
    return grouped.take(np.argsort(grouped["first_offset"], kind="stable"))


def order_by_producer(producer_ids: Longs) -> NDArray[np.intp]:
    """The items sorted by producer; items of one producer keep their order."""
    lowest = producer_ids.min()
    if producer_ids.max() - lowest < 1 << 16:  # ids are given out in sequence; numpy sorts 16 bits by counting, many times faster
        return np.argsort((producer_ids - lowest).astype(np.uint16), kind="stable")
    return np.argsort(producer_ids, kind="stable")


def _before(scanned: Scanned, buffer: Bytes, start: int, position: int) -> Scanned:
    if position == start:
        return Scanned(start, Stop.END, None, scanned.batches.take(slice(0, 0)), None)
    return scan(buffer, [Piece(start, position, int(scanned.batches.base_offset[0]))])[0]


def steps_from(steps: Steps, offset: int, cut_bytes: int) -> Steps:
    """The steps of a range from ``offset`` on; ``cut_bytes`` is the size of the part before it. The steps need one row for each batch."""
    kept = steps.compress(steps["first_offset"] >= offset)
    kept["bytes_before"] -= cut_bytes
    return kept
