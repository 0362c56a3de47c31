"""One log under watch: the file that is open, the segments that are known, and the place up to which it is read."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from streaming.disk.inventory import LogInventory
from streaming.disk.logdirs import Partition
from streaming.disk.segments import Identity, OpenSegment, Segment, Stamp, file_stamp
from streaming.kafka.checkpoints import EpochEntry
from streaming.kafka.names import TRANSACTION_TOPIC, FileKind, segment_file_name
from streaming.rows import TIME_UNKNOWN, Kind
from streaming.watcher.blobs import NO_ENTRIES
from streaming.watcher.events import TIMES_UNKNOWN, Event, LogId, Place
from streaming.watcher.locate import Spot
from streaming.watcher.open_files import open_files
from streaming.watcher.producers import KnownProducers

EVERYTHING = 2**63 - 1
"""A frontier that says: any offset may have been told before."""


def log_id(partition: Partition) -> LogId:
    """Which replica a directory holds."""
    return LogId(partition.log_dir.broker, partition.topic, partition.partition, partition.topic_id)


def place_at(log: LogId, spot: Spot, segments: Sequence[Segment], frontier: int) -> Place:
    """The place of a log whose reading begins at ``spot``; its first backlog reaches to the end of what is listed now."""
    return Place(
        log=log,
        segment=spot.segment.base_offset,
        device=spot.segment.identity.device,
        inode=spot.segment.identity.inode,
        position=spot.position,
        next_offset=spot.next_offset,
        log_epoch=spot.log_epoch,
        anchor=spot.anchor,
        anchor_position=spot.anchor_position,
        frontier=max(frontier, spot.next_offset),
        stopped="",
        skipped=0,
        settled_segment=segments[-1].base_offset,
        settled_position=segments[-1].size,
        **_times_at(spot),
    )


def moved(place: Place, spot: Spot) -> Place:
    """The same log read on from another spot."""
    return replace(
        place,
        segment=spot.segment.base_offset,
        device=spot.segment.identity.device,
        inode=spot.segment.identity.inode,
        position=spot.position,
        next_offset=spot.next_offset,
        log_epoch=spot.log_epoch if spot.anchor else place.log_epoch,
        anchor=spot.anchor,
        anchor_position=spot.anchor_position,
        stopped="",
        skipped=0,
        **_times_at(spot),
    )


def _times_at(spot: Spot) -> dict[str, Any]:
    time = TIMES_UNKNOWN if spot.position else -1
    return {"first_timestamp": time, "largest_timestamp": time}


@dataclass(frozen=True, slots=True)
class Suspect:
    """Bytes at ``position`` that are not a batch, seen first at ``since_ms``."""

    position: int
    since_ms: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """A range of a leader epoch of which nobody knows who led in it, read first at ``since_ms``; ``given_up``: it goes without."""

    epoch: int
    since_ms: int
    given_up: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Told:
    """What was told of a log besides what was appended, by the names of an event's columns, and what that was made of."""

    inventory: LogInventory
    remote: bool
    log_start_offset: int
    local_log_start_offset: int
    high_watermark: int
    leader: int
    leader_epoch: int
    active_producers: int

    def news(self, before: "Told | None") -> dict[str, Any]:
        """The columns of an event that tells it after ``before``; none where nothing has changed but the size of the active segment."""
        columns = self._columns()
        same_list = before is not None and _lasting(self) == _lasting(before)
        if before is not None and same_list and columns == before._columns():
            return {}
        return columns | {"segments": None if same_list else self.inventory.segments.tobytes()}

    def _columns(self) -> dict[str, Any]:
        """What is told again when it changes, besides the list of segments."""
        seen = self.inventory
        return {
            "log_start_offset": self.log_start_offset,
            "local_log_start_offset": self.local_log_start_offset,
            "oldest_timestamp": seen.oldest_record_ms,
            "active_first_timestamp": seen.active_first_ms,
            "active_created_ms": seen.active_created_ms,
            "high_watermark": self.high_watermark,
            "active_producers": self.active_producers,
            "leader": self.leader,  # whose ranges count is folded too, where another agent can read no metadata
            "leader_epoch": self.leader_epoch,
        }


