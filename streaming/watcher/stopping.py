"""A log that is not understood: looked at twice, then stopped, told and counted; looked at again with every rescan."""

import logging
from collections.abc import Sequence
from dataclasses import replace

from streaming.disk.segments import Segment
from streaming.kafka.names import FileKind, segment_file_name
from streaming.kafka.walk import Bytes, Stop
from streaming.rows import Kind
from streaming.watcher.carrying import carry_over
from streaming.watcher.events import Event
from streaming.watcher.locate import find_offset, scan_on
from streaming.watcher.relocate import list_again, relocate, set_back
from streaming.watcher.tail import Suspect, Tail, moved
from streaming.watcher.truncation import epoch_below, holds_anchor

log = logging.getLogger(__name__)

SUSPECT_MS = 500
"""How long bytes that are no batch may stand there before they are called corrupt: a write to a preallocated file may be half done."""


def flawed(tail: Tail, what: str, now_ms: int, buffer: Bytes) -> list[Event]:
    """Something that is not a batch stands at the place: written anew behind a truncation, not whole yet, or corrupt.

    Raises:
        OSError: the directory or a segment cannot be read.
    """
    if not _is_there(tail) and epoch_below(tail) is not None:
        return [set_back(tail, list_again(tail), buffer)]
    position = tail.place.position
    if tail.suspect is None or tail.suspect.position != position:
        tail.suspect = Suspect(position, now_ms)
    if 0 <= now_ms - tail.suspect.since_ms < SUSPECT_MS:
        return []
    path = str(tail.open().path)
    log.error("log is not understood and not read on", extra=_extra(tail) | {"path": path, "position": position, "what": what})
    return _stop(tail, what)


def failed(tail: Tail, error: Exception) -> list[Event]:
    """What nobody foresaw went wrong with one log: it is stopped like one that is not understood, and the others go on.

    Raises:
        MemoryError: that was it, which is not the log's.
    """
    if isinstance(error, MemoryError):
        raise error
    what, position = f"{type(error).__name__}: {error}", tail.place.position
    if tail.place.stopped:
        tail.close()
        return count_growth(tail)
    file = tail.partition.path / segment_file_name(tail.place.segment, FileKind.LOG)
    extra = _extra(tail) | {"path": str(file), "position": position, "what": what}
    log.error("log cannot be dealt with and is not read on", exc_info=error, extra=extra)
    tail.failed = True
    tail.close()  # its size is that of the last listing
    return _stop(tail, what)


def _stop(tail: Tail, what: str) -> list[Event]:
    skipped = _bytes_behind(tail)
    tail.place = replace(tail.place, stopped=what, skipped=skipped)
    tail.close()
    return [tell_stopped(tail), _skipped(tail, 0, skipped)]


def _is_there(tail: Tail) -> bool:
    """Whether the last batch read is there, so that nothing of what was read can have been cut off."""
    return bool(tail.place.anchor) and holds_anchor(tail.open(), tail.place)


def tell_stopped(tail: Tail) -> Event:
    """The event that says that a log is stopped, and where."""
    place = tail.place
    return tail.event(
        Kind.CORRUPT, start_position=place.position, base_offset=place.next_offset, next_offset=place.next_offset, reason=place.stopped
    )


def retry(tail: Tail, segments: Sequence[Segment], buffer: Bytes) -> list[Event]:
    """Look again at a stopped log: read on if the flaw is gone, else count what has grown behind it.

    Args:
        segments: a listing of now; ``tail.sizes`` are those of the one before.

    Raises:
        OSError: a segment cannot be read.
    """
    place, before, sizes = tail.place, tail.segments, tail.sizes
    tail.settle(segments)
    try:
        return _retry(tail, segments, sizes, buffer)
    except OSError:
        if tail.place is place:  # what has grown is counted from the listing of before
            tail.segments, tail.sizes = before, sizes
        raise


def _retry(tail: Tail, segments: Sequence[Segment], sizes: dict[int, int], buffer: Bytes) -> list[Event]:
    place = tail.place
    here = any(tail.is_at(segment) and segment.size >= place.position for segment in segments)
    if here and (tail.failed or _still_flawed(tail, buffer)):
        return count_growth(tail)
    tail.failed = False
    if not here and segments[0].base_offset > place.next_offset:
        return [_go_on_behind(tail, sizes, buffer)]
    log.warning("log is read on again", extra=_extra(tail) | {"path": tail.path, "position": place.position})
    if here:
        tail.place = replace(place, stopped="", skipped=0)
        return []
    return relocate(tail, segments, buffer)


def _still_flawed(tail: Tail, buffer: Bytes) -> bool:
    place = tail.place
    try:
        scanned = scan_on(tail.open(), place.position, place.next_offset, buffer)
    finally:
        tail.close()
    return scanned.sums is None and (scanned.flaw is not None or (scanned.stop is Stop.SHORT and tail.behind))


def count_growth(tail: Tail) -> list[Event]:
    """What lies behind the flaw of a stopped log by now and was not skipped yet."""
    before, behind = tail.place.skipped, _bytes_behind(tail)
    if behind <= before:
        return []
    tail.place = replace(tail.place, skipped=behind)
    return [_skipped(tail, before, behind)]


def _go_on_behind(tail: Tail, sizes: dict[int, int], buffer: Bytes) -> Event:
    """The flaw was deleted with its segment: read on at the end, for what lies before it is counted as skipped already."""
    place, segments = tail.place, tail.segments
    spot = find_offset(segments, None, buffer)
    grown = sum(max(0, segment.size - sizes.get(segment.base_offset, 0)) for segment in segments)
    tail.place = replace(moved(place, spot), frontier=max(place.frontier, spot.next_offset))
    log.warning(
        "log is read on at its end: the flaw in it was deleted", extra=_extra(tail) | {"path": tail.path, "offset": spot.next_offset}
    )
    return tail.event(
        Kind.SKIPPED,
        reason="corrupt",
        base_offset=place.next_offset,
        next_offset=spot.next_offset,
        bytes=grown,
        transactions=carry_over(tail),
    )


def _skipped(tail: Tail, before: int, behind: int) -> Event:
    """Bytes behind the flaw, told as positions behind it, so that one who is told twice can know what it has counted."""
    place = tail.place
    return tail.event(
        Kind.SKIPPED,
        reason="corrupt",
        start_position=place.position + before,
        end_position=place.position + behind,
        base_offset=place.next_offset,
        next_offset=place.next_offset,
        bytes=behind - before,
    )


def _bytes_behind(tail: Tail) -> int:
    """Bytes of a log behind its place."""
    sizes = {segment.base_offset: segment.size for segment in tail.segments if segment.base_offset >= tail.place.segment}
    if tail.file is not None:
        sizes[tail.place.segment] = tail.file.size()
    return max(0, sum(sizes.values()) - tail.place.position)


def _extra(tail: Tail) -> dict[str, str | int]:
    return {"log": str(tail.place.log)}
