"""One leaving log: to which directory it was renamed, whether anything more of it can be read, and which bytes were lost unread.

`streaming.broker.watcher.departures` keeps the set of leaving logs and asks.

A broker renames the directory of a replica that is deleted or moves away (``-delete``, ``-stray``), and removes it a minute later. An open
file stays readable even then.
"""

import logging
from collections.abc import Iterable
from dataclasses import replace

from streaming.broker.disk.logdirs import Partition
from streaming.broker.disk.segment_files import FileIdentity, Segment, list_segments
from streaming.broker.journal.cursor import Cursor
from streaming.broker.watcher.same_log import has_files_of
from streaming.broker.watcher.stopped_logs import count_growth
from streaming.broker.watcher.tail import Tail
from streaming.common.event_row import Event
from streaming.common.log_key import LogKey
from streaming.common.rows import Kind
from streaming.kafka.formats.names import DirState

log = logging.getLogger(__name__)

HOLD_MS = 55_000
"""The file of a deleted segment is read to its end, but it is closed this long after its unlink at the latest: it pins disk space."""


def find_renamed(log_id: LogKey, cursor: Cursor, renamed: Iterable[Partition]) -> tuple[Partition, tuple[Segment, ...]] | None:
    """The directory to which a log's directory was renamed, found by the file of the cursor; None if there is none.

    Raises:
        OSError: a directory that may be the one cannot be read now.
    """
    for each in renamed:
        # the broker shortens a name that would be too long
        if each.log_dir.broker != log_id.broker or each.partition != log_id.partition or not log_id.topic.startswith(each.topic):
            continue
        try:
            segments = list_segments(each.path)
        except FileNotFoundError:  # removed since it was listed
            continue
        if any(segment.identity == FileIdentity(cursor.device, cursor.inode) for segment in segments):
            return each, segments
    return None


def is_over(tail: Tail, now_ms: int) -> bool:
    """Whether nothing more can be read of a leaving log."""
    if tail.cursor.stopped or (tail.live and not tail.has_later_segment):
        return True
    if tail.file is not None:
        if not tail.file.unlinked():
            return False
        return not 0 <= now_ms - tail.miss_file(now_ms) < HOLD_MS
    if tail.partition.state is DirState.LIVE:  # its directory was not found under another name
        return True
    try:
        return not has_files_of(tail, list_segments(tail.partition.path))
    except FileNotFoundError:
        return True
    except OSError:  # it is there, and may be readable again
        return False


def count_unread(tail: Tail) -> list[Event]:
    """A SKIPPED event for the bytes of a log that has left and that could not be read, by the sizes that were listed last."""
    cursor = tail.cursor
    if cursor.stopped:
        return count_growth(tail)
    unread = tail.bytes_left_unread()
    if unread <= 0:
        return []
    log.warning(
        "log left before it was read",
        extra={"log": str(cursor.log), "path": tail.path, "position": cursor.position, "offset": cursor.next_offset, "bytes": unread},
    )
    # the end of the log is not known; it reached at least its last segment
    next_offset = max(cursor.next_offset, tail.segments[-1].base_offset) + 1
    return [
        replace(
            tail.event(Kind.SKIPPED),
            reason="deleted",
            base_offset=cursor.next_offset,
            next_offset=next_offset,
            end_position=0,
            bytes=unread,
        )
    ]
