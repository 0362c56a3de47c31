"""Scans a segment in pieces, the active one as it grows: where it ends and which timestamps it has."""

import logging
from dataclasses import dataclass, replace

from streaming.broker.disk.calls import bytes_read
from streaming.broker.disk.scanning import scan_on
from streaming.broker.disk.segment_files import FileIdentity, OpenSegment, Segment
from streaming.kafka.formats.layout import PREFIX_BYTES
from streaming.kafka.scan.walk import Bytes, Stop

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveRead:
    """The result of a scan of a segment from its beginning up to ``position``, where a batch begins.

    ``first_timestamp`` is the largest of its first batch, ``largest_timestamp`` that of all batches, -1 none. ``anchor`` is the header of
    the last batch, which begins at ``anchor_position``: if it is not there any more, the segment was truncated and written again.
    ``zero_tail``: zeros were found, so the file is preallocated. ``flawed``: the bytes at the position are no batch.
    """

    identity: FileIdentity
    base_offset: int
    position: int
    next_offset: int
    first_timestamp: int
    largest_timestamp: int
    anchor: bytes = b""
    anchor_position: int = 0
    zero_tail: bool = False
    flawed: bool = False

    @classmethod
    def none_of(cls, segment: Segment) -> "ActiveRead":
        """The state before anything of a segment is read."""
        return cls(
            identity=segment.identity,
            base_offset=segment.base_offset,
            position=0,
            next_offset=segment.base_offset,
            first_timestamp=-1,
            largest_timestamp=-1,
        )

    def size_in(self, size: int) -> int:
        """The size of the segment in a file of that size, without the zero tail of a preallocated file."""
        return self.position if self.zero_tail else size


def read_on(
    segment: Segment, read: ActiveRead, buffer: Bytes, budget: int | None = None, *, closed: bool = False
) -> tuple[ActiveRead, bool]:
    """Continue the scan of a segment until about ``budget`` bytes are read. For another segment than before, begin at its start.

    Args:
        closed: nobody else is likely to read the segment.

    Returns:
        The new state of the scan, and whether everything there is has been read.

    Raises:
        OSError: the segment cannot be read; FileNotFoundError if another file has its name by now.
    """
    with segment.open() as file:
        if not _goes_on(file, segment, read):
            read = ActiveRead.none_of(segment)
        began = bytes_read()
        while not read.flawed:
            further = _window(file, read, buffer, spare_cache=closed or read.position == 0)
            if further.position == read.position:
                return further, True
            read = further
            if budget is not None and bytes_read() - began >= budget and read.position < file.size():
                return read, False
        return read, True


def covers(read: ActiveRead, segment: Segment) -> bool:
    """Whether a segment that is now closed was read to its end, and not truncated and written again since.

    Raises:
        OSError: the segment cannot be read.
    """
    if read.identity != segment.identity or read.position != segment.size:
        return False
    with segment.open() as file:
        return _goes_on(file, segment, read)


def _goes_on(file: OpenSegment, segment: Segment, read: ActiveRead) -> bool:
    same = read.identity == file.identity and read.base_offset == segment.base_offset and file.size() >= read.position
    return same and file.read(read.anchor_position, len(read.anchor)) == read.anchor


def _window(file: OpenSegment, read: ActiveRead, buffer: Bytes, *, spare_cache: bool) -> ActiveRead:
    if file.size() == read.position or (read.zero_tail and not any(file.read(read.position, PREFIX_BYTES))):
        return read
    scanned = scan_on(file, read.position, read.next_offset, buffer, spare_cache=spare_cache)
    if scanned.flaw is not None:
        extra = {"path": str(file.path), "position": read.position + scanned.end, "error": scanned.flaw}
        log.warning("segment is not understood: its timestamps are not known from here on", extra=extra)
    after = replace(read, zero_tail=read.zero_tail or scanned.stop is Stop.ZEROS, flawed=scanned.flaw is not None)
    if scanned.sums is None:
        return after
    first = int(scanned.batches.max_timestamp[0]) if read.position == 0 else read.first_timestamp
    return replace(
        after,
        position=read.position + scanned.end,
        next_offset=scanned.sums.next_offset,
        first_timestamp=max(first, -1),
        largest_timestamp=max(read.largest_timestamp, scanned.sums.max_timestamp),
        anchor=scanned.anchor,
        anchor_position=read.position + scanned.anchor_position,
    )
