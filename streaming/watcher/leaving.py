"""A log that leaves: it is read on where its files still are, and what cannot be read any more is skipped, before it is said to be gone.

A broker renames the directory of a replica that is deleted or moves away (``-delete``, ``-stray``), and removes it a minute later. A file
that is open stays readable even then.
"""

import logging
from collections.abc import Iterable

from streaming.disk.logdirs import Partition
from streaming.disk.segments import Identity, Segment, list_segments
from streaming.kafka.names import DirState
from streaming.rows import Kind
from streaming.watcher.events import Event, LogId, Place
from streaming.watcher.same_log import has_files_of
from streaming.watcher.stopping import count_growth
from streaming.watcher.tail import Tail

log = logging.getLogger(__name__)

HOLD_MS = 55_000
"""The file of a deleted segment is read to its end, but held no longer than this once it is unlinked too: it pins disk space."""


def find_renamed(log_id: LogId, place: Place, renamed: Iterable[Partition]) -> tuple[Partition, tuple[Segment, ...]] | None:
    """The directory to which that of a log was renamed, told by the file of the place; None if there is none.

    Raises:
        OSError: one that may be it cannot be read now.
    """
    for each in renamed:
        # a name that would be too long is cut short
        if each.log_dir.broker != log_id.broker or each.partition != log_id.partition or not log_id.topic.startswith(each.topic):
            continue
        try:
            segments = list_segments(each.path)
        except FileNotFoundError:  # removed since it was listed
            continue
        if any(segment.identity == Identity(place.device, place.inode) for segment in segments):
            return each, segments
    return None


def leave(tail: Tail, found: tuple[Partition, tuple[Segment, ...]] | None, now_ms: int) -> None:
    """The directory of a log is not where it was: read what is left of it as a backlog that is new."""
    if found is not None:
        tail.partition, segments = found
        if tail.place.stopped:
            tail.settle(segments)
        else:
            tail.relist(segments, now_ms)
    tail.doubt()
    tail.leaving, tail.live, tail.new = True, False, True


def is_over(tail: Tail, now_ms: int) -> bool:
    """Whether nothing more can be read of a log that leaves."""
    if tail.place.stopped or (tail.live and not tail.behind):
        return True
    if tail.file is not None:
        if not tail.file.unlinked():
            return False
        tail.lost_since_ms = now_ms if tail.lost_since_ms < 0 else tail.lost_since_ms
        return not 0 <= now_ms - tail.lost_since_ms < HOLD_MS
    if tail.partition.state is DirState.LIVE:  # its directory was not found under another name
        return True
    try:
        return not has_files_of(tail, list_segments(tail.partition.path))
    except FileNotFoundError:
        return True
    except OSError:  # it is there, and may be readable again
        return False


def count_unread(tail: Tail) -> list[Event]:
    """What could not be read of a log that has left, as skipped, by the sizes that were listed last."""
    place = tail.place
    if place.stopped:
        return count_growth(tail)
    unread = tail.bytes_left_unread()
    if unread <= 0 or (tail.zero_tail and not tail.behind):
        return []
    log.warning(
        "log left before it was read",
        extra={"log": str(place.log), "path": tail.path, "position": place.position, "offset": place.next_offset, "bytes": unread},
    )
    # where it ended is not known; it went on at least to its last segment
    next_offset = max(place.next_offset, tail.segments[-1].base_offset) + 1
    return [
        tail.event(Kind.SKIPPED, reason="deleted", base_offset=place.next_offset, next_offset=next_offset, end_position=0, bytes=unread)
    ]
