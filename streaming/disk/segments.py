"""The segments of a partition directory, and a read-only look into one of them."""

import contextlib
import errno
import logging
import os
from dataclasses import dataclass
from mmap import PAGESIZE
from pathlib import Path

from streaming.disk.calls import Calling
from streaming.disk.index import last_entry_below, positions_between
from streaming.disk.reads import note_read
from streaming.errors import FormatError
from streaming.kafka import names
from streaming.kafka.checkpoints import EpochEntry, parse_leader_epochs
from streaming.kafka.layout import CURRENT_MAGIC, MAGIC_AT
from streaming.kafka.names import FileKind, FileStage, segment_file_name
from streaming.kafka.walk import Bytes, Positions

log = logging.getLogger(__name__)

_LOG_NAMES = (".log", ".log.swap")


@dataclass(frozen=True, slots=True, order=True)
class Identity:
    """Which file it is, whatever its name: compaction puts another one under the same name."""

    device: int
    inode: int


@dataclass(frozen=True, slots=True)
class Segment:
    """A ``.log`` as it was listed.

    ``size`` in bytes (the zero tail of a preallocated file included), ``modified_ms`` Unix milliseconds; ``swap``: it is there under its
    ``.swap`` name. A log may have many of them, and an agent many logs: none keeps a path of its own.
    """

    base_offset: int
    directory: Path
    swap: bool
    size: int
    modified_ms: int
    identity: Identity

    @property
    def path(self) -> Path:
        """The file."""
        name = segment_file_name(self.base_offset, FileKind.LOG)
        return self.directory / (f"{name}.{FileStage.SWAP}" if self.swap else name)


def list_segments(directory: Path) -> tuple[Segment, ...]:
    """The segments of a partition directory by base offset; the last one is active. Empty while the directory is half made.

    Between the renames of a compaction (`LocalLog.replaceSegments`) a segment is there under its ``.swap`` name alone: it counts as live.

    Raises:
        OSError: the directory is gone or cannot be read.
    """
    found: dict[int, Segment] = {}
    with Calling(directory), os.scandir(directory) as entries:
        for entry in entries:
            if not entry.name.endswith(_LOG_NAMES):  # three files of four: cheaper than to take their names apart
                continue
            name = names.parse_segment_file(entry.name)
            if name is None or name.kind is not FileKind.LOG or name.stage not in (FileStage.LIVE, FileStage.SWAP):
                continue
            if name.stage is FileStage.SWAP and name.base_offset in found:
                continue
            with contextlib.suppress(FileNotFoundError):  # renamed since the listing: a deletion, which the next listing shows
                stat = entry.stat()
                identity = Identity(stat.st_dev, stat.st_ino)
                swap = name.stage is FileStage.SWAP
                modified_ms = stat.st_mtime_ns // 1_000_000
                found[name.base_offset] = Segment(name.base_offset, directory, swap, stat.st_size, modified_ms, identity)
    return tuple(found[base_offset] for base_offset in sorted(found))


def deleted_segments(directory: Path) -> dict[int, tuple[Identity, int]]:
    """Which files of segments that Kafka has deleted and not unlinked yet (``.log.deleted``) lie there, with their sizes, by base offset.

    Raises:
        OSError: the directory is gone or cannot be read.
    """
    found: dict[int, tuple[Identity, int]] = {}
    with Calling(directory), os.scandir(directory) as entries:
        for entry in entries:
            name = names.parse_segment_file(entry.name)
            if name is not None and name.kind is FileKind.LOG and name.stage is FileStage.DELETED:
                with contextlib.suppress(FileNotFoundError):  # its time is over
                    stat = entry.stat()
                    found[name.base_offset] = Identity(stat.st_dev, stat.st_ino), stat.st_size
    return found


Stamp = tuple[int, int]
"""Of a directory: another one whenever something was created, renamed or removed in it."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The segments of a directory as they were when it had this stamp."""

    stamp: Stamp
    segments: tuple[Segment, ...]


SETTLED_MS = 2_000
"""A directory's time tells of every change only if it is older than the clock's grain, some milliseconds, when the directory is listed."""


def directory_stamp(directory: Path, now_ms: int) -> Stamp | None:
    """The stamp of a directory, to be taken before it is listed; None where it cannot tell yet. Raises OSError."""
    with Calling(directory):
        stat = directory.stat()
    return stamp_of(stat, now_ms)


def stamp_of(stat: os.stat_result, now_ms: int) -> Stamp | None:
    """The stamp of a directory of which the kernel says this; None where it cannot tell yet."""
    return (stat.st_ino, stat.st_mtime_ns) if now_ms - stat.st_mtime_ns // 1_000_000 > SETTLED_MS else None


def file_stamp(path: Path) -> tuple[Identity, int]:
    """Which file lies at a path, and its size in bytes, without opening it. Raises OSError."""
    with Calling(path):
        stat = path.stat()
    return Identity(stat.st_dev, stat.st_ino), stat.st_size


