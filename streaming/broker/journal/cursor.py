"""How far a log has been read: written in the transaction of the events before it."""

from enum import StrEnum
from typing import NamedTuple

from streaming.common.log_key import LogKey

TIMES_UNKNOWN = -2
"""In place of the timestamps of a segment that was only read in part."""


class Cursor(NamedTuple):
    """How far a log has been read. It is a tuple because one is made for each range: a frozen dataclass takes three times as long.

    Everything before ``position`` of ``segment`` is published, and ``next_offset`` is the first offset that is not. ``device`` and
    ``inode`` name the segment's file. The other fields:

    - ``log_epoch``: the latest leader epoch that was read; ``epochs``: all that were (`streaming.broker.watcher.cursors`).
    - ``anchor``: the header of the last batch read, at ``anchor_position`` of the same segment; b"" at its beginning.
    - ``frontier``: the largest next offset ever published. Events of the offsets before it have been published already.
    - ``stopped``: why the log is not read on, "" while it is read; ``skipped``: bytes after ``position`` that count as skipped because
      of this.
    - ``backlog_segment``, ``backlog_position``: where the log's first backlog ends.
    - ``first_timestamp``, ``largest_timestamp``: of the segment's first batch, and of all batches before the cursor. Unix milliseconds,
      -1 none, `TIMES_UNKNOWN` where reading began inside the segment.
    - ``replay``: whether the log has to be replayed to know its open transactions.
    - ``wanted``: the beginning that new jobs want of a log that could not be read when they began
      (`streaming.broker.watcher.beginnings.Beginning`), "" none.
    - ``entries_upto``: for a log of `__transaction_state`, the offset up to which the last event contains its entries; -1 not known.
    - ``reread``: such a log has to be read again from its first byte, because a job may lack entries from before the cursor.
    - ``offset_bytes``: the mean bytes of an offset in the segment that was read before this one; 0 if none was.
    """

    log: LogKey
    segment: int
    device: int
    inode: int
    position: int
    next_offset: int
    log_epoch: int
    anchor: bytes
    anchor_position: int
    frontier: int
    stopped: str
    skipped: int
    backlog_segment: int
    backlog_position: int
    first_timestamp: int
    largest_timestamp: int
    epochs: bytes = b""
    replay: str = ""
    wanted: str = ""
    entries_upto: int = -1
    reread: bool = False
    offset_bytes: int = 0

    @property
    def held(self) -> bool:
        """Whether something else has to be done before the log is read on."""
        return self.replay == Replays.FIRST or bool(self.wanted)

    @property
    def settled(self) -> bool:
        """Whether the log's first backlog has been read."""
        return bool(self.stopped) or (self.segment, self.position) >= (self.backlog_segment, self.backlog_position)


class Replays(StrEnum):
    """How the open transactions at a cursor will be found, if they are not known."""

    NOT = ""  # they are known, or were published
    FIRST = "first"  # by a replay before the log is read on; the log is not published yet
    ALONGSIDE = "alongside"  # by a replay while the log is read on; they are published at the cursor of that time
