"""Counts a log that nobody writes to, or as it is now, in a single pass: for commands that read log dirs once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from streaming.broker.disk.segment_files import Segment
from streaming.broker.ladder.append_bounds import AppendBounds, append_bounds
from streaming.broker.ladder.counts import Aborted, Counts
from streaming.broker.ladder.filling import count_segment
from streaming.broker.ladder.log_ladder import LadderView
from streaming.broker.ladder.positions import Position, PositionState, positions
from streaming.broker.ladder.segment_ladder import SegmentLadder
from streaming.common.formatting import format_word
from streaming.kafka.scan.walk import Bytes


@dataclass(frozen=True, slots=True, eq=False)
class CountedLog:
    """The ladder of all segments of a listing, or of those from some offset on; positions of its offsets can be asked for."""

    segments: tuple[Segment, ...]
    ladder: LadderView

    @property
    def end_offset(self) -> int:
        """The offset after the last batch."""
        return self.ladder.end_offset

    def damage(self, begin: int) -> str:
        """The first damage of a segment that has offsets from ``begin`` on, with its file, in words; "" if there is none.

        What lies before a damaged batch need not be counted if ``begin`` is after it.
        """
        paths = {segment.base_offset: str(segment.path) for segment in self.segments}
        ends = [*(one.base_offset for one in self.ladder.segments[1:]), self.end_offset + 1]
        return next(
            (
                f"{format_word(paths[one.base_offset])}: {one.damage}"
                for one, end in zip(self.ladder.segments, ends, strict=True)
                if one.damage and begin < (end if one.cut else one.sound_from)
            ),
            "",
        )

    def hole(self, begin: int) -> tuple[int, int] | None:
        """The first offsets from ``begin`` on that lie between two segments and are in none, the last one included; None if there are none.

        That is as it should be where a topic is compacted, or was.
        """
        pairs = zip(self.ladder.segments, self.ladder.segments[1:], strict=False)
        gaps = ((max(one.end_offset, begin), following.base_offset - 1) for one, following in pairs if not one.damage)
        return next((gap for gap in gaps if gap[0] <= gap[1]), None)

    @property
    def cut(self) -> bool:
        """Whether damage ends it: what follows is not known."""
        return self.ladder.segments[-1].cut

    def positions(self, offsets: Sequence[int], upto: int, *, reads_uncommitted: bool = False) -> list[Position]:
        """As `streaming.broker.ladder.positions.positions`."""
        return positions(self.segments, self.ladder, offsets, upto, reads_uncommitted=reads_uncommitted)

    def appended(self, offset: int, timestamp: int, now_ms: int) -> AppendBounds:
        """As `streaming.broker.ladder.append_bounds.append_bounds`."""
        return append_bounds(self.segments, self.ladder, offset, timestamp, now_ms)

    def between(self, begin: int, end: int) -> Counts | None:
        """What lies between two offsets; bytes are those of whole batches from the one on that ``begin`` is in.

        None if bytes in between, or between them and the end of the log, are damaged or cannot be read.
        """
        first, last = self.positions((begin, end), end)
        if first.state is not PositionState.KNOWN or last.state is not PositionState.KNOWN:
            return None
        return _counts(last) - _counts(first)


def count_log(segments: Sequence[Segment], begin: int, buffer: Bytes, paced: Callable[[int], None] = lambda _: None) -> CountedLog:
    """Count the segments of a log from the one on that has the offset ``begin``.

    Args:
        segments: a listing, not empty.
        buffer: is used for the scan.
        paced: called with the number of bytes after each window that was read; it may wait.

    Raises:
        OSError: a segment cannot be read, or is gone.
    """
    first = max((number for number, segment in enumerate(segments) if segment.base_offset <= begin), default=0)
    ladders: list[SegmentLadder] = [count_segment(segments, number, buffer, paced) for number in range(first, len(segments))]
    before = tuple(accumulate((one.totals for one in ladders[:-1]), initial=Counts()))
    return CountedLog(tuple(segments), LadderView("", tuple(ladders), before, Aborted.none()))


def _counts(position: Position) -> Counts:
    return Counts(position.data, position.aborted, position.control, position.bytes)
