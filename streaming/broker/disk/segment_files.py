"""Lists the segments of a partition directory, and reads one of them."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import resource
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from mmap import PAGESIZE
from pathlib import Path
from typing import NamedTuple, Self

from streaming.broker.disk.index_file import last_entry_below, last_entry_upto, positions_between
from streaming.broker.disk.opening import EPOCHS_BYTES, Calling, ThreadCalls, check_may_stay, note_read, open_file, read_small, written_ns
from streaming.errors import FormatError
from streaming.kafka.formats import names
from streaming.kafka.formats.checkpoint_files import EpochEntry, parse_leader_epochs
from streaming.kafka.formats.layout import (
    CURRENT_MAGIC,
    HEADER_BYTES,
    LENGTH_AT,
    MAGIC_AT,
    has_right_crc,
    read_base_offset,
    read_entry_head,
)
from streaming.kafka.formats.names import FileKind, FileStage, segment_file_name
from streaming.kafka.scan.headers import plain_size
from streaming.kafka.scan.walk import Bytes, Positions

log = logging.getLogger(__name__)

_LOG_NAMES = (".log", ".log.swap", ".cleaned", ".log.deleted")

_INDEXES = (FileKind.INDEX, FileKind.TIMEINDEX, FileKind.TXNINDEX)

_MOST_LISTINGS = 10
"""So often a directory is listed again in which files are renamed all the time; a cleaner does that once in seconds."""

MOST_HOLES = 64
"""A file with more holes than this is taken for written to its end: a preallocated one has one hole."""

LARGE_BYTES = 8 << 10
"""Only the headers of batches of this size are read: a call for each costs less than to copy so many bytes."""

_FEW_HEADERS = 16
"""So many calls are worth a try, whatever the size of the batches."""

Stamp = tuple[int, int]
"""The stamp of a directory: it changes whenever something was created, renamed or removed in it."""

STAMP_RELIABLE_MS = 2_000
"""A directory's time shows every change only if it is older than the clock's resolution (some milliseconds) when the listing begins."""


def list_segments(directory: Path) -> tuple[Segment, ...]:
    """List the segments of a partition directory by base offset; the last one is active. Empty while the directory is half created.

    Between the renames of a compaction (`LocalLog.replaceSegments`) a segment exists under its ``.swap`` name: it counts as live, and
    instead of the one that it replaces. A start after a crash completes the renames so, too, unless a ``.cleaned`` file of it or of one
    before it, be it of an index, shows that not all of them were made: then it deletes the ``.swap``
    (`LogLoader.removeTempFilesAndCollectSwapFiles`).
    Of other segments that it replaces, see `streaming.broker.disk.locate.without_replaced`.

    A listing takes no moment alone. A segment that gets its own name back meanwhile may be found under neither, and its records would be
    missing without a trace. So where files are being replaced or deleted, two listings have to be equal.

    Raises:
        OSError: the directory is gone or cannot be read.
    """
    segments, moving = _listed(directory)
    for _ in range(_MOST_LISTINGS if moving else 0):
        before, (segments, _) = segments, _listed(directory)
        if [(each.path, each.identity) for each in segments] == [(each.path, each.identity) for each in before]:
            break
    return segments


@dataclass(frozen=True, slots=True, order=True)
class FileIdentity:
    """The identity of a file, whatever its name: compaction puts another file under the same name."""

    device: int
    inode: int


@dataclass(frozen=True, slots=True)
class Segment:
    """A ``.log`` from a listing.

    ``size`` in bytes (the zero tail of a preallocated file included), ``modified_ms`` Unix milliseconds; ``swap``: it exists under its
    ``.swap`` name. An agent may have many logs, and a log many segments, so a segment stores no path of its own.
    """

    base_offset: int
    directory: Path
    swap: bool
    size: int
    modified_ms: int
    identity: FileIdentity

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self.directory / self._name

    @property
    def _name(self) -> str:
        name = segment_file_name(self.base_offset, FileKind.LOG)
        return f"{name}.{FileStage.SWAP}" if self.swap else name

    def open(self) -> OpenSegment:
        """Open the file that was listed. Raises OSError; FileNotFoundError if another file has its name by now."""
        return OpenSegment(f"{self.directory}/{self._name}", self.base_offset, self.identity)


class OpenSegment:
    """An open ``.log``. It stays readable when Kafka renames or unlinks it. Close it, or use `with`: else it keeps disk space occupied."""

    __slots__ = ("_entry", "_fd", "_path", "_reads_ahead", "base_offset", "identity")  # most logs have one

    def __init__(self, segment_path: Path | str, base_offset: int, listed: FileIdentity | None = None, *, stays: bool = False) -> None:
        """Open the file for reading. ``stays``: as long as its log is watched.

        Raises:
            OSError: it cannot be opened, or has to stay and descriptors are short.
            FileNotFoundError: it is another one than was ``listed``.
        """
        self._path = str(segment_path)
        self.base_offset = base_offset
        with Calling(self._path):
            self._fd = open_file(self._path)
            stat = os.fstat(self._fd)
        try:
            if stays:
                check_may_stay(self._fd, self._path)
        except OSError:
            self.close()
            raise
        identity = FileIdentity(stat.st_dev, stat.st_ino)
        if listed not in (None, identity):
            self.close()
            raise another_file(self._path)
        self.identity = listed or identity  # the same object where it was listed: there is one for each log
        self._reads_ahead = True
        self._entry = 0  # in the index: the number of the entry after those that were read last

    @property
    def path(self) -> Path:
        """The path that it was opened at: made when it is asked for, because it takes as much memory as all the rest."""
        return Path(self._path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._fd)

    def size(self) -> int:
        """The file's size in bytes, including a preallocated tail. This is the cheapest check: one lseek."""
        with Calling(self._path):
            return os.lseek(self._fd, 0, os.SEEK_END)

    def is_of_size(self, size: int, calls: ThreadCalls) -> bool:
        """Whether the file has this size. ``calls``: of this thread, which asks many files in turn: see `ThreadCalls.go_on`."""
        calls.go_on(self._path)
        return os.lseek(self._fd, 0, os.SEEK_END) == size

    def stored_end(self, position: int) -> int:
        """Where the last bytes after ``position`` end that the file system stores, ``position`` if it stores none. The size of the file
        where it stores holes too, as in a copy, or does not know them.
        """
        with Calling(self._path):
            end = position
            try:
                for _ in range(MOST_HOLES):
                    end = os.lseek(self._fd, os.lseek(self._fd, end, os.SEEK_DATA), os.SEEK_HOLE)
            except OSError as error:
                if error.errno == errno.ENXIO:  # no data from there on
                    return end
                if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
                    raise
            return os.lseek(self._fd, 0, os.SEEK_END)

    def stored_from(self, position: int) -> int:
        """Where the next bytes from ``position`` on begin that the file system stores; the size of the file if there are none, and
        ``position`` where it stores holes too, or does not know them."""
        with Calling(self._path):
            try:
                return os.lseek(self._fd, position, os.SEEK_DATA)
            except OSError as error:
                if error.errno == errno.ENXIO:
                    return max(position, os.lseek(self._fd, 0, os.SEEK_END))
                if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
                    raise
                return position

    def modified_ms(self) -> int:
        """The file's modification time, Unix milliseconds."""
        with Calling(self._path):
            return os.fstat(self._fd).st_mtime_ns // 1_000_000

    def unlinked(self) -> bool:
        """Whether the file has no name any more."""
        with Calling(self._path):
            return os.fstat(self._fd).st_nlink == 0

    def read(self, position: int, size: int) -> bytes:
        """Up to ``size`` bytes from ``position``; fewer at the end of the file."""
        with Calling(self._path):
            found = os.pread(self._fd, size, position)
        note_read(len(found))
        return found

    def read_growth(self, buffer: Bytes, position: int, anchor: bytes, anchor_position: int) -> int:
        """Fill ``buffer`` from ``position`` on; returns the file's modification time after that, Unix milliseconds.

        -1 if the file ends earlier, or if it does not hold these bytes at ``anchor_position`` any more.
        """
        with Calling(self._path):
            read = os.preadv(self._fd, [buffer.data], position)
            same = os.pread(self._fd, len(anchor), anchor_position) == anchor
            modified_ms = os.fstat(self._fd).st_mtime_ns // 1_000_000
        note_read(read)
        return modified_ms if same and read == len(buffer) else -1

    def read_headers(self, position: int, end: int, anchor: bytes, anchor_position: int) -> tuple[list[bytes], int]:
        """The headers of the batches in ``[position, end)``, as `plain_headers` reads them.

        Returns:
            The headers, and the file's modification time as from `read_growth`, -1 also if there is anything but whole, plain batches.
        """
        with Calling(self._path):
            headers, reached = self._plain_headers(position, end)
            same = reached == end and os.pread(self._fd, len(anchor), anchor_position) == anchor
            modified_ms = os.fstat(self._fd).st_mtime_ns // 1_000_000 if same else -1
        note_read(len(headers) * HEADER_BYTES)
        return headers, modified_ms

    def plain_headers(self, position: int, end: int, *, spare_cache: bool = False) -> tuple[list[bytes], int]:
        """The headers of the plain batches (`plain_size`) from ``position`` to ``end``, or to the end of the last one before that.

        Each is read by a call of its own: of large batches that is the smallest part. So the first one has to be large, and the bytes at
        both ends in the page cache: a disk may take as long for a few bytes as for all.

        Args:
            spare_cache: bring nothing into the page cache besides what is read.

        Returns:
            The headers, and where the last batch ends: before ``end`` if something else follows, or more batches than a call each is worth.
        """
        if spare_cache:
            self._stop_reading_ahead()
        with Calling(self._path):  # the cache is asked before anything is read: that would bring more into it
            # not the last page, which `read_into` asks for: to ask brings a page into the cache
            if not (self._cached(position) and self._cached(end - 1 - PAGESIZE)):
                return [], position
            first = plain_size(os.pread(self._fd, HEADER_BYTES, position))
            return self._plain_headers(position, end) if first >= LARGE_BYTES else ([], position)

    def _plain_headers(self, position: int, end: int) -> tuple[list[bytes], int]:
        headers: list[bytes] = []
        most = _FEW_HEADERS + 2 * (end - position) // LARGE_BYTES
        while position < end and len(headers) < most:
            header = os.pread(self._fd, HEADER_BYTES, position)
            size = plain_size(header)
            if not size:
                break
            headers.append(header)
            position += size
        return headers, position

    def read_into(self, buffer: Bytes, position: int, *, spare_cache: bool = False) -> int:
        """Fill ``buffer`` from ``position`` on; returns the number of bytes read.

        Nothing is mapped: if the broker truncates a mapped file, this process would end with SIGBUS.

        Args:
            spare_cache: release the pages that only this read brought into the page cache (for a backlog, which no one else is reading).
        """
        if spare_cache:
            self._stop_reading_ahead()
        ours = spare_cache and self._cached(min(position + len(buffer), self.size()) - 1) is False
        with Calling(self._path):
            read = os.preadv(self._fd, [buffer.data], position)
            if ours and read:  # a length of 0 would mean the whole file
                # Whole pages: if a page is released in part only, the kernel keeps it, together with the memory that belongs to the same
                # piece.
                begin, end = position // PAGESIZE * PAGESIZE, -(-(position + read) // PAGESIZE) * PAGESIZE
                os.posix_fadvise(self._fd, begin, end - begin, os.POSIX_FADV_DONTNEED)
        note_read(read)
        return read

    def _stop_reading_ahead(self) -> None:
        """A device may read megabytes ahead. Then the end of the next window would seem to be cached for another reader, and would stay."""
        if self._reads_ahead:
            self._reads_ahead = False
            os.posix_fadvise(self._fd, 0, 0, os.POSIX_FADV_RANDOM)

    def _cached(self, position: int) -> bool | None:
        """Whether another reader has the end of a window in the page cache. The beginning is there anyway, because reads go ahead.

        None if this file system cannot report it: then its cache is left alone, and nothing is expected of it.
        """
        before = _blocks_read()
        try:
            # A kernel that has not got the page begins to read it; on a busy machine it may be there before the answer is.
            return os.preadv(self._fd, [bytearray(1)], max(0, position), os.RWF_NOWAIT) > 0 and _blocks_read() == before
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                raise
            return None

    def seeds(self, start: int, end: int) -> Positions:
        """Positions in ``[start, end)`` where an entry begins according to the segment's ``.index``: plausible, but never proven."""
        found, self._entry = positions_between(self.beside(FileKind.INDEX), start, end, self._entry)
        return found

    def indexed(self, offset: int | None) -> tuple[int, int] | None:
        """The last (offset, position) in the ``.index`` below ``offset`` (None: the last of all); plausible, but never proven.

        It means that the batch at the position ends at this offset or before. None if there is no such entry.
        """
        found = last_entry_below(self.beside(FileKind.INDEX), None if offset is None else offset - self.base_offset)
        return None if found is None else (self.base_offset + found[0], found[1])

    def indexed_upto(self, position: int) -> tuple[int, int] | None:
        """The last (offset, position) in the ``.index`` at or before a position; as plausible as that of `indexed`."""
        found = last_entry_upto(self.beside(FileKind.INDEX), position)
        return None if found is None else (self.base_offset + found[0], found[1])

    def proven_at(self, position: int, upto: int | None, most: int) -> int | None:
        """The offset from which on a batch begins at a position of the ``.index``: where one is there, whole, and with a right CRC.

        Of an old format that is the base offset of the segment: the base offset of such a message is inside it. None if no batch is proven.

        Args:
            upto: the last offset that it may have, None for any.
            most: the bytes that it may have.
        """
        head = self.read(position, HEADER_BYTES)
        try:
            entry = read_entry_head(head)
        except FormatError:
            return None
        base_offset = read_base_offset(head)
        if entry is None or not self.base_offset <= base_offset <= entry.last_offset or (upto is not None and entry.last_offset > upto):
            return None
        data = self.read(position, entry.size) if entry.size <= most else b""
        if len(data) < entry.size or not has_right_crc(memoryview(data)):
            return None
        return base_offset if head[MAGIC_AT] == CURRENT_MAGIC else self.base_offset

    def beside(self, kind: FileKind) -> str:
        """The path of another file of the segment."""
        return f"{self._path.rpartition('/')[0]}/{segment_file_name(self.base_offset, kind)}"