def read_leader_epochs(directory: Path) -> tuple[EpochEntry, ...]:
    """The entries of ``leader-epoch-checkpoint``, none where there is no such file, it may not be read, or it is not understood.

    Raises:
        OSError: it cannot be read now: what it says decides where a log was cut off, so to go on without it would be wrong.
    """
    path = directory / names.LEADER_EPOCH_CHECKPOINT
    try:
        with Calling(path):
            return parse_leader_epochs(path.read_bytes())
    except FileNotFoundError:
        return ()
    except (FormatError, PermissionError) as error:
        log.warning("leader epochs cannot be read", extra={"path": str(path), "error": str(error)})
        return ()


def log_start_offset(directory: Path, segments: tuple[Segment, ...]) -> int:
    """The first offset that the log still serves, as far as its own directory tells: ``log-start-offset-checkpoint`` may raise it further.

    ``leader-epoch-checkpoint`` is the first file to show DeleteRecords, but its first entry may also lie above the start of a log whose
    older batches carry no epoch: it counts only if a batch of magic 2 lies below it.
    """
    first = segments[0]
    epochs = read_leader_epochs(directory)
    if not epochs or epochs[0].start_offset <= first.base_offset:
        return first.base_offset
    try:
        file = OpenSegment(first.path, first.base_offset)
    except OSError:  # being deleted: the next listing begins further on
        return first.base_offset
    try:
        head = file.read(0, MAGIC_AT + 1)
    finally:
        file.close()
    return epochs[0].start_offset if len(head) > MAGIC_AT and head[MAGIC_AT] == CURRENT_MAGIC else first.base_offset


class OpenSegment:
    """An open ``.log``: it stays readable when Kafka renames or unlinks it. Close it, or it pins disk space."""

    def __init__(self, segment_path: Path, base_offset: int) -> None:
        """Open for reading. Raises OSError."""
        self.path = segment_path
        self.base_offset = base_offset
        with Calling(segment_path):
            self._fd = os.open(segment_path, os.O_RDONLY | os.O_CLOEXEC)
            stat = os.fstat(self._fd)
        self.identity = Identity(stat.st_dev, stat.st_ino)
        self._reads_ahead = True
        self._entry = 0  # of the index: which one follows those that were asked for last

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._fd)

    def size(self) -> int:
        """The file's size in bytes, a preallocated tail included. The cheapest look there is: one lseek."""
        with Calling(self.path):
            return os.lseek(self._fd, 0, os.SEEK_END)

    def modified_ms(self) -> int:
        """The file's modification time, Unix milliseconds."""
        with Calling(self.path):
            return os.fstat(self._fd).st_mtime_ns // 1_000_000

    def unlinked(self) -> bool:
        """Whether no name leads to the file any more."""
        with Calling(self.path):
            return os.fstat(self._fd).st_nlink == 0

    def read(self, position: int, size: int) -> bytes:
        """Up to ``size`` bytes from ``position``; fewer at the end of the file."""
        with Calling(self.path):
            found = os.pread(self._fd, size, position)
        note_read(len(found))
        return found

    def read_into(self, buffer: Bytes, position: int, *, spare_cache: bool = False) -> int:
        """Fill ``buffer`` from ``position`` on; returns how many bytes there were.

        Nothing is mapped: a mapping of a file that the broker truncates would end this process with SIGBUS.

        Args:
            spare_cache: give pages back that only this read brought into the page cache (for a backlog, which no one else is reading).
        """
        if spare_cache and self._reads_ahead:
            # a device may read megabytes ahead: the next window's end would seem to be there for somebody else's sake, and would stay
            self._reads_ahead = False
            os.posix_fadvise(self._fd, 0, 0, os.POSIX_FADV_RANDOM)
        ours = spare_cache and not self._cached(min(position + len(buffer), self.size()) - 1)
        with Calling(self.path):
            read = os.preadv(self._fd, [buffer.data], position)
            if ours and read:  # a length of 0 would mean the whole file
                # whole pages: of one that is given in part the kernel keeps all, and with it what lies in one piece with it in memory
                begin, end = position // PAGESIZE * PAGESIZE, -(-(position + read) // PAGESIZE) * PAGESIZE
                os.posix_fadvise(self._fd, begin, end - begin, os.POSIX_FADV_DONTNEED)
        note_read(read)
        return read

    def _cached(self, position: int) -> bool:
        """Whether somebody has the end of a window in the page cache; its beginning is there by the reading ahead of the window before."""
        try:
            return os.preadv(self._fd, [bytearray(1)], max(0, position), os.RWF_NOWAIT) > 0
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                raise
            return True  # this file system cannot tell: leave its cache alone

    def seeds(self, start: int, end: int) -> Positions:
        """Positions in ``[start, end)`` where the segment's ``.index`` says that an entry begins: plausible, never proven."""
        found, self._entry = positions_between(self._index(), start, end, self._entry)
        return found

    def indexed(self, offset: int | None) -> tuple[int, int] | None:
        """The last (offset, position) in the ``.index`` that lies below ``offset`` (None: the last of all); plausible, never proven.

        It says that the batch at the position ends with an offset not above the one it names. None where there is no such entry.
        """
        found = last_entry_below(self._index(), None if offset is None else offset - self.base_offset)
        return None if found is None else (self.base_offset + found[0], found[1])

    def _index(self) -> Path:
        return self.path.with_name(segment_file_name(self.base_offset, FileKind.INDEX))
