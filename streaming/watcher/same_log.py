"""Whether a directory holds the log that was read in it before, where its topic id does not tell.

A broker writes ``partition.metadata`` anew when it starts: of a log from before topics had ids, or after somebody removed the file, which
is what one does about an InconsistentTopicId. The files stay the same, and so does the log.
"""

from collections.abc import Sequence
from pathlib import Path

from streaming.disk.segments import Identity, OpenSegment, Segment, list_segments
from streaming.watcher.events import Place
from streaming.watcher.tail import Tail
from streaming.watcher.truncation import holds_anchor


def has_files_of(tail: Tail, segments: Sequence[Segment]) -> bool:
    """Whether one of these files is one of those that were listed of a log, and none of them is too short to be."""
    known = {segment.identity for segment in tail.segments} | {Identity(tail.place.device, tail.place.inode)}
    cut_off = any(tail.is_at(segment) and segment.size < tail.place.position for segment in segments)
    return not cut_off and any(segment.identity in known for segment in segments)


def has_open_file_of(tail: Tail, segments: Sequence[Segment]) -> bool:
    """Whether one of these files is the one that is open: no other can have its inode as long as it is. Raises OSError."""
    return tail.file is not None and not tail.file.unlinked() and any(segment.identity == tail.file.identity for segment in segments)


def has_place(directory: Path, place: Place) -> bool:
    """Whether the batch before a place stands where it was read, in the very file. Raises OSError."""
    for segment in list_segments(directory):
        if segment.identity == Identity(place.device, place.inode) and segment.base_offset == place.segment:
            file = OpenSegment(segment.path, segment.base_offset)
            try:
                return bool(place.anchor) and segment.size >= place.position and holds_anchor(file, place)
            finally:
                file.close()
    return False
