"""Where a log is read on, what is open there, and what of it is lost: the values that searches return, and that a tail applies."""

from dataclasses import dataclass

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
