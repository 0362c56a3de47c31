"""What files beside the segments say of producers and transactions: producer snapshots, and indexes of aborted transactions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from streaming.broker.disk.opening import INDEX_BYTES, PRODUCERS_BYTES, Calling, read_small
from streaming.broker.disk.segment_files import Segment
from streaming.errors import FormatError
from streaming.kafka.formats import names
from streaming.kafka.formats.names import FileKind, FileStage, segment_file_name
from streaming.kafka.formats.producer_snapshot import ProducerState, read_producer_snapshot
from streaming.kafka.formats.segment_indexes import ABORTED, read_aborted_columns

_ENDING = f".{FileKind.SNAPSHOT}"


def list_producer_snapshots(directory: Path) -> tuple[SnapshotFile, ...]:
    """List all producer snapshots, the oldest first. Raises OSError."""
    found = []
    with Calling(directory), os.scandir(directory) as entries:
        for entry in entries:
            if not entry.name.endswith(_ENDING):  # cheaper than parsing the names of all files
                continue
            name = names.parse_segment_file(entry.name)
            if name is not None and name.kind is FileKind.SNAPSHOT and name.stage is FileStage.LIVE:
                found.append(SnapshotFile(name.base_offset, Path(entry.path)))
    return tuple(sorted(found))


@dataclass(frozen=True, slots=True, order=True)
class SnapshotFile:
    """A live ``.snapshot``: the state before ``offset``."""

    offset: int
    path: Path

    @classmethod
    def beside(cls, segment: Segment) -> SnapshotFile:
        """The snapshot that a broker writes when a segment begins."""
        return cls(segment.base_offset, segment.path.with_name(segment_file_name(segment.base_offset, FileKind.SNAPSHOT)))


def nearest_snapshot(files: Sequence[SnapshotFile], begin: int, upto: int) -> tuple[ProducerSnapshot | None, list[str]]:
    """The newest sound snapshot of these offsets, and the errors of newer ones. ``files``: of `list_producer_snapshots`."""
    return first_sound(file for file in reversed(files) if begin <= file.offset <= upto)


@dataclass(frozen=True, slots=True)
class ProducerSnapshot:
    """The content of a producer snapshot; ``modified_ms`` is the file's time in Unix milliseconds."""

    offset: int
    modified_ms: int
    states: tuple[ProducerState, ...]

    @property
    def opened(self) -> dict[int, int]:
        """The transactions that are open at its offset: first offset by producer id."""
        return {one.producer_id: one.current_txn_first_offset for one in self.states if one.current_txn_first_offset >= 0}


def first_sound(files: Iterable[SnapshotFile]) -> tuple[ProducerSnapshot | None, list[str]]:
    """The first snapshot that can be read, and the errors of those before it."""
    doubts: list[str] = []
    for file in files:
        try:
            return load_producer_snapshot(file), doubts
        except (FormatError, OSError) as error:
            doubts.append(f"{file.path}: {error}: an older snapshot or the log itself is used instead")
    return None, doubts


def load_producer_snapshot(file: SnapshotFile) -> ProducerSnapshot:
    """Read a producer snapshot.

    Raises:
        FormatError: it is damaged, or a broker is still writing it.
        OSError: it cannot be read, or is gone.
    """
    states = read_producer_snapshot(read_small(file.path, PRODUCERS_BYTES))
    with Calling(file.path):
        modified_ms = file.path.stat().st_mtime_ns // 1_000_000
    if states is None:
        raise FormatError("producer snapshot is not all there")
    return ProducerSnapshot(file.offset, modified_ms, states)


def aborted_transactions(segments: Sequence[Segment], upto: int) -> NDArray[np.void]:
    """The aborted transactions that end in one of ``segments`` and may have data below the offset ``upto``, as records of `ABORTED`.

    The producer snapshots of a partition directory: a broker's producer state at some offsets of the log.

    A transaction is in the index of the segment that holds its marker, and may have begun long before. An entry whose last stable offset is
    at ``upto`` or above shows that no later one has data below it (`TransactionIndex.collectAbortedTxns`), so later files are not read.

    Raises:
        FormatError: an index is of a later version, or larger than any.
        OSError: an index is there and cannot be read.
    """
    found = []
    for segment in segments:
        entries = read_aborted_columns(_read(segment))
        if len(entries):
            found.append(entries)
            if int(entries["last_stable_offset"].max()) >= upto:
                break
    return np.concatenate(found) if found else np.empty(0, ABORTED)


def _read(segment: Segment) -> bytes:
    """The index of a segment, empty if it has none: most have not."""
    path = segment.path.with_name(segment_file_name(segment.base_offset, FileKind.TXNINDEX))
    paths = (path.with_name(f"{path.name}.{FileStage.SWAP}"), path) if segment.swap else (path,)
    for one in paths:
        try:
            return read_small(one, INDEX_BYTES)
        except FileNotFoundError:
            continue
    return b""
