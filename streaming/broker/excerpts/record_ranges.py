"""Reads the records of ranges of offsets, each of them a segment as it was when the read was planned, as Arrow columns."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from streaming.broker.disk.locate import without_replaced
from streaming.broker.disk.scanning import window as window_buffer
from streaming.broker.disk.segment_files import Segment, list_segments
from streaming.broker.disk.segment_walk import FormatFlaw, SegmentReader, Window
from streaming.broker.excerpts.excerpt_transactions import TransactionFates
from streaming.broker.excerpts.excerpt_walk import OnDamage, RecordDamage
from streaming.common.arrays import Flags, Longs
from streaming.errors import FormatError, LogDirError
from streaming.kafka.formats.decompression import decompress
from streaming.kafka.formats.entries import read_entry_records
from streaming.kafka.formats.layout import CONTROL_BIT, CURRENT_MAGIC, HEADER_BYTES, PREFIX_BYTES, TIMESTAMP_TYPE_BIT, TRANSACTIONAL_BIT
from streaming.kafka.formats.records import MAX_RECORDS_BYTES, Record
from streaming.kafka.scan.headers import Batches, find_flaws
from streaming.kafka.scan.record_fields import (
    PADDING,
    HeaderFields,
    RecordFields,
    Spans,
    read_fields,
    slice_records,
    take_records,
    walk_records,
)
from streaming.kafka.scan.walk import Bytes, Positions

log = logging.getLogger(__name__)

NO_TIMESTAMP_TYPE, CREATE_TIME, LOG_APPEND_TIME = -1, 0, 1
"""`TimestampType.id`."""

_MICROS = 1000  # in a millisecond
_MOST_MS = (2**63 - 1) // _MICROS
_MOST_BYTES = 2**31 - 1

GROUP_BYTES = 8 << 20
"""Sections are opened together until they have so many bytes, or so many records: the more there are, the less each record costs."""

GROUP_RECORDS = 64 << 10

WHOLE_BYTES = 32 << 20
"""A section that is larger when it is open is read piece by piece."""

_MOST_PLAIN_BYTES = 1 << 30  # positions in Arrow's columns have 31 bits

_NOWHERE = np.empty(0, np.int64)

ROWS_BYTES = 2 << 20
"""A batch of Arrow rows is made of about so many bytes of the log, ..."""

MOST_ROWS = 32 << 10
"""... and of no more records than this. That much stays in the processor's cache."""

_OLD_ATTRIBUTES_AT = 17
_LEAST_COST = 64  # bytes that a record takes in memory, whatever it holds

_MOST_TRIES = 3
"""So often segments are listed again that were renamed before they could be opened."""


