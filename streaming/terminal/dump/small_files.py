"""The files next to the segments as tables: indexes with what contradicts them, checkpoints, producer snapshots, identities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from streaming.broker.disk.kafka_files import FileType, KafkaFile, read_file
from streaming.broker.disk.segment_walk import FormatFlaw, Report, Window
from streaming.errors import FormatError
from streaming.kafka.formats.checkpoint_files import (
    parse_clean_shutdown,
    parse_leader_epochs,
    parse_offset_checkpoint,
    parse_partition_metadata,
    parse_quorum_state,
)
from streaming.kafka.formats.producer_snapshot import ProducerState, read_producer_snapshot
from streaming.kafka.formats.properties import parse_meta_properties
from streaming.kafka.formats.segment_indexes import (
    OFFSET_ENTRY_BYTES,
    TIME_ENTRY_BYTES,
    TRANSACTION_ENTRY_BYTES,
    AbortedTransaction,
    read_aborted_transactions,
    read_offset_entries,
    read_time_entries,
)
from streaming.kafka.scan.headers import Batches, read_headers
from streaming.kafka.scan.soundness import proven_offset_entries, proven_time_entries
from streaming.kafka.scan.walk import Positions
from streaming.terminal.dump.row_table import Cell, Numbers, RowTable, cells, plain

_NULLABLE = frozenset({"current_txn_first_offset"})

_EMPTY = read_headers(np.zeros(0, np.uint8), np.zeros(0, np.int64))

SPARSE = (FileType.OFFSET_INDEX, FileType.TIME_INDEX)


def small_table(file: KafkaFile) -> RowTable:
    """The table of a file that is read at once.

    Raises:
        OSError: it cannot be read.
        FormatError: it does not have the format of its name, or is not complete.
    """
    return _TABLES[file.type](str(file.path), read_file(file))


def _snapshot(path: str, data: bytes) -> RowTable:
    states = read_producer_snapshot(data)
    if states is None:
        raise FormatError(f"expected a whole producer snapshot, found {len(data)} bytes of one", len(data))
    names = (*(field.name for field in fields(ProducerState)), "first_sequence")
    return _numbers("producer", path, names, [[getattr(state, name) for name in names] for state in states])


def _aborted(path: str, data: bytes) -> RowTable:
    names = [field.name for field in fields(AbortedTransaction)]
    return _numbers("aborted_transaction", path, names, [[getattr(each, name) for name in names] for each in _aborted_entries(data)])


def _aborted_entries(data: bytes) -> tuple[AbortedTransaction, ...]:
    found, used = read_aborted_transactions(data)
    if used != len(data):
        raise FormatError(f"expected entries of {TRANSACTION_ENTRY_BYTES} bytes, found one of {len(data) - used}", used)
    return found


def _leader_epochs(path: str, data: bytes) -> RowTable:
    return _numbers(
        "leader_epoch", path, ("epoch", "start_offset"), [(each.epoch, each.start_offset) for each in parse_leader_epochs(data)]
    )


def _offsets(path: str, data: bytes) -> RowTable:
    rows = [(each.topic, each.partition, each.offset) for each in parse_offset_checkpoint(data)]
    return cells("offset_checkpoint", path, ("topic", "partition", "offset"), rows)


def _partition_metadata(path: str, data: bytes) -> RowTable:
    return cells("partition_metadata", path, ("topic_id",), [(parse_partition_metadata(data),)])


def _meta_properties(path: str, data: bytes) -> RowTable:
    return _one("meta_properties", path, parse_meta_properties(data))


def _quorum_state(path: str, data: bytes) -> RowTable:
    return _one("quorum_state", path, parse_quorum_state(data))


def _lock(path: str, data: bytes) -> RowTable:
    return cells("lock", path, ("size",), [(len(data),)])


def _clean_shutdown(path: str, data: bytes) -> RowTable:
    version, epoch = parse_clean_shutdown(data)
    return cells("clean_shutdown", path, ("version", "broker_epoch"), [(version, epoch)])


def _one(kind: str, path: str, value: object) -> RowTable:
    values = plain(value)
    assert isinstance(values, dict)
    return cells(kind, path, tuple(values), [tuple(values.values())])


def _numbers(kind: str, path: str, names: Sequence[str], rows: Sequence[Sequence[Cell]]) -> RowTable:
    columns = np.array(rows, np.int64).reshape(-1, len(names)).T
    return RowTable(
        kind, path, len(rows), tuple(Numbers(name, column, name in _NULLABLE) for name, column in zip(names, columns, strict=True))
    )


_TABLES: dict[FileType, Callable[[str, bytes], RowTable]] = {
    FileType.PRODUCER_SNAPSHOT: _snapshot,
    FileType.TRANSACTION_INDEX: _aborted,
    FileType.LEADER_EPOCHS: _leader_epochs,
    FileType.OFFSET_CHECKPOINT: _offsets,
    FileType.PARTITION_METADATA: _partition_metadata,
    FileType.META_PROPERTIES: _meta_properties,
    FileType.QUORUM_STATE: _quorum_state,
    FileType.BROKER_LOCK: _lock,
    FileType.CLEAN_SHUTDOWN: _clean_shutdown,
}


def is_small(file: KafkaFile) -> bool:
    """Whether `small_table` reads files of this type."""
    return file.type in _TABLES


def index_table(file: KafkaFile, skeleton: Skeleton | None) -> RowTable:
    """The valid entries of an offset or time index; without a log to prove them, all plausible ones.

    Raises OSError.
    """
    data = read_file(file)
    if file.type is FileType.OFFSET_INDEX:
        entries = read_offset_entries(data)
        offsets, others, name = entries.offsets, entries.positions, "position"
    else:
        times = read_time_entries(data)
        offsets, others, name = times.offsets, times.timestamps, "timestamp"
    count = len(offsets)
    if skeleton is not None and _preallocated(file, data):
        count = _valid(_proven(file, data, skeleton))
    columns = (Numbers("offset", offsets[:count] + file.base_offset), Numbers(name, others[:count]))
    return RowTable("offset_entry" if file.type is FileType.OFFSET_INDEX else "time_entry", str(file.path), count, columns)


class Skeleton:
    """Where batches are, with their offsets and largest timestamps: 32 bytes for each. It grows window by window."""

    def __init__(self) -> None:
        self._columns: list[tuple[Positions, ...]] = []  # positions, base offsets, last offsets, largest timestamps
        self.aborts: set[tuple[int, int]] = set()
        """(offset, producer id) of every control batch."""

    def add(self, window: Window) -> None:
        """Add the batches of the next window."""
        batches = window.batches
        positions = batches.positions + window.position
        self._columns.append((positions, batches.base_offset, batches.last_offset, batches.max_timestamp))
        control = batches.control
        if control.any():
            producers = batches.headers["producer_id"][control].tolist()
            self.aborts.update(zip(batches.base_offset[control].tolist(), producers, strict=True))

    def batches(self) -> Batches:
        """Positions in the file, offsets and largest timestamps of all batches; the other columns are empty."""
        if len(self._columns) != 1:  # combined once, however many indexes there are
            columns = list(zip(*self._columns, strict=True)) or [()] * 4
            self._columns = [tuple(np.concatenate((_EMPTY.positions, *column)) for column in columns)]
        positions, base, last, timestamps = self._columns[0]
        return Batches(
            positions=positions,
            headers=_EMPTY.headers,
            base_offset=base,
            last_offset=last,
            size=_EMPTY.size,
            records=_EMPTY.records,
            max_timestamp=timestamps,
            leader_epoch=_EMPTY.leader_epoch,
            attributes=_EMPTY.attributes,
            magic=_EMPTY.magic,
        )


def _preallocated(file: KafkaFile, data: bytes) -> bool:
    """Whether a broker has not trimmed the index yet: it does so when it rolls the segment, and when it stops."""
    return file.active and not data[-TIME_ENTRY_BYTES:].strip(b"\0")


def _valid(proven: NDArray[np.bool_]) -> int:
    """The number of entries up to the last one that the log proves: the others are stale."""
    found = np.flatnonzero(proven)
    return int(found[-1]) + 1 if len(found) else 0


def _proven(file: KafkaFile, data: bytes, skeleton: Skeleton) -> NDArray[np.bool_]:
    if file.type is FileType.OFFSET_INDEX:
        return proven_offset_entries(read_offset_entries(data), file.base_offset, skeleton.batches())
    return proven_time_entries(read_time_entries(data), file.base_offset, skeleton.batches())


def check_index(file: KafkaFile, skeleton: Skeleton, report: Report) -> None:
    """Report every entry of an index, of any of the three types, that the log does not prove. Raises OSError and FormatError.

    The indexes of a segment: their valid entries as tables, and the entries that contradict the log. The index of an active segment
    is preallocated and may have stale entries of a log that was truncated (`AbstractIndex.truncateToEntries` forgets entries without
    erasing them). They come last, and the log proves none of them. They do not count as entries, and are no error.
    """
    data = read_file(file)
    if file.type is FileType.TRANSACTION_INDEX:
        _check_aborted(file, data, skeleton, report)
        return
    proven = _proven(file, data, skeleton)
    size = OFFSET_ENTRY_BYTES if file.type is FileType.OFFSET_INDEX else TIME_ENTRY_BYTES
    preallocated = _preallocated(file, data)
    valid = _valid(proven) if preallocated else len(proven)
    for entry in np.flatnonzero(~proven[:valid]).tolist():
        report(
            FormatFlaw(file.path, entry * size, "expected an entry that names a batch of the log, found one that the log does not prove")
        )
    if preallocated:
        return
    if rest := len(data) % size:
        report(FormatFlaw(file.path, len(data) - rest, f"expected entries of {size} bytes, found one of {rest}"))
    beyond = data[len(proven) * size :]
    if beyond.strip(b"\0"):
        report(FormatFlaw(file.path, len(proven) * size, "expected entries that ascend, or the end of the file, found other bytes"))


def _check_aborted(file: KafkaFile, data: bytes, skeleton: Skeleton, report: Report) -> None:
    for entry, aborted in enumerate(_aborted_entries(data)):
        if (aborted.last_offset, aborted.producer_id) not in skeleton.aborts or aborted.first_offset > aborted.last_offset:
            what = f"expected a marker of producer {aborted.producer_id} at offset {aborted.last_offset}, found none in the log"
            report(FormatFlaw(file.path, entry * TRANSACTION_ENTRY_BYTES, what))
