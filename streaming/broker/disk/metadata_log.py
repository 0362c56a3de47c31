"""Reads ``__cluster_metadata-0``: at first the newest snapshot and the log after it, later only what was appended; and who led before."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from streaming.broker.disk.logdirs import LogDir
from streaming.broker.disk.opening import NAMES_BYTES, Calling, opened, read_small
from streaming.broker.disk.segment_files import OpenSegment, Segment, list_segments
from streaming.errors import FormatError, TooLargeError
from streaming.kafka.formats.checkpoint_files import QuorumState, parse_quorum_state
from streaming.kafka.formats.cluster_image import ClusterImage
from streaming.kafka.formats.layout import PREFIX_BYTES, read_size
from streaming.kafka.formats.names import METADATA_TOPIC, QUORUM_STATE, MetadataSnapshot, parse_metadata_snapshot
from streaming.kafka.formats.records import MAX_OPENED_BYTES, RecordBatch, read_batch

_READ_BYTES = 1 << 20
_MOST_BYTES = 16 << 20  # a batch of this log has at most 8 MiB (`KafkaRaftClient.MAX_BATCH_SIZE_BYTES`)

_ANCHOR_BYTES = 128  # they include the last batch's header with its CRC, if that batch has the usual small size


class MetadataLog:
    """The metadata log of one broker, in whichever of its log dirs it is.

    Args:
        log_dirs: iterated again at each call, so a log dir that has become unavailable is not read.
    """

    def __init__(self, log_dirs: Iterable[LogDir]) -> None:
        self._log_dirs = log_dirs
        self._file: OpenSegment | None = None
        self._position = 0
        self._size = -1  # the size of the file when it was read to its end
        self._anchor = b""  # the bytes directly before the position
        self._begun = 0  # the offset at which the image began

    def restart(self) -> None:
        """Begin again at the next call of `advance`."""
        if self._file is not None:
            self._file.close()
        self._go_to(None)

    def advance(self, image: ClusterImage | None) -> ClusterImage:
        """Advance the image over everything that was appended since the last call; None begins a new image.

        Raises:
            FileNotFoundError: the metadata log is in none of the log dirs.
            OSError: it cannot be read (its snapshots have mode 0400: only the broker's own user reads them).
            FormatError: it is not understood. Call `restart` before the next attempt, and begin a new image.
        """
        if self._file is not None and self._file.path.parent not in _directories(self._log_dirs):
            raise FileNotFoundError(f"{self._file.path.parent.parent} is unavailable")
        while True:
            if image is None or self._file is None or self._cut_off(self._file):
                self.restart()
                image = self._begin()
            size = self._opened.size()
            if size == self._size:
                if not self._roll():
                    return image
                continue
            data = self._opened.read(self._position, _MOST_BYTES)
            used = image.apply(memoryview(data))
            if used:
                self._position += used
                self._anchor = data[max(0, used - _ANCHOR_BYTES) : used]
            else:
                self._size = size

    def past(self) -> MetadataPast | None:
        """A reader of the metadata on disk from before the image of `advance` began; None if the image began at the start of the log.

        Raises:
            OSError: the metadata log is gone.
        """
        return MetadataPast(self._directory(), self._begun) if self._begun else None

    def modified_ms(self) -> int:
        """When the log that `advance` reads was last written, Unix milliseconds: a running broker writes it twice a second."""
        return self._opened.modified_ms()

    def can_begin_again(self) -> bool:
        """Whether the newest snapshot may be read: a starting process needs it, but not one that has read the log from earlier on."""
        try:
            directory = self._directory()
            snapshots = list_metadata_snapshots(directory)
            return not snapshots or os.access(directory / max(snapshots).name, os.R_OK)
        except OSError:  # the code that reads the log reports it
            return True

    def _cut_off(self, file: OpenSegment) -> bool:
        """Whether the bytes that were read are gone: the node followed a leader that lost, and the image may have uncommitted records."""
        anchored = file.read(self._position - len(self._anchor), len(self._anchor)) == self._anchor
        return file.size() < self._position or not anchored or file.unlinked()

    @property
    def _opened(self) -> OpenSegment:
        assert self._file is not None
        return self._file

    def _directory(self) -> Path:
        return _find(_directories(self._log_dirs))

    def _begin(self) -> ClusterImage:
        directory = self._directory()
        snapshots = list_metadata_snapshots(directory)
        image = load_metadata_snapshot(directory, max(snapshots)) if snapshots else ClusterImage()
        segments = list_segments(directory)
        if not segments:
            raise FileNotFoundError(f"no segment in {directory}")
        below = [segment for segment in segments if segment.base_offset <= image.next_offset]
        first = (below or segments)[-1 if below else 0]
        self._go_to(first.open())
        self._begun = image.next_offset
        return image

    def _roll(self) -> bool:
        """Continue in the next segment, if there is one."""
        later = [segment for segment in list_segments(self._opened.path.parent) if segment.base_offset > self._opened.base_offset]
        if not later:
            return False
        if self._opened.size() != self._size:
            self._size = -1  # it grew before it was rolled: read it to its end first
            return True
        self._opened.close()
        self._go_to(later[0].open())
        return True

    def _go_to(self, file: OpenSegment | None) -> None:
        self._file, self._position, self._size, self._anchor = file, 0, -1, b""


def _directories(log_dirs: Iterable[LogDir]) -> list[Path]:
    return [log_dir.path / f"{METADATA_TOPIC}-0" for log_dir in log_dirs]


class MetadataPast:
    """Replays the log up to ``upto``, from the oldest state after which it is complete.

    Reads from the metadata log on disk who led each partition before the newest snapshot. A broker keeps older snapshots and segments
    for a week (``metadata.max.retention.ms``) or 100 MiB. They are replayed in slices, because in a cluster with many changes the
    whole replay takes longer than anything else may wait.

    Args:
        upto: an offset of the log at which a newer image begins.
        clock: seconds.
    """

    def __init__(self, directory: Path, upto: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._directory = directory
        self._upto = upto
        self._clock = clock
        self._image: ClusterImage | None = None
        self._file: OpenSegment | None = None
        self._position = 0
        self._read_bytes = _READ_BYTES

    def advance(self, seconds: float) -> ClusterImage | None:
        """Continue for about this long. Returns the image at ``upto`` or somewhat later, None if there is more to read.

        If the disk has no older metadata, the image is empty.

        Raises:
            OSError: a file cannot be read, or is gone.
            FormatError: the log is not understood.
        """
        ends = self._clock() + seconds
        while True:
            if self._image is None:
                self._image = self._begin()
            elif self._image.next_offset >= self._upto or not self._read():
                self.close()
                return self._image
            if self._clock() >= ends:
                return None

    def close(self) -> None:
        """Close the open file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _begin(self) -> ClusterImage:
        segments = list_segments(self._directory)
        first = segments[0].base_offset if segments else self._upto
        if not first:
            image = ClusterImage()
        else:
            whole = [snapshot for snapshot in list_metadata_snapshots(self._directory) if first <= snapshot.end_offset < self._upto]
            if not whole:
                return ClusterImage()
            image = load_metadata_snapshot(self._directory, min(whole))
        self._open(next(segment for segment in reversed(segments) if segment.base_offset <= image.next_offset))
        return image

    def _read(self) -> bool:
        """Read a piece of the log. Returns whether there is more."""
        if self._file is None or self._image is None:
            return False
        data = self._file.read(self._position, self._read_bytes)
        used = self._image.apply(memoryview(data))
        self._position += used
        if used:
            self._read_bytes = _READ_BYTES
        elif len(data) == self._read_bytes < _MOST_BYTES:
            self._read_bytes = _MOST_BYTES  # a batch that is larger than a piece
        else:
            later = [segment for segment in list_segments(self._directory) if segment.base_offset > self._file.base_offset]
            if not later:
                raise FormatError(f"metadata log ends at offset {self._image.next_offset}, {self._upto} is expected")
            self._open(later[0])
        return True

    def _open(self, segment: Segment) -> None:
        self.close()
        self._file, self._position = segment.open(), 0


def list_metadata_snapshots(directory: Path) -> list[MetadataSnapshot]:
    """The finished snapshots of a metadata log that cover any of it, in no order. Raises OSError.

    The one that a node is formatted with is left out: it may be readable for the broker alone, and the log itself has what is in it.
    """
    with Calling(directory):
        found = [parse_metadata_snapshot(path.name) for path in directory.iterdir()]
    return [snapshot for snapshot in found if snapshot is not None and not snapshot.covers_nothing]


def load_metadata_snapshot(directory: Path, snapshot: MetadataSnapshot) -> ClusterImage:
    """The image in a snapshot. Raises OSError and FormatError."""
    path = directory / snapshot.name
    with opened(path) as fd:
        return ClusterImage.from_batches(_batches(path, fd), snapshot.end_offset)


def _batches(path: Path, fd: int) -> Iterator[RecordBatch]:
    """The batches of a snapshot, one by one: it may be as large as a cluster. Raises FormatError if they do not fill the file."""
    position = 0
    while head := _read(path, fd, position, PREFIX_BYTES):
        size = read_size(head) if len(head) == PREFIX_BYTES else 0
        if size > MAX_OPENED_BYTES:
            raise TooLargeError(f"a batch of {size} bytes, more than {MAX_OPENED_BYTES}", position)
        batch = read_batch(memoryview(_read(path, fd, position, max(size, PREFIX_BYTES))))
        if batch is None:
            raise FormatError("metadata snapshot is not whole", position)
        yield batch
        position += size


def _read(path: Path, fd: int, position: int, size: int) -> bytes:
    with Calling(path):
        return os.pread(fd, size, position)


def _find(directories: Iterable[Path]) -> Path:
    for candidate in directories:
        with Calling(candidate):
            if candidate.is_dir():
                return candidate
    raise FileNotFoundError(
        f"no {METADATA_TOPIC}-0 in {', '.join(str(candidate.parent) for candidate in directories)}: name its log dir too"
    )


def read_quorum_state(log_dirs: Iterable[LogDir]) -> QuorumState:
    """Read the quorum state of the broker with these log dirs.

    Raises:
        OSError: it is in none of them, or cannot be read.
        FormatError: it is not understood.
    """
    return parse_quorum_state(read_small(_find(_directories(log_dirs)) / QUORUM_STATE, NAMES_BYTES))
