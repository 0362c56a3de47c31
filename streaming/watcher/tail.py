"""One watched log: its open file, its known segments, and the cursor up to which it is read."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from streaming.disk.log_inventory import LogInventory
from streaming.disk.logdirs import Partition
from streaming.disk.segment_files import Identity, OpenSegment, Segment, Stamp, file_stamp
from streaming.journal.blobs import NO_ENTRIES
from streaming.journal.events import TIMES_UNKNOWN, Cursor, Event, LogId
from streaming.journal.producer_pages import KnownProducers
from streaming.kafka.checkpoint_files import EpochEntry
from streaming.kafka.names import TRANSACTION_TOPIC, FileKind, segment_file_name
from streaming.rows import TIME_UNKNOWN, Kind
from streaming.watcher.locate import Boundary
from streaming.watcher.open_files import open_files

EVERYTHING = 2**63 - 1
"""A frontier with the meaning that any offset may have been published before."""


def log_id(partition: Partition) -> LogId:
    """The log that a directory contains."""
    return LogId(partition.log_dir.broker, partition.topic, partition.partition, partition.topic_id)


def cursor_at(log: LogId, boundary: Boundary, segments: Sequence[Segment], frontier: int) -> Cursor:
    """The cursor of a log whose reading begins at ``boundary``; its first backlog reaches to the end of what is listed now."""
    return Cursor(
        log=log,
        segment=boundary.segment.base_offset,
        device=boundary.segment.identity.device,
        inode=boundary.segment.identity.inode,
        position=boundary.position,
        next_offset=boundary.next_offset,
        log_epoch=boundary.log_epoch,
        anchor=boundary.anchor,
        anchor_position=boundary.anchor_position,
        frontier=max(frontier, boundary.next_offset),
        stopped="",
        skipped=0,
        backlog_segment=segments[-1].base_offset,
        backlog_position=segments[-1].size,
        **_times_at(boundary),
    )


def moved(cursor: Cursor, boundary: Boundary) -> Cursor:
    """The cursor of the same log at another boundary."""
    return replace(
        cursor,
        segment=boundary.segment.base_offset,
        device=boundary.segment.identity.device,
        inode=boundary.segment.identity.inode,
        position=boundary.position,
        next_offset=boundary.next_offset,
        log_epoch=boundary.log_epoch if boundary.anchor else cursor.log_epoch,
        anchor=boundary.anchor,
        anchor_position=boundary.anchor_position,
        stopped="",
        skipped=0,
        **_times_at(boundary),
    )


def _times_at(boundary: Boundary) -> dict[str, Any]:
    time = TIMES_UNKNOWN if boundary.position else -1
    return {"first_timestamp": time, "largest_timestamp": time}


@dataclass(frozen=True, slots=True)
class Suspect:
    """Bytes at ``position`` that are not a batch, seen first at ``since_ms``."""

    position: int
    since_ms: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """A range of a leader epoch without a known leader, first read at ``since_ms``; ``given_up``: it is published without one."""

    epoch: int
    since_ms: int
    given_up: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LastFound:
    """The values that were published of a log besides its appends, by the names of an event's columns, and their sources."""

    inventory: LogInventory
    remote: bool
    log_start_offset: int
    local_log_start_offset: int
    high_watermark: int
    leader: int
    leader_epoch: int
    active_producers: int

    def changes_since(self, before: "LastFound | None") -> dict[str, Any]:
        """The columns of an event that follows ``before``; none if nothing has changed but the size of the active segment."""
        columns = self._columns()
        same_list = before is not None and _lasting(self) == _lasting(before)
        if before is not None and same_list and columns == before._columns():
            return {}
        return columns | {"segments": None if same_list else self.inventory.segments.tobytes()}

    def _columns(self) -> dict[str, Any]:
        """The values that are published again when they change, besides the list of segments."""
        seen = self.inventory
        return {
            "log_start_offset": self.log_start_offset,
            "local_log_start_offset": self.local_log_start_offset,
            "oldest_timestamp": seen.oldest_record_ms,
            "active_first_timestamp": seen.active_first_ms,
            "active_created_ms": seen.active_created_ms,
            "high_watermark": self.high_watermark,
            "active_producers": self.active_producers,
            "leader": self.leader,  # the fold needs it to decide whose ranges count, if another agent reads no metadata
            "leader_epoch": self.leader_epoch,
        }


def _lasting(last: LastFound) -> tuple[object, ...]:
    """The part of the list that does not change with every append."""
    listed = last.inventory.segments
    return listed[:-1].tobytes(), int(listed["base_offset"][-1]), int(listed["largest_timestamp"][-1]) == TIME_UNKNOWN


