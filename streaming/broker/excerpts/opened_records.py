"""Opens the batches of a window of a segment into Arrow rows: what is sound many batches at once, everything else record by record."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from streaming.broker.excerpts.damaged_records import OnDamage, RecordDamage
from streaming.broker.excerpts.record_arrow import CREATE_TIME, LOG_APPEND_TIME, NO_TIMESTAMP_TYPE, RecordArrow, Stamps
from streaming.broker.excerpts.record_sections import Sections, open_sections
from streaming.common.arrays import Flags
from streaming.errors import FormatError
from streaming.kafka.formats.entries import read_entry_records
from streaming.kafka.formats.layout import CURRENT_MAGIC, TIMESTAMP_TYPE_BIT
from streaming.kafka.formats.records import MAX_RECORDS_BYTES, Record
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.record_fields import RecordFields, read_fields, slice_records, take_records
from streaming.kafka.scan.record_walk import walk_records
from streaming.kafka.scan.walk import Bytes

ROWS_BYTES = 2 << 20
"""A batch of Arrow rows is made of about so many bytes of the log, ..."""

MOST_ROWS = 32 << 10
"""... and of no more records than this. That much stays in the processor's cache."""

_OLD_ATTRIBUTES_AT = 17
_LEAST_COST = 64  # bytes that a record takes in memory, whatever it holds


class RecordOpener:
    """Opens the batches of one segment; gives out the records from the offset ``begin`` up to ``end``, which is not among them."""

    def __init__(self, rows: RecordArrow, damage: RecordDamage, path: Path, begin: int, end: int) -> None:
        self._rows = rows
        self._damage = damage
        self._path = path
        self._begin = begin
        self._end = end

    def open(self, buffer: Bytes, position: int, batches: Batches) -> Iterator[pa.RecordBatch]:
        """The rows of some batches, which lie in a buffer that begins at a position of the file.

        Raises:
            FormatError: one is damaged, and damage makes the query fail.
        """
        for sections in open_sections(buffer, batches):
            if sections.data is None:
                yield from self._one_by_one(buffer, position, batches, sections.items.start)
            else:
                yield from self._together(buffer, position, batches, sections)

    def _together(self, buffer: Bytes, position: int, batches: Batches, sections: Sections) -> Iterator[pa.RecordBatch]:
        data, own = sections.data, batches.take(sections.items)
        assert data is not None
        walked = walk_records(data, sections.starts, sections.ends, own.records)
        fields = read_fields(data, walked, headers=self._rows.headers)
        if fields.sound.all():
            yield from self._rows_of(data, own, fields)
            return
        first = 0
        for broken in [*np.flatnonzero(~fields.sound).tolist(), len(own)]:
            between = (fields.section >= first) & (fields.section < broken)
            yield from self._rows_of(data, own, take_records(fields, between))
            if broken < len(own):
                yield from self._one_by_one(buffer, position, own, broken)
            first = broken + 1

    def _rows_of(self, data: Bytes, batches: Batches, fields: RecordFields) -> Iterator[pa.RecordBatch]:
        stamps = _stamps(batches, fields)
        inside: Flags = (stamps.offsets >= self._begin) & (stamps.offsets < self._end)
        if not inside.all():
            fields = take_records(fields, inside)
            stamps = Stamps(stamps.offsets[inside], stamps.timestamps[inside], stamps.types[inside])
        begin = 0
        while begin < len(stamps.offsets):
            near = int(np.searchsorted(fields.keys.starts, fields.keys.starts[begin] + ROWS_BYTES))
            some = slice(begin, max(begin + 1, min(near, begin + MOST_ROWS)))
            own = Stamps(stamps.offsets[some], stamps.timestamps[some], stamps.types[some])
            yield self._rows.of_fields(data, slice_records(fields, some), own)
            begin = some.stop

    def _one_by_one(self, buffer: Bytes, position: int, batches: Batches, item: int) -> Iterator[pa.RecordBatch]:
        """A batch whose records are taken singly: memory holds some MiB of them. What is wrong with it is found out here."""
        at, size = int(batches.positions[item]), int(batches.size[item])
        entry, kind = buffer[at : at + size].data, _timestamp_type(buffer, at, int(batches.magic[item]), int(batches.attributes[item]))
        rows: list[Record] = []
        taken = 0
        try:
            if self._damage.on_damage is OnDamage.LEAVE_OUT:
                _check(entry)
            for record in read_entry_records(entry, limit=MAX_RECORDS_BYTES, most=MAX_RECORDS_BYTES) or ():
                if not self._begin <= record.offset < self._end:
                    continue
                rows.append(record)
                taken += _LEAST_COST + len(record.key or b"") + len(record.value or b"")
                if taken >= ROWS_BYTES:
                    yield self._rows.of_records(rows, [kind] * len(rows))
                    rows, taken = [], 0
        except FormatError as error:
            self._damage.found(self._path, position + at, f"expected records as Kafka writes them: {error}")
        if rows:
            yield self._rows.of_records(rows, [kind] * len(rows))


def _check(entry: memoryview) -> None:
    """Read all records of a batch, and keep none. Raises FormatError where one cannot be read."""
    for _ in read_entry_records(entry, limit=MAX_RECORDS_BYTES, most=MAX_RECORDS_BYTES) or ():
        pass


def _stamps(batches: Batches, fields: RecordFields) -> Stamps:
    """Of a batch with LogAppendTime, every record has the batch's largest timestamp."""
    section = fields.section
    appended = (batches.attributes & TIMESTAMP_TYPE_BIT) != 0
    timestamps = batches.headers["base_timestamp"].astype(np.int64)[section] + fields.timestamp_deltas
    if appended.any():
        timestamps = np.where(appended[section], batches.max_timestamp[section], timestamps)
    types = np.where(appended, LOG_APPEND_TIME, CREATE_TIME)[section]
    return Stamps(batches.base_offset[section] + fields.offset_deltas, timestamps, types)


def _timestamp_type(buffer: Bytes, position: int, magic: int, attributes: int) -> int:
    if magic == 0:
        return NO_TIMESTAMP_TYPE
    if magic < CURRENT_MAGIC:
        attributes = int(buffer[position + _OLD_ATTRIBUTES_AT])
    return LOG_APPEND_TIME if attributes & TIMESTAMP_TYPE_BIT else CREATE_TIME
