"""Which columns of an append are added to which counters, for the fold by rows and the one by columns."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from streaming.common.event_row import EventRow
from streaming.common.rows import Kind
from streaming.rules.log_state import LogState

SUMMED = {
    "appended_bytes": "bytes",
    "appended_batches": "batches",
    "appended_records": "records",
    "old_format_batches": "old_format_batches",
    "sequence_gaps": "sequence_gaps",
}
"""The counters of a log to which each append adds a column."""

SHARED = {
    "share_codec_bytes": "codec_bytes",
    "share_batch_bytes_buckets": "batch_bytes_buckets",
    "share_batch_records_buckets": "batch_records_buckets",
    "share_records": "records",
    "share_append_delay_buckets": "append_delay_buckets",
    "share_append_delay_ms": "append_delay_ms",
    "share_ahead_batches": "ahead_batches",
}
"""The counters of a log's topic to which each append adds a column, if its replica led."""

Cut = Callable[[EventRow, int], EventRow | None]
"""The part of a range from an offset on; None if the range does not list its batches."""

EVERYTHING = -1
"""A share that begins before every offset."""


def share_of(row: EventRow, begin: int, cut: Cut) -> EventRow | None:
    """The part of the range that counts for the topic: its sums from an offset on, None for nothing.

    If the range does not list its batches, it is divided by its offsets.
    """
    if begin <= row.base_offset:
        return row
    if begin >= row.next_offset:
        return None
    listed = cut(row, begin)
    if listed is not None:
        return listed
    part, whole = row.next_offset - begin, row.next_offset - row.base_offset
    return replace(row, expired=None, **{name: _divided(getattr(row, name), part, whole) for name in SHARED.values()})


def _divided(values: Any, part: int, whole: int) -> Any:
    return tuple(value * part // whole for value in values) if isinstance(values, tuple) else values * part // whole


def begins(state: LogState, row: EventRow) -> int:
    """The offset from which a range of a log counts for the topic, as far as the log itself shows; ``next_offset`` if nothing counts."""
    if row.leads == 0:
        return row.next_offset
    return state.shared_upto if row.log_epoch <= state.shared_epoch else EVERYTHING


def begins_among(row: EventRow, own: LogState, others: Iterable[LogState]) -> int:
    """The same if it is not known whether the replica led. It is decided by the state of the other replicas.

    How much of a range counts for its topic: everything that was appended while its replica led, and every offset from one replica
    only. Nearly always the agent knows by the leader epoch whether its replica led, and that is enough. Two cases remain. If a log
    left its broker and is copied to it again, it brings batches that have been counted. And if an agent could read no metadata, every
    replica may have led. Then the leader that another agent knows decides. If no agent knows it, each offset counts for the replica
    that brings it first.
    """
    there = [other for other in others if not other.departed]
    newest = max((own, *there), key=lambda state: state.leader_epoch if state.leader >= 0 else -1)
    if newest.leader >= 0:
        return EVERYTHING if newest.leader == row.broker else row.next_offset
    return max((other.log_end_offset for other in there), default=EVERYTHING)


def followed(state: LogState, row: EventRow) -> bool:
    """Whether another broker led all that a log lacks before a row, or by it: in the epoch of the last range that was read, up to now."""
    if row.kind == Kind.SKIPPED and row.leads == 0:
        return True
    another = row.leads == 0 or (row.leader >= 0 and row.leader != row.broker)
    return another and 0 <= state.log_epoch == max(row.leader_epoch, row.log_epoch)