def another_file(path: Path | str) -> FileNotFoundError:
    """The error that a file is not there any more, although its name is: compaction, and a new start of a log, put others there."""
    return FileNotFoundError(f"{path} is another file than the one that was listed")


def _blocks_read() -> int:
    """How much disks have read for this thread, in blocks of 512 bytes."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_inblock


def _listed(directory: Path) -> tuple[tuple[Segment, ...], bool]:
    """The segments as one listing shows them, and whether files are being replaced or deleted in the directory."""
    found: dict[int, Segment] = {}
    swaps: dict[int, Segment] = {}
    cleaned = []
    moving = False
    with Calling(directory), os.scandir(directory) as entries:
        for entry in entries:
            if not entry.name.endswith(_LOG_NAMES):  # three of four files: cheaper than parsing their names
                continue
            name = names.parse_segment_file(entry.name)
            if name is None:
                continue
            if name.stage is FileStage.CLEANED:
                cleaned.append(name.base_offset)
            if name.kind is not FileKind.LOG:
                continue
            moving |= name.stage is not FileStage.LIVE
            if name.stage not in (FileStage.LIVE, FileStage.SWAP):
                continue
            try:
                stat = entry.stat()
            except FileNotFoundError:  # renamed after the listing
                moving = True
                continue
            identity = FileIdentity(stat.st_dev, stat.st_ino)
            swap = name.stage is FileStage.SWAP
            modified_ms = stat.st_mtime_ns // 1_000_000
            segment = Segment(name.base_offset, directory, swap, stat.st_size, modified_ms, identity)
            (swaps if swap else found)[name.base_offset] = segment
    for base_offset, segment in swaps.items():
        if base_offset not in found or base_offset < min(cleaned, default=base_offset + 1):
            found[base_offset] = segment
    return tuple(found[base_offset] for base_offset in sorted(found)), moving


class SegmentKey(NamedTuple):
    """Distinguishes a closed segment from every other one: compaction puts another file under the same name."""

    base_offset: int
    size: int
    modified_ms: int
    device: int
    inode: int

    @classmethod
    def of(cls, segment: Segment) -> Self:
        """The key of a segment from a listing."""
        return cls(segment.base_offset, segment.size, segment.modified_ms, segment.identity.device, segment.identity.inode)


def indexes_alone(directory: Path, segments: Iterable[Segment]) -> list[str]:
    """The names of live indexes whose segments are not there, sorted: of a log at rest these were lost.

    A broker deletes such files when it starts (`LogLoader.loadSegmentFiles`). It leaves one if it dies in the moment of a deletion.

    Raises:
        OSError: the directory is gone or cannot be read.
    """
    there = {each.base_offset for each in segments}
    with Calling(directory), os.scandir(directory) as entries:
        found = {entry.name: names.parse_segment_file(entry.name) for entry in entries}
    return sorted(
        name
        for name, parsed in found.items()
        if parsed is not None and parsed.kind in _INDEXES and parsed.stage is FileStage.LIVE and parsed.base_offset not in there
    )


def deleted_segments(directory: Path) -> dict[int, tuple[FileIdentity, int]]:
    """The segment files that Kafka has deleted but not unlinked yet (``.log.deleted``), with their identities and sizes, by base offset.

    Raises:
        OSError: the directory is gone or cannot be read.
    """
    found: dict[int, tuple[FileIdentity, int]] = {}
    with Calling(directory), os.scandir(directory) as entries:
        for entry in entries:
            name = names.parse_segment_file(entry.name)
            if name is not None and name.kind is FileKind.LOG and name.stage is FileStage.DELETED:
                with contextlib.suppress(FileNotFoundError):  # it has been unlinked
                    stat = entry.stat()
                    found[name.base_offset] = FileIdentity(stat.st_dev, stat.st_ino), stat.st_size
    return found


@dataclass(frozen=True, slots=True)
class SegmentListing:
    """The segments of a directory when it had this stamp, and its `log_start_offset`: every file of a directory that this is read from
    is replaced when it changes.
    """

    stamp: Stamp
    segments: tuple[Segment, ...]
    log_start: int


def directory_stamp(directory: Path, now_ms: int) -> Stamp | None:
    """The stamp of a directory, to be taken before it is listed; None if it is not reliable yet. Raises OSError."""
    with Calling(directory):
        stat = directory.stat()
    return stamp_of(stat, now_ms)


def stamp_of(stat: os.stat_result, now_ms: int) -> Stamp | None:
    """The stamp of a directory from its stat result; None if it is not reliable yet."""
    return (stat.st_ino, stat.st_mtime_ns) if now_ms - stat.st_mtime_ns // 1_000_000 > STAMP_RELIABLE_MS else None


def file_stamp(path: Path) -> tuple[FileIdentity, int]:
    """The identity of the file at a path, and its size in bytes, without opening it. Raises OSError."""
    with Calling(path):
        stat = path.stat()
    return FileIdentity(stat.st_dev, stat.st_ino), stat.st_size


def log_start_offset(directory: Path, segments: tuple[Segment, ...], stored: Sequence[EpochEntry] | None = None) -> int:
    """The first offset that the log still serves, by its own directory: ``log-start-offset-checkpoint`` may raise it further.

    ``leader-epoch-checkpoint`` is the first file that shows DeleteRecords. But its first entry may be above the start of the log, too: if
    older batches have no epoch, or if compaction had left nothing below it when the replica was made, which begins the file with the first
    batch that it gets. So it is used only if a batch of magic 2 is below it. And a broker that is killed in the minute after DeleteRecords
    starts at the log's old beginning again, with the same epochs: its next checkpoint, which has every log that starts inside a segment
    (`LogManager.checkpointLogStartOffsetsInDir`), shows that it does not know of them. So the file is used only until that is written.

    Args:
        stored: its entries, if they were read already.
    """
    first, epochs = segments[0], read_leader_epochs(directory) if stored is None else stored
    if not epochs or epochs[0].start_offset <= first.base_offset:
        return first.base_offset
    if has_later_checkpoint(directory):
        return first.base_offset
    try:
        file = first.open()
    except OSError:  # being deleted: the next listing begins further on
        return first.base_offset
    with file:
        head = file.read(0, MAGIC_AT + 1)
    with_epoch = len(head) > MAGIC_AT and head[MAGIC_AT] == CURRENT_MAGIC
    start = epochs[0].start_offset
    return start if with_epoch and int.from_bytes(head[:LENGTH_AT]) < start else first.base_offset


def read_leader_epochs(directory: Path) -> tuple[EpochEntry, ...]:
    """Read the entries of ``leader-epoch-checkpoint``; none if there is no such file, it may not be read, or it is not understood.

    Raises:
        OSError: it cannot be read now. It decides where a log was truncated, so it would be wrong to continue without it.
    """
    path = f"{directory}/{names.LEADER_EPOCH_CHECKPOINT}"
    try:
        return parse_leader_epochs(read_small(path, EPOCHS_BYTES))
    except FileNotFoundError:
        return ()
    except (FormatError, PermissionError) as error:
        log.warning("leader epochs cannot be read", extra={"path": path, "error": str(error)})
        return ()


def has_later_checkpoint(directory: Path) -> bool:
    """Whether the log starts of the log dir were written after the leader epochs of this log."""
    return written_ns(directory.parent / names.LOG_START_OFFSET_CHECKPOINT) > written_ns(directory / names.LEADER_EPOCH_CHECKPOINT) >= 0
