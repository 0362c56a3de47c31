"""The records inside a batch of magic 2 (`DefaultRecord`)."""

from dataclasses import dataclass

from streaming.errors import FormatError
from streaming.kafka.batches import RecordBatch
from streaming.kafka.compression import decompress
from streaming.kafka.varint import read_varint, read_varlong

MAX_RECORDS_BYTES = 64 << 20
"""Most bytes that a batch is opened to. A broker takes 1 MiB compressed by default; the logs read here hold small records."""


@dataclass(frozen=True, slots=True)
class Header:
    """A header of a record; the name is UTF-8."""

    name: bytes
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Record:
    """One record; `timestamp` in Unix milliseconds."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


def read_records(batch: RecordBatch, limit: int = MAX_RECORDS_BYTES) -> tuple[Record, ...]:
    """All records of a batch, opened to at most `limit` bytes.

    Raises:
        FormatError: the records section is damaged, or grows beyond `limit`.
    """
    if batch.records_count == 0:  # compaction leaves empty batches behind, without a records section
        return ()
    data = decompress(batch.codec, batch.payload, limit)
    records = []
    position = 0
    for _ in range(batch.records_count):
        length, start = read_varint(data, position)
        position = start + length
        if length < 0 or position > len(data):
            raise FormatError("record longer than its batch", start)
        records.append(_record(batch, data[start:position]))
    if position != len(data):
        raise FormatError("bytes behind the last record", position)
    return tuple(records)


def _record(batch: RecordBatch, data: bytes) -> Record:
    timestamp_delta, position = read_varlong(data, 1)  # behind the attributes, which are not used
    offset_delta, position = read_varint(data, position)
    key, position = _field(data, position)
    value, position = _field(data, position)
    count, position = read_varint(data, position)
    headers = []
    for _ in range(count):
        name, position = _field(data, position)
        content, position = _field(data, position)
        if name is None:
            raise FormatError("header without a name", position)
        headers.append(Header(name, content))
    if count < 0 or position != len(data):
        raise FormatError("record does not end where its length says", position)
    timestamp = batch.max_timestamp if batch.is_log_append_time else batch.base_timestamp + timestamp_delta
    return Record(batch.base_offset + offset_delta, timestamp, key, value, tuple(headers))


def _field(data: bytes, position: int) -> tuple[bytes | None, int]:
    """A field led by its length, -1 for null, and the position behind it."""
    length, start = read_varint(data, position)
    if length < 0:
        if length != -1:
            raise FormatError("negative length in a record", position)
        return None, start
    if length > len(data) - start:
        raise FormatError("field longer than its record", position)
    return data[start : start + length], start + length
