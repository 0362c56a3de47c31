"""What was listed of a log's segments, as long as its reader went on: how large they were, and how much of that is unread."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from streaming.broker.disk.segment_files import FileIdentity, Segment
from streaming.broker.journal.cursor import Cursor


@dataclass(frozen=True, slots=True)
class ListedSizes:
    """The segments of several listings, one after the other.

    ``sizes``: in bytes by base offset, not to be changed. ``gaps``: offsets from the last segment of a listing up to the first one of the
    next, where these do not meet: that segment may have grown, and others may have come and gone.
    """

    sizes: dict[int, int]
    gaps: tuple[tuple[int, int], ...] = ()

    def and_then(self, last: int, segments: Sequence[Segment]) -> "ListedSizes":
        """These, and a later listing. ``last``: the base offset of the last segment of the listing before."""
        first = segments[0].base_offset
        gaps = (*self.gaps, (last, first)) if last < first else self.gaps
        return ListedSizes(self.sizes | {segment.base_offset: segment.size for segment in segments}, gaps)

    def with_deleted(self, deleted: dict[int, int]) -> "ListedSizes":
        """These, and the sizes of deleted segments, from one of them on to the first one that is there: between these is no gap."""
        first = min(deleted, default=None)
        gaps = self.gaps if first is None else tuple((start, min(end, first)) for start, end in self.gaps if start < first)
        return ListedSizes(self.sizes | deleted, gaps)

    def closed(self, after: int) -> tuple[int, int]:
        """Bytes and offsets of the segments that begin after an offset and whose end is known, all together."""
        open_ended = {start for start, _ in self.gaps}
        bases = sorted(base for base in self.sizes if base > after)
        known = [(self.sizes[base], end - base) for base, end in pairwise(bases) if base not in open_ended]
        return sum(size for size, _ in known), sum(offsets for _, offsets in known)


@dataclass(frozen=True, slots=True)
class Listing:
    """The last listing of a log, with what listings before it have shown since the cursor was found in one of them.

    ``segments``: of the last one, at least one. ``earlier``: all of them together, None if there was no other listing, as there is of most
    logs. ``written``: the last file, if it is preallocated, and up to where it was written when that was measured.
    """

    segments: tuple[Segment, ...]
    earlier: ListedSizes | None = None
    written: tuple[FileIdentity, int] | None = None

    def anew(self, segments: Sequence[Segment]) -> "Listing":
        """Another listing, in one of whose segments the cursor was found."""
        return Listing(tuple(segments), None, self.written)

    def and_then(self, segments: Sequence[Segment], cursor: Cursor, *, zero_tail: bool) -> "Listing":
        """These, and another listing; it is not known yet where the cursor is in it."""
        joined, after = self.joined(segments, cursor, zero_tail=zero_tail), self.anew(segments)
        return after if joined == after.sizes(cursor) else replace(after, earlier=joined)

    def sizes(self, cursor: Cursor) -> ListedSizes:
        """All segments that were listed."""
        return ListedSizes({}).and_then(cursor.segment, self.segments) if self.earlier is None else self.earlier

    def joined(self, segments: Sequence[Segment], cursor: Cursor, *, zero_tail: bool) -> ListedSizes:
        """All segments that were listed, and those of another listing. ``zero_tail``: the last file is preallocated."""
        last, listed = self.segments[-1], self.sizes(cursor)
        sizes = self.written_of(listed.sizes)
        if zero_tail and sizes is listed.sizes:  # it was not measured: its size says nothing
            sizes = sizes | {last.base_offset: 0}
        before = {base: size for base, size in sizes.items() if base < cursor.segment}  # as it was read, if it was cut off since
        joined = replace(listed, sizes=sizes).and_then(last.base_offset, segments)
        return replace(joined, sizes=joined.sizes | before)

    def written_of(self, sizes: dict[int, int]) -> dict[int, int]:
        """Sizes of segments by base offset, of a preallocated file only what was written when it was measured."""
        last = self.segments[-1]
        if self.written is None or self.written[0] != last.identity or last.base_offset not in sizes:
            return sizes
        return sizes | {last.base_offset: min(sizes[last.base_offset], self.written[1])}

    def unread_bytes(self, cursor: Cursor, size: int) -> int:
        """Bytes after the cursor in the segments of the last listing. ``size``: of the file at the cursor by now, -1 as it was listed."""
        sizes = {segment.base_offset: segment.size for segment in self.segments if segment.base_offset >= cursor.segment}
        if size >= 0:
            sizes[cursor.segment] = size
        return max(0, sum(self.written_of(sizes).values()) - cursor.position)

    def left_unread(self, cursor: Cursor, listed: ListedSizes, end: int | None, end_of_file: int, others: tuple[int, int]) -> int:
        """Bytes after the cursor, also in segments that have vanished since they were listed: bytes that vanish unread are skipped.

        Offsets that were never listed count by the mean size of an offset in the segments that were listed and read.

        Args:
            listed: these, and perhaps those of another listing.
            end: only in the segments that begin before this offset, None for in all.
            end_of_file: up to where the open file is written, -1 if none is open.
            others: bytes and offsets that the mean takes in too.
        """
        sizes = {
            base: size for base, size in self.written_of(listed.sizes).items() if base >= cursor.segment and (end is None or base < end)
        }
        if end_of_file >= 0:
            sizes[cursor.segment] = end_of_file
        if cursor.segment in sizes:
            sizes[cursor.segment] = max(0, sizes[cursor.segment] - cursor.position)
        known = zip(listed.closed(cursor.segment), (cursor.position, cursor.next_offset - cursor.segment), others, strict=True)
        size, offsets = map(sum, known)
        if not offsets:  # nothing of these is known: as in what was read before
            size, offsets = cursor.offset_bytes, 1
        for base, after in listed.gaps:
            if base in sizes or base == cursor.segment:
                estimated = (after - max(base, cursor.next_offset)) * size // offsets
                sizes[base] = max(sizes.get(base, 0), estimated)
        return sum(sizes.values())
