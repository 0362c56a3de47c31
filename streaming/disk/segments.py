"""The segments of a partition directory, and a read-only look into one of them."""

import contextlib
import errno
import logging
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from streaming.errors import FormatError
from streaming.kafka import names
from streaming.kafka.checkpoints import EpochEntry, parse_leader_epochs
from streaming.kafka.index import ENTRY_BYTES, read_offset_entries
from streaming.kafka.layout import CURRENT_MAGIC, MAGIC_AT
from streaming.kafka.names import FileKind, FileStage, segment_file_name
from streaming.kafka.walk import Bytes, Positions

log = logging.getLogger(__name__)

_INDEX_CHUNK_ENTRIES = 8192
_NO_POSITIONS = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, order=True)
class Identity:
    """Which file it is, whatever its name: compaction puts another one under the same name."""

    device: int
    inode: int


@dataclass(frozen=True, slots=True)
class Segment:
    """A live ``.log`` as it was listed: ``size`` in bytes (the zero tail of a preallocated file included), ``modified_ms`` Unix milliseconds."""

    base_offset: int
    path: Path
    size: int
    modified_ms: int
    identity: Identity


def list_segments(directory: Path) -> tuple[Segment, ...]:
    """The live segments of a partition directory by base offset; the last one is active. Empty while the directory is half made.

    Raises:
        OSError: the directory is gone or cannot be read.
    """
    found = []
    with os.scandir(directory) as entries:
        for entry in entries:
            name = names.parse_segment_file(entry.name)
            if name is None or name.kind is not FileKind.LOG or name.stage is not FileStage.LIVE:
                continue
            with contextlib.suppress(FileNotFoundError):  # renamed since the listing: a deletion, which the next listing shows
                stat = entry.stat()
                identity = Identity(stat.st_dev, stat.st_ino)
                found.append(Segment(name.base_offset, Path(entry.path), stat.st_size, stat.st_mtime_ns // 1_000_000, identity))
    return tuple(sorted(found, key=lambda segment: segment.base_offset))


def read_leader_epochs(directory: Path) -> tuple[EpochEntry, ...]:
    """The entries of ``leader-epoch-checkpoint``, none where there is no such file or it cannot be read."""
    path = directory / names.LEADER_EPOCH_CHECKPOINT
    try:
        return parse_leader_epochs(path.read_bytes())
    except FileNotFoundError:
        return ()
    except (FormatError, OSError) as error:
        log.warning("leader epochs cannot be read", extra={"path": str(path), "error": str(error)})
        return ()


def log_start_offset(directory: Path, segments: tuple[Segment, ...]) -> int:
    """The first offset that the log still serves, as far as its own directory tells: ``log-start-offset-checkpoint`` may raise it further.

    ``leader-epoch-checkpoint`` is the first file to show DeleteRecords, but its first entry may also lie above the start of a log whose older
    batches carry no epoch: it counts only if a batch of magic 2 lies below it.
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
        self._fd = os.open(segment_path, os.O_RDONLY | os.O_CLOEXEC)
        stat = os.fstat(self._fd)
        self.identity = Identity(stat.st_dev, stat.st_ino)

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._fd)

    def size(self) -> int:
        """The file's size in bytes, a preallocated tail included. The cheapest look there is: one lseek."""
        return os.lseek(self._fd, 0, os.SEEK_END)

    def modified_ms(self) -> int:
        """The file's modification time, Unix milliseconds."""
        return os.fstat(self._fd).st_mtime_ns // 1_000_000

    def unlinked(self) -> bool:
        """Whether no name leads to the file any more."""
        return os.fstat(self._fd).st_nlink == 0

    def read(self, position: int, size: int) -> bytes:
        """Up to ``size`` bytes from ``position``; fewer at the end of the file."""
        return os.pread(self._fd, size, position)

    def read_into(self, buffer: Bytes, position: int, *, spare_cache: bool = False) -> int:
        """Fill ``buffer`` from ``position`` on; returns how many bytes there were.

        Nothing is mapped: a mapping of a file that the broker truncates would end this process with SIGBUS.

        Args:
            spare_cache: give pages back that only this read brought into the page cache (for a backlog, which no one else is reading).
        """
        target = [buffer.data]
        if spare_cache and not self._cached(target, position):
            read = os.preadv(self._fd, target, position)
            os.posix_fadvise(self._fd, position, read, os.POSIX_FADV_DONTNEED)
            return read
        return os.preadv(self._fd, target, position)

    def _cached(self, target: list[memoryview], position: int) -> bool:
        try:
            return os.preadv(self._fd, target, position, os.RWF_NOWAIT) > 0
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                raise
            return True  # this file system cannot tell: leave its cache alone

    def seeds(self, start: int, end: int) -> Positions:
        """Positions in ``[start, end)`` where the segment's ``.index`` says that an entry begins: plausible, never proven."""
        path = self.path.with_name(segment_file_name(self.base_offset, FileKind.INDEX))
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # absent on a fresh segment, renamed with a deleted one: the walk does without
            return _NO_POSITIONS
        try:
            return _positions(fd, start, end)
        finally:
            os.close(fd)


def _positions(index_fd: int, start: int, end: int) -> Positions:
    entry, last, found = _first_entry_after(index_fd, start), 0, []
    while True:
        data = os.pread(index_fd, _INDEX_CHUNK_ENTRIES * ENTRY_BYTES, entry * ENTRY_BYTES)
        positions = read_offset_entries(data, last).positions
        found.append(positions)
        entry += len(positions)
        if len(positions) < _INDEX_CHUNK_ENTRIES or positions[-1] >= end:
            break
        last = int(positions[-1])
    all_found = np.concatenate(found)
    return all_found[(all_found >= start) & (all_found < end)]


def _first_entry_after(index_fd: int, position: int) -> int:
    """Binary search for an entry at or a little before ``position``; the zero tail counts as "after"."""
    low, high = 0, os.lseek(index_fd, 0, os.SEEK_END) // ENTRY_BYTES
    while low < high:
        middle = (low + high) // 2
        at = int.from_bytes(os.pread(index_fd, 4, middle * ENTRY_BYTES + 4), "big")
        if 0 < at < position:
            low = middle + 1
        else:
            high = middle
    return low
