"""When two events of one log become one."""

from dataclasses import replace

from streaming.broker.journal.blobs import merged_entries, merged_steps
from streaming.common.event_row import Event
from streaming.common.rows import Kind
from streaming.kafka.scan.sums import joined

MERGED_BYTES_MAX = 16 << 20
"""Neighbouring appends are merged up to this size, because a byte budget is kept only to within one event."""

MERGED_BLOBS_MAX = 256 << 10
"""The most bytes of transactions and coordinators up to which neighbouring appends are merged, because a merge writes them anew."""


def merged(before: Event, later: Event) -> Event | None:
    """An append and the one right after it as one event, or None if they must stay separate."""
    fits = (
        before.kind is Kind.APPENDED
        and later.kind is Kind.APPENDED
        and before.end_position == later.start_position
        and before.segment == later.segment
        and before.log_epoch == later.log_epoch
        and before.leads == later.leads
        and before.detail is None
        and later.detail is None
        and before.bytes + later.bytes <= MERGED_BYTES_MAX
        and _blobs(before) + _blobs(later) <= MERGED_BLOBS_MAX
        and before.log == later.log
        and before.log_dir == later.log_dir
    )
    if not fits:
        return None
    return replace(
        joined(before, later),
        start_position=before.start_position,
        follows=before.follows,
        transactions=merged_steps(before.transactions, later.transactions, before.bytes),
        coordinator=merged_entries(before.coordinator, later.coordinator),
    )


def merged_found(before: Event, event: Event) -> Event:
    """Two FOUND events of one log as one event: if the later one has no list of segments, the earlier list stays."""
    return replace(event, segments=before.segments) if event.segments is None else event


def _blobs(event: Event) -> int:
    return len(event.transactions or b"") + len(event.coordinator or b"")
