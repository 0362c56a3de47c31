"""Where a reader goes on in a log, by its position and by what the log holds now.

A log that was cut off below a position may have grown past it again. Its leader epochs tell: what was appended in an epoch ends where the
next one of the log begins (`LeaderEpochFileCache.endOffsetFor`; a follower asks its leader the same way, KIP-101). A position has only the
epoch of what lies right before it. If the log has none of that epoch, what the reader has parts from it at the end of the last earlier
epoch at the latest; how much of that earlier epoch the reader had read, nothing shows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from streaming.common.log_positions import NOT_KNOWN, Position


class EpochStart(Protocol):
    """The first offset of a leader epoch of a log, as `streaming.kafka.formats.checkpoint_files.EpochEntry` has it."""

    @property
    def epoch(self) -> int:
        """The epoch."""

    @property
    def start_offset(self) -> int:
        """The first offset."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """A reader goes on at ``offset``. It had read ``cut_off`` offsets that are not in the log any more, and ``deleted`` offsets are gone
    that it has not read."""

    offset: int
    cut_off: int = 0
    deleted: int = 0


def resume(at: Position, epochs: Sequence[EpochStart], log_start: int, log_end: int) -> Resumed:
    """Where to go on in a log of the same topic id.

    Args:
        epochs: of the log, ascending; none if they are not known.
        log_start, log_end: its first offset, and the one after its last whole batch.
    """
    common = min(at.next_offset, _end_of_epoch(at.leader_epoch, epochs, log_end), max(log_end, log_start))
    offset = max(common, log_start)
    return Resumed(offset, cut_off=at.next_offset - common, deleted=offset - common if log_start > common else 0)


def epoch_before(epochs: Sequence[EpochStart], offset: int) -> int:
    """The leader epoch of what lies right before an offset, `NOT_KNOWN` if the log does not say it."""
    return max((each.epoch for each in epochs if each.start_offset < offset), default=NOT_KNOWN)


def _end_of_epoch(epoch: int, epochs: Sequence[EpochStart], log_end: int) -> int:
    """Up to where the log can be the same as for a reader whose last batch is of this epoch."""
    if epoch == NOT_KNOWN:
        return log_end
    return min((each.start_offset for each in epochs if each.epoch > epoch), default=log_end)
