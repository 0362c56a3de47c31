"""Where a log is read on, what is open there, and what of it is lost: the values that searches return, and that a tail applies."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from streaming.broker.disk.segment_files import Segment
from streaming.broker.journal.cursor import Cursor
from streaming.common.rows import Kind
from streaming.kafka.formats.checkpoint_files import EpochEntry
from streaming.kafka.scan.producer_states import Producers


@dataclass(frozen=True, slots=True, eq=False)
class Open:
    """The transactions that are open at a cursor.

    ``transactions``: the open ones, as a column of the event that publishes the cursor; None if they are not known yet. ``producers``:
    those at the cursor; None if a replay has to find both. ``doubts``: how many files were not understood. ``whole``: whether the log was
    understood up to the cursor, None if it was not read.
    """

    transactions: bytes | None
    producers: Producers | None
    doubts: int = 0
    whole: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LossColumns:
    """The columns of a TRUNCATED or SKIPPED event; ``opened``: what is open at the cursor after it."""

    kind: Kind
    opened: Open
    next_offset: int
    bytes: int
    base_offset: int = -1
    end_position: int = -1
    log_epoch: int = -1
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Relocation:
    """A log is read on at ``cursor``, which is in one of ``segments``, after any flaw.

    ``loss``: what has to be published about it, None for nothing. ``parted_by``: the stored leader epochs by which the log was set back,
    None if it was not.
    """

    cursor: Cursor
    segments: tuple[Segment, ...]
    loss: LossColumns | None = None
    parted_by: tuple[EpochEntry, ...] | None = None


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
