"""A log that is not understood: it is checked twice, then stopped, published and counted. Every rescan checks it again."""

import logging
from dataclasses import replace

from streaming.broker.disk.locate import find_offset, scan_on
from streaming.broker.disk.segment_files import Segment
from streaming.broker.watcher.cursors import LossColumns, Relocation, holds_anchor, moved
from streaming.broker.watcher.log_listing import ListedSizes
from streaming.broker.watcher.open_at import open_at
from streaming.broker.watcher.relocate import bytes_lost, epoch_below, list_again, relocate, set_back
from streaming.broker.watcher.tail import Tail
from streaming.common.event_row import Event
from streaming.common.rows import Kind
from streaming.kafka.formats.names import FileKind, segment_file_name
from streaming.kafka.scan.walk import Bytes, Stop

log = logging.getLogger(__name__)

SUSPECT_MS = 500
"""How long bytes may be no batch before they are called corrupt: a write to a preallocated file may be half done."""


def stopped_event(tail: Tail) -> Event:
    """The CORRUPT event: the log is stopped at its cursor."""
    cursor = tail.cursor
    return replace(
        tail.event(Kind.CORRUPT),
        start_position=cursor.position,
        base_offset=cursor.next_offset,
        next_offset=cursor.next_offset,
        reason=cursor.stopped,
    )


def flawed(tail: Tail, what: str, now_ms: int, buffer: Bytes) -> list[Event]:
    """Handle bytes at the cursor that are no batch: they were written after a truncation, are not complete yet, or are corrupt.

    Raises:
        OSError: the directory or a segment cannot be read.
    """
    if not _is_there(tail) and epoch_below(tail) is not None:
        return tail.relocate(set_back(tail, list_again(tail), buffer))
    if 0 <= now_ms - tail.suspect(now_ms) < SUSPECT_MS:
        return []
    extra = _extra(tail) | {"path": str(tail.open().path), "position": tail.cursor.position, "what": what}
    log.error("log is not understood and not read on", extra=extra)
    return _stop(tail, what)


def _is_there(tail: Tail) -> bool:
    """Whether the last batch read is there: then nothing that was read can have been truncated."""
    return bool(tail.cursor.anchor) and holds_anchor(tail.open(), tail.cursor)


def _extra(tail: Tail) -> dict[str, str | int]:
    return {"log": str(tail.cursor.log)}


def _stop(tail: Tail, what: str, *, failed: bool = False) -> list[Event]:
    try:
        tail.measure()
    except OSError as error:
        if not failed:
            raise
        log.warning("log cannot be measured: its listed size counts", extra=_extra(tail) | {"path": tail.path, "error": str(error)})
    skipped = tail.unread_bytes(exact=True)
    tail.stop(what, skipped, failed=failed)
    return [stopped_event(tail), _skipped(tail, 0, skipped)]


def failed(tail: Tail, error: Exception) -> list[Event]:
    """Stop one log after an unexpected error, like a log that is not understood; the other logs go on.

    Raises:
        MemoryError: the error is one, and so it is not caused by the log.
    """
    if isinstance(error, MemoryError):
        raise error
    what, position = f"{type(error).__name__}: {error}", tail.cursor.position
    if tail.cursor.stopped:
        tail.close()
        return count_growth(tail)
    file = tail.partition.path / segment_file_name(tail.cursor.segment, FileKind.LOG)
    extra = _extra(tail) | {"path": str(file), "position": position, "what": what}
    log.error("an unexpected error stopped a log: it is not read on", exc_info=error, extra=extra)
    tail.close()  # its size is then that of the last listing
    return _stop(tail, what, failed=True)


def count_growth(tail: Tail) -> list[Event]:
    """A SKIPPED event for the bytes after the flaw of a stopped log that were not skipped yet."""
    before, unread = tail.cursor.skipped, tail.unread_bytes(exact=True)
    if unread <= before:
        return []
    tail.count_skipped(unread)
    return [_skipped(tail, before, unread)]


def _skipped(tail: Tail, before: int, unread: int) -> Event:
    """The event for bytes after the flaw, with positions after it: a job that gets it twice knows what it has counted."""
    cursor = tail.cursor
    return replace(
        tail.event(Kind.SKIPPED),
        reason="corrupt",
        start_position=cursor.position + before,
        end_position=cursor.position + unread,
        base_offset=cursor.next_offset,
        next_offset=cursor.next_offset,
        bytes=unread - before,
    )


def retry(tail: Tail, segments: tuple[Segment, ...], buffer: Bytes) -> list[Event]:
    """Check a stopped log again: read on if the flaw is gone, else count what has grown after it.

    Args:
        segments: a current listing; ``tail.listed`` is the previous one.

    Raises:
        OSError: a segment cannot be read.
    """
    cursor, before, joined = tail.cursor, tail.listing, tail.joined(segments)
    tail.set_listing(segments)
    try:
        return _retry(tail, segments, joined, buffer)
    except OSError:
        if tail.cursor is cursor:  # growth is counted from the previous listing
            tail.restore_listing(before)
        raise


def _retry(tail: Tail, segments: tuple[Segment, ...], listed: ListedSizes, buffer: Bytes) -> list[Event]:
    cursor = tail.cursor
    here = any(tail.is_at(segment) and segment.size >= cursor.position for segment in segments)
    if here and (tail.failed or _still_flawed(tail, buffer)):
        tail.measure()
        return count_growth(tail)
    tail.forgive()
    if not here and segments[0].base_offset > cursor.next_offset:
        return tail.relocate(_go_on_after(tail, segments, listed, buffer))
    log.warning("log is read on again", extra=_extra(tail) | {"path": tail.path, "position": cursor.position})
    if here:
        tail.read_on()
        return []
    return tail.relocate(relocate(tail, segments, buffer))


def _still_flawed(tail: Tail, buffer: Bytes) -> bool:
    cursor = tail.cursor
    try:
        scanned = scan_on(tail.open(), cursor.position, cursor.next_offset, buffer)
    finally:
        tail.close()
    return scanned.sums is None and (scanned.flaw is not None or (scanned.stop is Stop.SHORT and tail.has_later_segment))


def _go_on_after(tail: Tail, segments: tuple[Segment, ...], listed: ListedSizes, buffer: Bytes) -> Relocation:
    """The end of the log, because the flaw was deleted with its segment: everything before is skipped, and a part of it is published so."""
    cursor = tail.cursor
    boundary = find_offset(segments, None, buffer)
    unread = bytes_lost(tail, listed, segments, buffer) + sum(segment.size for segment in segments[:-1]) + boundary.position
    after = moved(cursor, boundary)._replace(frontier=max(cursor.frontier, boundary.next_offset))
    log.warning(
        "log is read on at its end: the flaw in it was deleted", extra=_extra(tail) | {"path": tail.path, "offset": boundary.next_offset}
    )
    loss = LossColumns(
        kind=Kind.SKIPPED,
        opened=open_at(tail, after, segments),
        reason="corrupt",
        base_offset=cursor.next_offset,
        next_offset=boundary.next_offset,
        bytes=max(0, unread - cursor.skipped),
    )
    return Relocation(after, segments, loss)