class RangeReader:
    """Reads ranges one after the other. Its two buffers are all that it holds of the files. Only one thread uses it.

    Args:
        schema: the wanted columns, those of `RecordArrow`.
        fails_on_loss: whether it is an error if what was planned is deleted before it is read; else it is logged, and the rest comes.
    """

    def __init__(self, schema: pa.Schema, damage: RecordDamage, *, fails_on_loss: bool = True) -> None:
        self._schema = schema
        self._damage = damage
        self._fails_on_loss = fails_on_loss
        self._buffer = window_buffer()
        self._ahead: Bytes | None = None

    def read(self, wanted: RecordRange) -> Iterator[pa.RecordBatch]:
        """The rows of a range.

        Raises:
            LogDirError: a segment is gone, or cannot be read.
            FormatError: there is damage, and it makes the query fail.
        """
        try:
            yield from self._read(wanted)
        except OSError as error:
            raise LogDirError(
                f"{wanted.directory}: {error.strerror or error} while offsets from {wanted.begin} on were read: "
                "run the query again once the log dir can be read"
            ) from error

    def _read(self, wanted: RecordRange) -> Iterator[pa.RecordBatch]:
        for _ in range(_MOST_TRIES):
            segments = without_replaced(list_segments(wanted.directory), self._buffer)
            if not segments or segments[0].base_offset > wanted.begin:
                wanted = self._without_deleted(wanted, segments)
            ends = [*(each.base_offset for each in segments[1:]), wanted.end]
            try:
                for number, segment in enumerate(segments):
                    if segment.base_offset < wanted.end and ends[number] > wanted.begin:
                        yield from self._read_one(wanted, segments, number)
                        wanted = replace(wanted, begin=max(wanted.begin, ends[number]))
            except FileNotFoundError:  # renamed between listing and opening
                continue
            return
        self._without_deleted(wanted, segments)

    def _without_deleted(self, wanted: RecordRange, segments: Sequence[Segment]) -> RecordRange:
        """What is left of a range. Raises LogDirError if a loss is one."""
        begins = segments[0].base_offset if segments else wanted.end
        rest = min(begins, wanted.end) if begins > wanted.begin else wanted.end  # else files of it could not be opened
        there = f"its log begins at {begins} now" if segments else "it has no segment now"
        deleted = f"{wanted.directory}: offsets {wanted.begin} to {rest - 1} were deleted after the read was planned, {there}"
        if self._fails_on_loss:
            raise LogDirError(
                f"{deleted}: run the query again, or let it go on with failOnDataLoss=false; a copy of the log dir does not change"
            )
        # in the text: in a Python worker of Spark no formatter is set up that writes other fields
        log.warning("deleted: %s; the query goes on, as failOnDataLoss is false", deleted)
        return replace(wanted, begin=rest)

    def _read_one(self, wanted: RecordRange, segments: Sequence[Segment], number: int) -> Iterator[pa.RecordBatch]:
        segment, growing = segments[number], number == len(segments) - 1
        rows = RecordArrow(self._schema, wanted.topic, wanted.partition)
        opener = RecordOpener(rows, self._damage, segment.path, wanted.begin, wanted.end)
        fates: TransactionFates | None = None
        following = segment.base_offset
        with SegmentReader.of(segment, self._report, self._buffer, growing=growing, crcs=True) as reader:
            for window in reader.windows(reader.proven_start(wanted.begin)):
                if (window.batches.base_offset >= wanted.end).all():
                    return
                beyond = None if growing else segments[number + 1].base_offset
                kept, following = self._sound(wanted, window, reader, following, beyond)
                batches = window.batches.take(kept)
                if wanted.committed and fates is None and len(batches) and (batches.attributes & TRANSACTIONAL_BIT).any():
                    fates = self._fates(wanted, segments[number:], window.position)
                if fates is not None and len(batches):
                    batches = batches.take(~fates.aborted(batches))
                data = (batches.attributes & CONTROL_BIT == 0) & (batches.records > 0)
                yield from opener.open(window.buffer, window.position, batches if data.all() else batches.take(data))

    def _fates(self, wanted: RecordRange, segments: Sequence[Segment], position: int) -> TransactionFates:
        if self._ahead is None:
            self._ahead = window_buffer()
        return TransactionFates(segments, position, wanted.stop, self._ahead, self._damage.found)

    def _report(self, flaw: FormatFlaw) -> None:
        self._damage.found(flaw.path, flaw.position, flaw.what)

    def _sound(self, wanted: RecordRange, window: Window, reader: SegmentReader, following: int, beyond: int | None) -> tuple[Flags, int]:
        """Which batches of a window are in the range and may be opened, and the offset after them; damage of others is reported.

        Args:
            following: the smallest offset that the first batch may have.
            beyond: the base offset of the next segment, None in the active one.
        """
        batches, path = window.batches, reader.file.path
        kept: Flags = (batches.last_offset >= wanted.begin) & (batches.base_offset < wanted.end)
        expected = np.concatenate([[following], batches.last_offset + 1])
        for item in np.flatnonzero(_beyond_next(batches, expected, beyond)).tolist():  # an offset is not covered by the CRC
            own = f"offsets {batches.base_offset[item]} to {batches.last_offset[item]}"
            follows = f"{batches.base_offset[item + 1]} follows" if item + 1 < len(batches) else f"{beyond} begins the next segment"
            self._damage.found(path, window.position + int(batches.positions[item]), f"{own}, where {follows}")
            kept[item], expected[item + 1] = False, expected[item]
        placed: Flags = (expected[:-1] >= wanted.begin) & (expected[:-1] < wanted.end)  # by the batch before: its own offset may be wrong
        for flaw in find_flaws(batches, np.arange(len(batches)), expected[:-1]):
            if kept[flaw.item] or placed[flaw.item]:
                self._damage.found(path, window.position + int(batches.positions[flaw.item]), flaw.what)
                kept[flaw.item] = False
        for item in window.wrong[kept[window.wrong]].tolist():
            if beyond is None and item == len(batches) - 1 and _is_unfinished(reader, window, batches):
                kept[item] = False
                continue
            what = "expected bytes with the CRC that the batch names, found others"
            self._damage.found(path, window.position + int(batches.positions[item]), what)
            kept[item] = self._damage.on_damage is not OnDamage.LEAVE_OUT
        return kept, int(expected[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRange:
    """Offsets of a partition from ``begin`` up to ``end``, which is not among them.

    ``stop``: the offset at which what is known to be replicated ends; markers after it do not count. ``committed``: leave out what belongs
    to aborted transactions. ``size``: about the bytes that are read.
    """

    directory: Path
    topic: str
    partition: int
    begin: int
    end: int
    stop: int
    committed: bool
    size: int


class RecordArrow:
    """Makes batches of Arrow rows of one partition.

    Records as Arrow columns: those of Spark's Kafka source, by name (`KafkaRecordToRowConverter`). What is not wanted is not copied.
    A record without headers has null there. A message of magic 0 has the timestamp -1 and the timestamp type -1, as in Kafka's
    consumer.

    Args:
        schema: the wanted columns.
    """

    def __init__(self, schema: pa.Schema, topic: str, partition: int) -> None:
        self._schema = schema
        self._topic = topic
        self._partition = partition
        self.headers = "headers" in schema.names
        """Whether headers are wanted."""

    def of_fields(self, data: Bytes, fields: RecordFields, stamps: Stamps) -> pa.RecordBatch:
        """The rows of records that were found in a buffer of less than 2 GiB. The buffer is not needed afterwards."""
        made: dict[str, Callable[[], pa.Array]] = {
            "key": lambda: binary(data, fields.keys),
            "value": lambda: binary(data, fields.values),
            "headers": lambda: self._headers(data, fields.headers),
        }
        return self._rows(stamps, made)

    def of_records(self, records: Sequence[Record], types: Sequence[int]) -> pa.RecordBatch:
        """The rows of records that were opened one by one; ``types`` are their timestamp types."""
        numbers = np.array([(record.offset, record.timestamp) for record in records], np.int64).reshape(-1, 2)
        stamps = Stamps(numbers[:, 0], numbers[:, 1], np.array(types, np.int64))
        headers = [[{"key": _text(each.name), "value": each.value} for each in record.headers] or None for record in records]
        made: dict[str, Callable[[], pa.Array]] = {
            "key": lambda: pa.array([record.key for record in records], pa.binary()),
            "value": lambda: pa.array([record.value for record in records], pa.binary()),
            "headers": lambda: pa.array(headers, self._schema.field("headers").type),
        }
        return self._rows(stamps, made)

    def _rows(self, stamps: Stamps, made: dict[str, Callable[[], pa.Array]]) -> pa.RecordBatch:
        count = len(stamps.offsets)
        made |= {
            "topic": lambda: pa.repeat(pa.scalar(self._topic, pa.string()), count),
            "partition": lambda: pa.repeat(pa.scalar(self._partition, pa.int32()), count),
            "offset": lambda: _numbers(stamps.offsets, pa.int64()),
            "timestamp": lambda: _numbers(np.clip(stamps.timestamps, -_MOST_MS, _MOST_MS) * _MICROS, self._schema.field("timestamp").type),
            "timestampType": lambda: _numbers(stamps.types.astype(np.int32), pa.int32()),
        }
        return pa.RecordBatch.from_arrays([made[name]() for name in self._schema.names], schema=self._schema)

    def _headers(self, data: Bytes, headers: HeaderFields | None) -> pa.Array:
        assert headers is not None, "they were asked for"
        kind = self._schema.field("headers").type
        names, contents = binary(data, headers.names), binary(data, headers.contents)
        try:
            names = names.cast(pa.string())
        except pa.ArrowInvalid:  # not UTF-8: as Java reads it
            names = pa.array([_text(each) for each in names.to_pylist()], pa.string())
        pairs = pa.StructArray.from_arrays([names, contents], fields=list(kind.value_type))
        ends = np.zeros(len(headers.counts) + 1, np.int32)
        np.cumsum(headers.counts, out=ends[1:])
        return pa.Array.from_buffers(kind, len(headers.counts), [_validity(headers.counts > 0), pa.py_buffer(ends)], children=[pairs])


@dataclass(frozen=True, slots=True)
class Stamps:
    """The offset of each record, its timestamp (Unix milliseconds, -1 none), and whose time that is."""

    offsets: Longs
    timestamps: Longs
    types: Longs


def binary(data: Bytes, spans: Spans) -> pa.Array:
    """The bytes of fields that follow each other in a buffer of less than 2 GiB, as an array of their own."""
    count = len(spans.starts)
    if not count:
        return pa.array([], pa.binary())
    bounds = np.empty(2 * count, np.int32)  # of an array of fields and of what lies between them, by turns
    bounds[0::2] = spans.starts
    bounds[1::2] = spans.starts + np.maximum(spans.sizes, 0)
    by_turns = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [None, pa.py_buffer(bounds), pa.py_buffer(data)])
    taken = by_turns.take(_numbers(np.arange(0, 2 * count, 2, dtype=np.int32), pa.int32()))
    there = spans.sizes >= 0
    return taken if there.all() else pa.Array.from_buffers(pa.binary(), count, [_validity(there), *taken.buffers()[1:]])


def _numbers(values: np.ndarray, kind: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def _validity(there: Flags) -> pa.Buffer | None:
    return None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace")


class RecordOpener:
    """Opens the batches of one segment; gives out the records from the offset ``begin`` up to ``end``, which is not among them.

    Opens the batches of a window of a segment into Arrow rows: what is sound many batches at once, everything else record by record.
    """

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
        """A batch whose records are taken singly: memory holds some MiB of them. Damage in it is found out here."""
        at, size = int(batches.positions[item]), int(batches.size[item])
        entry, kind = buffer[at : at + size].data, _timestamp_type(buffer, at, int(batches.magic[item]), int(batches.attributes[item]))
        rows: list[Record] = []
        taken = 0
        try:
            if self._damage.on_damage is OnDamage.LEAVE_OUT:
                # read all records of a batch, and keep none. Raises FormatError where one cannot be read
                for _ in read_entry_records(entry, limit=MAX_RECORDS_BYTES, most=MAX_RECORDS_BYTES) or ():
                    pass
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


def open_sections(buffer: Bytes, batches: Batches) -> Iterator[Sections]:
    """The sections of all batches in order; the buffer holds the whole batches, at their positions.

    Opens the records sections of batches: many in one buffer, so that their records are found together. A section that does not grow
    beyond some MiB is opened whole. Everything else is opened on its own, record by record: messages of old formats, what grows
    larger, and what is damaged.
    """
    kinds = np.where(batches.magic < CURRENT_MAGIC, -1, np.minimum(batches.codec, 1)).astype(np.int64)
    kinds[(kinds == 0) & (batches.size > _MOST_PLAIN_BYTES)] = -1
    changes = np.flatnonzero(np.diff(kinds)) + 1
    for begin, end in zip([0, *changes.tolist()], [*changes.tolist(), len(batches)], strict=True):
        if begin == end:
            continue
        if kinds[begin] < 0:
            yield from (_alone(item) for item in range(begin, end))
        elif kinds[begin] == 0:
            yield from _plain(buffer, batches, begin, end)
        else:
            yield from _compressed(buffer, batches, begin, end)


@dataclass(frozen=True, slots=True)
class Sections:
    """The open sections of the batches ``items``: each at ``starts`` to ``ends`` of ``data``, which is padded for `walk_records`.

    ``data`` is None for one batch that has to be opened record by record.
    """

    items: slice
    data: Bytes | None
    starts: Positions
    ends: Positions


def _alone(item: int) -> Sections:
    return Sections(slice(item, item + 1), None, _NOWHERE, _NOWHERE)


def _plain(buffer: Bytes, batches: Batches, begin: int, end: int) -> Iterator[Sections]:
    """Batches without a codec: their sections are in the buffer already."""
    starts, ends = batches.positions + HEADER_BYTES, batches.positions + batches.size
    so_many = np.cumsum(batches.records)
    while begin < end:
        by_bytes = int(np.searchsorted(ends[begin:end], starts[begin] + GROUP_BYTES))
        by_records = int(np.searchsorted(so_many[begin:end], so_many[begin] + GROUP_RECORDS))
        following = begin + max(1, min(by_bytes, by_records))
        items = slice(begin, following)
        first, last = int(starts[begin]), int(ends[following - 1])
        if last + PADDING <= len(buffer):
            yield Sections(items, buffer, starts[items], ends[items])
        else:
            yield Sections(items, _padded([buffer[first:last].data]), starts[items] - first, ends[items] - first)
        begin = following


def _padded(parts: list[bytearray] | list[memoryview]) -> Bytes:
    return np.frombuffer(b"".join([*parts, bytes(PADDING)]), np.uint8)


def _compressed(buffer: Bytes, batches: Batches, begin: int, end: int) -> Iterator[Sections]:
    codecs, records = batches.codec.tolist(), batches.records.tolist()
    starts, ends = (batches.positions + HEADER_BYTES).tolist(), (batches.positions + batches.size).tolist()
    made: list[bytearray] = []
    size, many, first = 0, 0, begin
    for item in range(begin, end):
        try:
            section = decompress(codecs[item], buffer[starts[item] : ends[item]].data, WHOLE_BYTES)
        except FormatError:  # damaged, or too large: opened record by record, it is read as far as possible, with what is wrong
            if made:
                yield _joined(made, slice(first, item))
            yield _alone(item)
            made, size, many, first = [], 0, 0, item + 1
            continue
        made.append(section)
        size, many = size + len(section), many + records[item]
        if size >= GROUP_BYTES or many >= GROUP_RECORDS:
            yield _joined(made, slice(first, item + 1))
            made, size, many, first = [], 0, 0, item + 1
    if made:
        yield _joined(made, slice(first, end))


def _joined(made: list[bytearray], items: slice) -> Sections:
    ends: Longs = np.cumsum([len(each) for each in made], dtype=np.int64)
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
    return Sections(items, _padded(made), starts, ends)


def _stamps(batches: Batches, fields: RecordFields) -> Stamps:
    """The stamps of records. In a batch with LogAppendTime, every record has the batch's largest timestamp."""
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


def _beyond_next(batches: Batches, expected: Longs, beyond: int | None) -> Flags:
    """Which batches reach beyond what follows them: a batch that continues well where they are, or the next segment."""
    found: Flags = np.zeros(len(batches), np.bool_) if beyond is None else batches.last_offset >= beyond
    following, before = batches.base_offset[1:], expected[: max(0, len(batches) - 1)]
    # of two that contradict each other, one that continues without a gap is right
    found[:-1] |= (batches.last_offset[:-1] >= following) & (following >= before) & (batches.base_offset[:-1] != before)
    return found


def _is_unfinished(reader: SegmentReader, window: Window, batches: Batches) -> bool:
    """Whether zeros follow the last batch: then a preallocated file ends here, and a writer may be in the middle of this batch."""
    after = reader.read(window.position + int(batches.positions[-1] + batches.size[-1]), PREFIX_BYTES)
    return bool(after) and not any(after)