class Tail:
    """The state of one watched log.

    Only the watcher's thread changes it. Other threads read ``cursor``, ``log_start`` and ``last_found``.
    """

    __slots__ = (  # there is one tail for each log, and a dict is four times as large
        "appended_ms",
        "away",
        "breaks",
        "calm",
        "cursor",
        "doubtful",
        "doubts",
        "error",
        "failed",
        "file",
        "high_watermark",
        "kept",
        "last_found",
        "leaving",
        "list_due",
        "live",
        "log_start",
        "looked_ms",
        "lost_since_ms",
        "new",
        "owes_list",
        "parted_by",
        "partition",
        "plain",
        "producers",
        "refused",
        "replayed_whole",
        "resumed",
        "segments",
        "size",
        "sizes",
        "stamp",
        "suspect",
        "waiting",
        "zero_tail",
    )

    def __init__(self, partition: Partition, cursor: Cursor, segments: Sequence[Segment], producers: KnownProducers) -> None:
        self.partition = partition
        self.cursor = cursor
        self.kept: Cursor | None = None  # the cursor as the journal has it
        self.producers = producers  # at the cursor
        self.last_found: LastFound | None = None
        self.list_due = True  # something of it may have changed
        self.owes_list = True  # all of it has to be published again: some consumer has not had it
        self.breaks = 0  # how often reading did not simply go on: the part that was replayed before may be gone
        self.doubts = 0  # files that did not show what is open, so that a fallback was used
        self.high_watermark = -1  # by the checkpoint of its log dir
        self.replayed_whole = True  # the log was understood up to where reading began, so what is open there is known
        self.appended_ms = -1  # when an append was last seen
        self.segments = tuple(segments)
        self.sizes: dict[int, int] = {}  # of segments by base offset, also of those that have vanished since `settle` was called
        self.settle(segments)
        self.log_start = segments[0].base_offset
        self.stamp: Stamp | None = None  # of the directory when it was listed
        self.resumed = True  # the cursor was found in the files that are there
        self.away = False  # its log dir is unavailable: no call into it may be made
        self.leaving = False  # its directory was renamed or removed: what is left of it is read
        self.live = False  # the log grows while it is watched: there is no backlog
        self.new = False  # it appeared while the watcher was running, and was not read yet
        self.looked_ms = -1  # when a poll last found nothing behind the cursor
        self.calm = False  # only another size of the open file can mean that there is something to do
        self.failed = False  # it is stopped by an error of this program: another try soon would fail in the same way
        self.error = ""  # why it could not be read at the last try
        self.refused: tuple[str, str] | None = None  # the file that cannot be read now, and why
        self.doubtful = True  # something happened in the directory: the anchor has to be checked, the size is not enough
        self.file: OpenSegment | None = None
        self.size = -1  # of the open file at the last poll
        self.zero_tail = False  # preallocated: the size does not show growth
        self.plain = False  # it was seen to end with a whole batch, or inside one: the size shows growth
        self.suspect: Suspect | None = None
        self.waiting: Waiting | None = None
        self.parted_by: tuple[EpochEntry, ...] = ()  # the leader epochs by which it was set back last
        self.lost_since_ms = -1  # since when the open file is not among the segments

    @property
    def path(self) -> str:
        """The directory, as text for logs."""
        return str(self.partition.path)

    @property
    def waits(self) -> bool:
        """Whether the range at the cursor is held back until it is known who led when it was appended."""
        return self.waiting is not None and not self.waiting.given_up

    @property
    def behind(self) -> bool:
        """Whether the log goes on in another file than the file of the cursor."""
        return not self.is_at(self.segments[-1])

    def open(self) -> OpenSegment:
        """The open file at the cursor, opened if need be. Raises OSError, FileNotFoundError if another file has its name."""
        if self.file is None:
            path = self._path_of_file()
            file = self._open(path)
            if file.identity != Identity(self.cursor.device, self.cursor.inode):
                file.close()
                raise FileNotFoundError(f"{path} is another file than the one that was read")
            self.file = file
            open_files().opened(self)
        return self.file

    def _open(self, path: Path) -> OpenSegment:
        try:
            return OpenSegment(path, self.cursor.segment)
        except OSError as error:
            if not open_files().ran_short(error):
                raise
        return OpenSegment(path, self.cursor.segment)

    def still(self) -> bool:
        """Whether the unchanged size of its open file shows that nothing is to be done, as for most logs in most polls. Raises OSError."""
        if not self.calm or self.file is None or self.waiting is not None or not self.resumed or self.away or self.cursor.stopped:
            return False
        return self.file.size() == self.size

    @property
    def quiet(self) -> bool:
        """Whether its size shows everything that may happen next: see `rest`."""
        return self.calm

    def rest(self) -> bool:
        """Close the file for now, because descriptors are short; False if it must stay open, because it may have no name any more.

        A calm log stays calm: `rests` decides whether it has grown.
        """
        if self.file is None or self.suspect is not None or self.lost_since_ms >= 0:
            return False
        if not self.calm:
            self.close()
            return True
        self.file.close()
        self.file = None
        open_files().closed(self)
        return True

    def rests(self) -> bool:
        """Whether the file is closed for now, and has not changed since the last poll. Raises OSError."""
        if self.file is not None or not self.calm:
            return False
        return file_stamp(self._path_of_file()) == (Identity(self.cursor.device, self.cursor.inode), self.size)

    def _path_of_file(self) -> Path:
        listed = next((segment for segment in self.segments if segment.base_offset == self.cursor.segment), None)
        return listed.path if listed else self.partition.path / segment_file_name(self.cursor.segment, FileKind.LOG)

    def close(self) -> None:
        """Close the open file."""
        if self.file is not None:
            self.file.close()
            self.file = None
            open_files().closed(self)
        self.calm = False
        self.size = -1
        self.zero_tail = False
        self.plain = False
        self.suspect = None
        self.waiting = None
        self.lost_since_ms = -1

    def publish_again(self) -> None:
        """Publish all values again, because some consumer has not had them."""
        self.list_due = self.owes_list = True

    def settle(self, segments: Sequence[Segment]) -> None:
        """Take over the segments; the cursor is in one of them."""
        self.segments = tuple(segments)
        self.sizes = {segment.base_offset: segment.size for segment in segments}
        self.list_due = True

    def is_as_listed(self, stamp: Stamp | None) -> bool:
        """Whether nothing was created, renamed or removed in its directory since it was listed, and nothing else asks for a listing."""
        whole = self.resumed and not self.cursor.stopped and self.lost_since_ms < 0 and self.producers.now is not None
        return whole and stamp is not None and stamp == self.stamp

    def doubt(self) -> None:
        """Let the next poll check the anchor: a log that is truncated and grows again may show no other sign."""
        self.doubtful, self.calm = True, False

    def relist(self, segments: Sequence[Segment], now_ms: int) -> None:
        """Take over another listing of the directory; it is not known yet where the cursor is in it."""
        self.segments = tuple(segments)
        self.sizes.update((segment.base_offset, segment.size) for segment in segments if segment.base_offset >= self.cursor.segment)
        self.doubt()
        self.list_due = True
        if self.file is None or any(self.is_at(segment) for segment in segments):
            self.lost_since_ms = -1
        elif self.lost_since_ms < 0:
            self.lost_since_ms = now_ms

    def bytes_left_unread(self, before: int | None = None) -> int:
        """Bytes behind the cursor, as far as they were ever seen; with ``before``, in the segments that begin before that offset."""
        cursor = self.cursor
        sizes = {base: size for base, size in self.sizes.items() if base >= cursor.segment and (before is None or base < before)}
        if self.file is not None:
            sizes[cursor.segment] = self.file.size()
        return sum(sizes.values()) - (cursor.position if cursor.segment in sizes else 0)

    def is_at(self, segment: Segment) -> bool:
        """Whether a listed file is the file of the cursor."""
        cursor, identity = self.cursor, segment.identity
        return identity.inode == cursor.inode and identity.device == cursor.device and segment.base_offset == cursor.segment

    def event(self, kind: Kind, **values: Any) -> Event:
        """An event of this log at its cursor."""
        log = self.cursor.log
        return Event(
            kind=kind,
            broker=log.broker,
            log_dir=str(self.partition.log_dir.path),
            topic=log.topic,
            partition=log.partition,
            topic_id=log.topic_id,
            **{"segment": self.cursor.segment, "settled": self.cursor.settled, **values},
        )

    def appeared(self, transactions: bytes | None) -> Event:
        """The APPEARED event: the log is watched from its cursor on. ``transactions``: what is open there, None if it is not known."""
        cursor = self.cursor
        begins = cursor.log.topic == TRANSACTION_TOPIC and (cursor.segment, cursor.position) == (self.segments[0].base_offset, 0)
        return self.event(
            Kind.APPEARED,
            next_offset=cursor.next_offset,
            log_epoch=cursor.log_epoch,
            transactions=transactions,
            coordinator=NO_ENTRIES if begins else None,
        )
