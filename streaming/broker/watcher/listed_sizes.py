"""What the listings of one log have shown of its segments: also of those that have vanished, and where some were never listed."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from streaming.broker.disk.segment_files import Segment


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
