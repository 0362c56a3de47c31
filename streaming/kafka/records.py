"""The records inside a batch of magic 2, also of control batches (`DefaultRecord`).

The decompressed records section is a sequence of records::

    length varint (bytes after it) | attributes i8 (0) | timestamp_delta varlong | offset_delta varint | key | value | headers

The length of key and value comes before them as a varint, -1 for null (a null value is a tombstone). Headers are a varint count, then names
(not null) and values in the same way. Deltas count from the batch's base offset and base timestamp.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from streaming.errors import FormatError
from streaming.kafka.decompression import decompress
from streaming.kafka.record_batches import RecordBatch
from streaming.kafka.varint import read_varint, read_varlong

MAX_RECORDS_BYTES = 256 << 20
"""The most bytes to which a batch is decompressed. A broker accepts 1 MiB compressed by default."""


@dataclass(frozen=True, slots=True)
class Header:
    """A header of a record; the name is UTF-8."""

    name: bytes
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Record:
    """One record; `timestamp` in Unix milliseconds, `sequence` of its producer, -1 if there is none."""

    offset: int
    timestamp: int
    sequence: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


def read_records(batch: RecordBatch, limit: int = MAX_RECORDS_BYTES) -> tuple[Record, ...]:
    """All records of a batch, decompressed to at most `limit` bytes. Compaction leaves empty batches, which have none.

    The time of a record is the batch's `max_timestamp` if the topic uses LogAppendTime, otherwise its own. This holds for a batch with a
    delete horizon as well, because compaction has based its deltas on the horizon.

    Raises:
        FormatError: the records section is damaged, or grows beyond `limit`; with the position in the decompressed section.
    """
    if batch.records_count == 0:  # without a records section
        return ()
    data = decompress(batch.codec, batch.payload, limit)
    append_time = batch.max_timestamp if batch.is_log_append_time else None
    base_offset, base_timestamp, has_sequence = batch.base_offset, batch.base_timestamp, batch.base_sequence >= 0
    records = []
    position = 0
    try:
        for _ in range(batch.records_count):
            length, start = read_varint(data, position)
            position = start + length
            if length < 0 or position > len(data):
                raise FormatError("record longer than its batch", start)
            delta, timestamp_delta, key, value, headers = _fields(data, start, position)
            timestamp = base_timestamp + timestamp_delta if append_time is None else append_time
            sequence = batch.sequence_at(delta) if has_sequence else -1
            records.append(Record(base_offset + delta, timestamp, sequence, key, value, headers))
    except IndexError as error:
        raise FormatError("record is cut short", position) from error
    if position != len(data):
        raise FormatError("bytes after the last record", position)
    return tuple(records)


def read_record_times(batch: RecordBatch, limit: int = MAX_RECORDS_BYTES) -> Iterator[tuple[int, int]]:
    """Offset and timestamp of each record, one after the other, as `read_records` has them; what else is in a record is not read.

    Raises:
        FormatError: as `read_records`, as far as it is read.
    """
    data = decompress(batch.codec, batch.payload, limit) if batch.records_count else b""
    append_time = batch.max_timestamp if batch.is_log_append_time else None
    position = 0
    try:
        for _ in range(batch.records_count):
            length, start = read_varint(data, position)
            position = start + length
            timestamp_delta, at = read_varlong(data, start + 1)
            offset_delta, at = read_varint(data, at)
            if not at <= position <= len(data):
                raise FormatError("record longer than its batch", start)
            yield batch.base_offset + offset_delta, batch.base_timestamp + timestamp_delta if append_time is None else append_time
    except IndexError as error:
        raise FormatError("record is cut short", position) from error


def _fields(data: bytes, start: int, end: int) -> tuple[int, int, bytes | None, bytes | None, tuple[Header, ...]]:
    """Offset delta, timestamp delta, key, value and headers of the record in `data[start:end]`."""
    timestamp_delta, position = read_varlong(data, start + 1)  # after the attributes, which are not used
    offset_delta, position = read_varint(data, position)
    key, position = _field(data, position, end)
    value, position = _field(data, position, end)
    headers: tuple[Header, ...] = ()
    if data[position]:
        headers, position = _headers(data, position, end)
    else:  # no headers, in one byte
        position += 1
    if position != end:
        raise FormatError("record does not end where its length says", position)
    return offset_delta, timestamp_delta, key, value, headers


def _headers(data: bytes, position: int, end: int) -> tuple[tuple[Header, ...], int]:
    count, position = read_varint(data, position)
    if not 0 <= count <= end - position:  # each takes two bytes or more
        raise FormatError(f"{count} headers in a record", position)
    headers = []
    for _ in range(count):
        name, position = _field(data, position, end)
        content, position = _field(data, position, end)
        if name is None:
            raise FormatError("header without a name", position)
        headers.append(Header(name, content))
    return tuple(headers), position


def _field(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    """A field with its length before it, -1 for null, and the position after it."""
    length, start = read_varint(data, position)
    if length < 0:
        if length != -1:
            raise FormatError("negative length in a record", position)
        return None, start
    position = start + length
    if position > end:
        raise FormatError("field longer than its record", start)
    return data[start:position], position
