"""The indexes of a segment: their valid entries as tables, and the entries that contradict the log.

The index of an active segment is preallocated and may have stale entries of a log that was truncated (`AbstractIndex.truncateToEntries`
forgets entries without erasing them). They come last, and the log proves none of them. They do not count as entries, and are no error.
"""

import numpy as np
from numpy.typing import NDArray

from streaming.broker.disk.kafka_files import FileType, KafkaFile, read_file
from streaming.broker.excerpts.finding import FormatFlaw, Report
from streaming.broker.excerpts.segment_walk import Window
from streaming.errors import FormatError
from streaming.kafka.formats import offset_index, time_index, transaction_index
from streaming.kafka.formats.offset_index import read_offset_entries
from streaming.kafka.formats.time_index import read_time_entries
from streaming.kafka.formats.transaction_index import read_aborted_transactions
from streaming.kafka.scan.headers import Batches, read_headers
from streaming.kafka.scan.index_check import proven_offset_entries, proven_time_entries
from streaming.kafka.scan.walk import Positions
from streaming.terminal.dump.row_table import Numbers, RowTable

_EMPTY = read_headers(np.zeros(0, np.uint8), np.zeros(0, np.int64))


class Skeleton:
    """Grows window by window; 32 bytes for each batch."""

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


_LARGEST_ENTRY_BYTES = time_index.ENTRY_BYTES

SPARSE = (FileType.OFFSET_INDEX, FileType.TIME_INDEX)


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


def check_index(file: KafkaFile, skeleton: Skeleton, report: Report) -> None:
    """Report every entry of an index, of any of the three types, that the log does not prove. Raises OSError and FormatError."""
    data = read_file(file)
    if file.type is FileType.TRANSACTION_INDEX:
        _check_aborted(file, data, skeleton, report)
        return
    proven = _proven(file, data, skeleton)
    size = offset_index.ENTRY_BYTES if file.type is FileType.OFFSET_INDEX else time_index.ENTRY_BYTES
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


def _proven(file: KafkaFile, data: bytes, skeleton: Skeleton) -> NDArray[np.bool_]:
    if file.type is FileType.OFFSET_INDEX:
        return proven_offset_entries(read_offset_entries(data), file.base_offset, skeleton.batches())
    return proven_time_entries(read_time_entries(data), file.base_offset, skeleton.batches())


def _preallocated(file: KafkaFile, data: bytes) -> bool:
    """Whether a broker has not trimmed the index yet: it does so when it rolls the segment, and when it stops."""
    return file.active and not data[-_LARGEST_ENTRY_BYTES:].strip(b"\0")


def _valid(proven: NDArray[np.bool_]) -> int:
    """The number of entries up to the last one that the log proves: the others are stale."""
    found = np.flatnonzero(proven)
    return int(found[-1]) + 1 if len(found) else 0


def _check_aborted(file: KafkaFile, data: bytes, skeleton: Skeleton, report: Report) -> None:
    found, used = read_aborted_transactions(data)
    if used != len(data):
        raise FormatError(f"expected entries of {transaction_index.ENTRY_BYTES} bytes, found one of {len(data) - used}", used)
    for entry, aborted in enumerate(found):
        if (aborted.last_offset, aborted.producer_id) not in skeleton.aborts or aborted.first_offset > aborted.last_offset:
            what = f"expected a marker of producer {aborted.producer_id} at offset {aborted.last_offset}, found none in the log"
            report(FormatFlaw(file.path, entry * transaction_index.ENTRY_BYTES, what))