def _lasting(told: Told) -> tuple[object, ...]:
    """What of the list does not change with every append."""
    listed = told.inventory.segments
    return listed[:-1].tobytes(), int(listed["base_offset"][-1]), int(listed["largest_timestamp"][-1]) == TIME_UNKNOWN


class Tail:
    """What the watcher holds of one log. Only the watcher's thread changes it; others look at ``place``, ``log_start`` and ``told``."""

    __slots__ = (  # there is one for each log: a dict of its own is four times as large
        "appended_ms",
        "away",
        "calm",
        "doubtful",
        "doubts",
        "failed",
        "file",
        "high_watermark",
        "kept",
        "leaving",
        "live",
        "log_start",
        "looked_ms",
        "lost_since_ms",
        "new",
        "owes_list",
        "parted_by",
        "partition",
        "place",
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
        "told",
        "trouble",
        "turns",
        "untold",
        "waiting",
        "zero_tail",
    )

    def __init__(self, partition: Partition, place: Place, segments: Sequence[Segment], producers: KnownProducers) -> None:
        self.partition = partition
        self.place = place
        self.kept: Place | None = None  # the place as the journal has it
        self.producers = producers  # at the place
        self.told: Told | None = None
        self.untold = True  # something of that may have changed
        self.owes_list = True  # all of that is to be told, whatever was: some reader has not had it
        self.turns = 0  # how often reading did not simply go on: what was replayed of the log before that may be gone
        self.doubts = 0  # files that did not tell what is open, so that others stood in for them
        self.high_watermark = -1  # by the checkpoint of its log dir
        self.replayed_whole = True  # what is open where reading began was understood to there
        self.appended_ms = -1  # when something was appended last, as it was seen
        self.segments = tuple(segments)
        self.sizes: dict[int, int] = {}  # of segments by base offset, those included that have vanished since the place was settled
        self.settle(segments)
        self.log_start = segments[0].base_offset
        self.stamp: Stamp | None = None  # of the directory when it was listed
        self.resumed = True  # the place was found in the files that are there
        self.away = False  # its log dir is unavailable: no call into it may be made
        self.leaving = False  # its directory was renamed or removed: what is left of it is read
        self.live = False  # what is read now is growing under our eyes, no backlog
        self.new = False  # it appeared under our eyes and was not looked into yet
        self.looked_ms = -1  # when it was last seen that there is nothing behind the place
        self.calm = False  # nothing but another size of the open file can mean that there is something to do
        self.failed = False  # it is stopped for what this program cannot do: to try again soon would lead to the same
        self.trouble = ""  # why it could not be read at the last try
        self.refused: tuple[str, str] | None = None  # the file that cannot be read now, and why
        self.doubtful = True  # something happened in the directory: the anchor has to be looked at, the size tells nothing
        self.file: OpenSegment | None = None
        self.size = -1  # of the open file when it was last looked at
        self.zero_tail = False  # preallocated: the size does not tell growth
        self.plain = False  # was seen to end with a whole batch, or inside one: the size tells growth
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
        """Whether the range at the place is held back until it is known who led when it was appended."""
        return self.waiting is not None and not self.waiting.given_up

    @property
    def behind(self) -> bool:
        """Whether the log goes on in another file than the one the place stands in."""
        return not self.is_at(self.segments[-1])

    def open(self) -> OpenSegment:
        """The open file at the place, opened if need be. Raises OSError, FileNotFoundError where another file has its name."""
        if self.file is None:
            path = self._path_of_file()
            file = self._open(path)
            if file.identity != Identity(self.place.device, self.place.inode):
                file.close()
                raise FileNotFoundError(f"{path} is another file than the one that was read")
            self.file = file
            open_files().opened(self)
        return self.file

    def _open(self, path: Path) -> OpenSegment:
        try:
            return OpenSegment(path, self.place.segment)
        except OSError as error:
            if not open_files().ran_short(error):
                raise
        return OpenSegment(path, self.place.segment)

    def still(self) -> bool:
        """Whether a look at the size of its open file was all that is to be done; so it is for most logs at most times. Raises OSError."""
        if not self.calm or self.file is None or self.waiting is not None or not self.resumed or self.away or self.place.stopped:
            return False
        return self.file.size() == self.size

    @property
    def quiet(self) -> bool:
        """Whether its size tells all that may happen next: see `rest`."""
        return self.calm

    def rest(self) -> bool:
        """Close the file for now, because descriptors are short; False where it must stay open: it may have no name any more.

        A calm log stays calm: `rests` tells whether it has grown.
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
        """Whether the file is closed for now, and has not changed since it was looked at last. Raises OSError."""
        if self.file is not None or not self.calm:
            return False
        return file_stamp(self._path_of_file()) == (Identity(self.place.device, self.place.inode), self.size)

    def _path_of_file(self) -> Path:
        listed = next((segment for segment in self.segments if segment.base_offset == self.place.segment), None)
        return listed.path if listed else self.partition.path / segment_file_name(self.place.segment, FileKind.LOG)

    def close(self) -> None:
        """Let go of the open file."""
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

    def tell_again(self) -> None:
        """Some reader has not had what was told of it."""
        self.untold = self.owes_list = True

    def settle(self, segments: Sequence[Segment]) -> None:
        """The place stands in one of these segments."""
        self.segments = tuple(segments)
        self.sizes = {segment.base_offset: segment.size for segment in segments}
        self.untold = True

    def is_as_listed(self, stamp: Stamp | None) -> bool:
        """Whether nothing was created, renamed or removed in its directory since it was listed, and nothing else asks for a listing."""
        whole = self.resumed and not self.place.stopped and self.lost_since_ms < 0 and self.producers.now is not None
        return whole and stamp is not None and stamp == self.stamp

    def doubt(self) -> None:
        """The anchor is to be looked at: what is cut off and grows again may show in nothing else."""
        self.doubtful, self.calm = True, False

    def relist(self, segments: Sequence[Segment], now_ms: int) -> None:
        """Take in another listing of the directory; where the place is in it, is not known yet."""
        self.segments = tuple(segments)
        self.sizes.update((segment.base_offset, segment.size) for segment in segments if segment.base_offset >= self.place.segment)
        self.doubt()
        self.untold = True
        if self.file is None or any(self.is_at(segment) for segment in segments):
            self.lost_since_ms = -1
        elif self.lost_since_ms < 0:
            self.lost_since_ms = now_ms

    def bytes_left_unread(self, before: int | None = None) -> int:
        """Bytes behind the place, as far as they were ever seen; with ``before``, in the segments that begin before that offset."""
        place = self.place
        sizes = {base: size for base, size in self.sizes.items() if base >= place.segment and (before is None or base < before)}
        if self.file is not None:
            sizes[place.segment] = self.file.size()
        return sum(sizes.values()) - (place.position if place.segment in sizes else 0)

    def is_at(self, segment: Segment) -> bool:
        """Whether a listed file is the one that the place stands in."""
        place, identity = self.place, segment.identity
        return identity.inode == place.inode and identity.device == place.device and segment.base_offset == place.segment

    def event(self, kind: Kind, **values: Any) -> Event:
        """An event of this log at its place."""
        log = self.place.log
        return Event(
            kind=kind,
            broker=log.broker,
            log_dir=str(self.partition.log_dir.path),
            topic=log.topic,
            partition=log.partition,
            topic_id=log.topic_id,
            **{"segment": self.place.segment, "settled": self.place.settled, **values},
        )

    def appeared(self, transactions: bytes | None) -> Event:
        """The event that says that the log is watched from its place on; ``transactions``: what is open there, None where nobody knows."""
        place = self.place
        begins = place.log.topic == TRANSACTION_TOPIC and (place.segment, place.position) == (self.segments[0].base_offset, 0)
        return self.event(
            Kind.APPEARED,
            next_offset=place.next_offset,
            log_epoch=place.log_epoch,
            transactions=transactions,
            coordinator=NO_ENTRIES if begins else None,
        )
