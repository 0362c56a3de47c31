"""Decides whether a directory contains the log that was read in it before, if its topic id does not show it.

A broker writes ``partition.metadata`` anew when it starts, for a log from before topics had ids, or after somebody has removed the file.
People remove it because of an InconsistentTopicId. The files stay the same, and so does the log.
"""

from collections.abc import Sequence
from pathlib import Path

from streaming.broker.disk.segment_files import FileIdentity, Segment, list_segments
from streaming.broker.journal.cursor import Cursor
from streaming.broker.watcher.cursors import holds_anchor
from streaming.broker.watcher.tail import Tail


def has_files_of(tail: Tail, segments: Sequence[Segment]) -> bool:
    """Whether one of these files was listed for a log before, and the file of its cursor is not shorter than the part that was read."""
    identities = {segment.identity for segment in tail.segments} | {FileIdentity(tail.cursor.device, tail.cursor.inode)}
    cut_off = any(tail.is_at(segment) and segment.size < tail.cursor.position for segment in segments)
    return not cut_off and any(segment.identity in identities for segment in segments)


def has_open_file_of(tail: Tail, segments: Sequence[Segment]) -> bool:
    """Whether one of these files is the open one: while it is open, no other file can have its inode. Raises OSError."""
    return tail.file is not None and not tail.file.unlinked() and any(segment.identity == tail.file.identity for segment in segments)


def holds_cursor(directory: Path, cursor: Cursor) -> bool:
    """Whether the batch before a cursor is still at its position in the same file. Raises OSError."""
    for segment in list_segments(directory):
        if segment.identity == FileIdentity(cursor.device, cursor.inode) and segment.base_offset == cursor.segment:
            with segment.open() as file:
                return bool(cursor.anchor) and segment.size >= cursor.position and holds_anchor(file, cursor)
    return False
