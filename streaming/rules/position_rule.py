"""Where a reader goes on in a log, by its position and by what the log holds now.

A log that was cut off below a position may have grown past it again. Leader epochs tell, as they tell a follower (KIP-101): what two logs
hold of one epoch is the same as far as both go. So a reader and a log are the same up to where the last epoch that they have in common ends
in one of them. The last epoch of the reader alone would not do: of a log that has no such epoch any more it says that they part, and not
where.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from streaming.common.log_positions import MOST_EPOCHS, NOT_KNOWN, Epochs, KnownEnd, Position


def goes_on_at(end: KnownEnd, epochs: Sequence[EpochStart], log_start: int) -> int | None:
    """Where to read on for who has counted a log of the same topic id up to ``end``, or at the log's end if that is less.

    The records that it has counted and the log are the same as far as the epoch of the last that it has counted goes in both. Of an epoch
    that the log does not have that is not known: None. Then it has to be given everything, and sees by the epochs what was overwritten.

    Args:
        epochs: of the log, ascending; of one that has none it is only known whether it is shorter.
        log_start: its first offset.
    """
    if not epochs:
        return max(log_start, end.next_offset)
    if end.next_offset <= log_start:
        return log_start  # what lay between is deleted, whatever it was
    known = next((each for each in epochs if each.epoch == end.epoch), None)
    if end.epoch == NOT_KNOWN or known is None or known.start_offset >= end.next_offset:
        return None
    return max(log_start, min(end.next_offset, _next_start(end.epoch, epochs, end.next_offset)))


class EpochStart(Protocol):
    """The first offset of a leader epoch of a log, as `streaming.kafka.formats.checkpoint_files.EpochEntry` has it."""

    @property
    def epoch(self) -> int:
        """The epoch."""

    @property
    def start_offset(self) -> int:
        """The first offset."""


def _next_start(epoch: int, epochs: Sequence[EpochStart], log_end: int) -> int:
    """Where the first epoch of the log begins that is later."""
    return min((each.start_offset for each in epochs if each.epoch > epoch), default=log_end)


def resume(at: Position, epochs: Sequence[EpochStart], log_start: int, log_end: int) -> Resumed:
    """Where to go on in a log of the same topic id.

    Args:
        epochs: of the log, ascending; none if they are not known.
        log_start, log_end: its first offset, and the one after its last whole batch.
    """
    common = min(at.next_offset, _common(at, epochs, log_end), max(log_end, log_start))
    offset = max(common, log_start)
    return Resumed(offset, cut_off=at.next_offset - common, deleted=offset - common if log_start > common else 0)


@dataclass(frozen=True, slots=True)
class Resumed:
    """A reader goes on at ``offset``. It had read ``cut_off`` offsets that are not in the log any more, and ``deleted`` offsets are gone
    that it has not read."""

    offset: int
    cut_off: int = 0
    deleted: int = 0


def _common(at: Position, epochs: Sequence[EpochStart], log_end: int) -> int:
    """Up to where a reader and the log can be the same."""
    if not epochs:
        return log_end
    there = {each.epoch for each in epochs}
    ends = [*(start for _, start in at.epochs), at.next_offset][1:]
    for (epoch, _), end in zip(reversed(at.epochs), reversed(ends), strict=True):
        if epoch in there:
            return min(end, _next_start(epoch, epochs, log_end))
    # nothing of what it has read is in what the log knows of its history, which may begin further down than what it could read; what lies
    # below was deleted, which parts nothing
    known = min(epochs[0].start_offset, log_end)
    return known if len(at.epochs) < MOST_EPOCHS else min(max(at.epochs[0][1], known), _next_start(at.epochs[0][0], epochs, log_end))


def epochs_below(epochs: Sequence[EpochStart], offset: int) -> Epochs:
    """The last leader epochs of what lies below an offset."""
    return tuple((each.epoch, each.start_offset) for each in epochs if each.start_offset < offset)[-MOST_EPOCHS:]
