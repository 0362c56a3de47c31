"""Reads from the metadata log on disk who led each partition before the newest snapshot.

A broker keeps older snapshots and segments for a week (``metadata.max.retention.ms``) or 100 MiB. They are replayed in slices, because in a
cluster with many changes the whole replay takes longer than anything else may wait.
"""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from streaming.broker.disk.calls import Calling
from streaming.broker.disk.opening import opened
from streaming.broker.disk.segment_files import OpenSegment, Segment, list_segments
from streaming.errors import FormatError, TooLargeError
from streaming.kafka.formats.cluster_image import ClusterImage
from streaming.kafka.formats.entry_head import read_size
from streaming.kafka.formats.layout import PREFIX_BYTES
from streaming.kafka.formats.names import MetadataSnapshot, parse_metadata_snapshot
from streaming.kafka.formats.record_batches import RecordBatch, read_batch
from streaming.kafka.formats.records import MAX_OPENED_BYTES

_READ_BYTES = 1 << 20
_MOST_BYTES = 16 << 20  # a batch of this log has at most 8 MiB


class MetadataPast:
    """Replays the log up to ``upto``, from the oldest state after which it is complete.

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
