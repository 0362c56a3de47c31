"""Record batches of magic 2, one by one, and the records inside, also of control batches (`DefaultRecordBatch`, `DefaultRecord`)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from streaming.errors import FormatError, TooLargeError
from streaming.kafka.formats.decompression import decompressed
from streaming.kafka.formats.layout import (
    CHECKED_FROM,
    CODEC_MASK,
    CONTROL_BIT,
    CURRENT_MAGIC,
    DELETE_HORIZON_BIT,
    HEADER_BYTES,
    MAGIC_AT,
    PREFIX_BYTES,
    TIMESTAMP_TYPE_BIT,
    crc32c,
)
from streaming.kafka.formats.wire import Bytes, read_varint, read_varlong

_PREFIX = struct.Struct(">qi")
_HEADER = struct.Struct(">qiibIhiqqqhii")
_MOST_SEQUENCE = 0x7FFFFFFF

MAX_RECORDS_BYTES = 256 << 20
"""The most bytes to which a batch is decompressed whose records a user wants to see. A broker accepts 1 MiB compressed by default."""

MAX_OPENED_BYTES = 64 << 20
"""The most bytes to which a batch of coordinators or of the metadata log is decompressed."""

MAX_OPENED_RECORDS = 1 << 20
"""The most records of such a batch. A broker writes at most `max.message.bytes` at once, 1 MiB by default, and none below 18 bytes."""

MAX_TIMED_BYTES = 8 << 20
"""How far a batch of a user's topic is decompressed for the time of one of its records. Beyond it the time is not known."""

LEAST_RECORD_BYTES = 7
"""The bytes of a record without key, value and headers: each field has at least one."""

_MOST_HEAD_BYTES = 5 + 1 + 10 + 5  # length, attributes, and the deltas of timestamp and offset


def read_records(batch: RecordBatch, limit: int = MAX_OPENED_BYTES, most: int = MAX_OPENED_RECORDS) -> Iterator[Record]:
    """The records of a batch, one after the other. It is decompressed as they are taken: memory holds one of them and a piece of the rest.

    Compaction leaves empty batches, which have none. The time of a record is the batch's `max_timestamp` if the topic uses LogAppendTime,
    otherwise its own. This holds for a batch with a delete horizon as well, because compaction has based its deltas on the horizon.

    Args:
        batch: of magic 2.
        limit: the most bytes to which it is decompressed.
        most: the most records.

    Raises:
        FormatError: the records section is damaged, with the position in the decompressed section. Records before it have been given out.
        TooLargeError: it grows beyond `limit`, or has more records.
    """
    window = _opened(batch, limit, most)
    append_time = batch.max_timestamp if batch.is_log_append_time else None
    base_offset, base_timestamp, has_sequence = batch.base_offset, batch.base_timestamp, batch.base_sequence >= 0
    try:
        for _ in range(batch.records_count):
            start, end = _next_record(window, whole=True)
            delta, timestamp_delta, key, value, headers = _fields(window.data, start, end)
            window.at = end
            timestamp = base_timestamp + timestamp_delta if append_time is None else append_time
            sequence = batch.sequence_at(delta) if has_sequence else -1
            yield Record(base_offset + delta, timestamp, sequence, key, value, headers)
        if window.has(1):
            raise FormatError("bytes after the last record", window.at)
    except IndexError as error:
        raise FormatError("record is cut short", window.position) from error
    except FormatError as error:
        raise _placed(error, window) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordBatch:
    """One batch: the fields of its header, and its records section as it is in the log.

    Times are Unix milliseconds; leader epoch, producer fields and sequence are -1 where there are none. `base_timestamp` is the time of the
    first record only if the batch is not empty and has no delete horizon.
    """

    size: int
    base_offset: int
    last_offset: int
    partition_leader_epoch: int
    crc: int
    attributes: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int
    payload: memoryview

    @property
    def next_offset(self) -> int:
        """The offset after this batch."""
        return self.last_offset + 1

    @property
    def codec(self) -> int:
        """Codec id of the records section."""
        return self.attributes & CODEC_MASK

    @property
    def is_control(self) -> bool:
        """Whether it has control records: markers of transactions, or the metadata quorum's own records."""
        return bool(self.attributes & CONTROL_BIT)

    @property
    def is_log_append_time(self) -> bool:
        """Whether `max_timestamp` is the time of every record in it."""
        return bool(self.attributes & TIMESTAMP_TYPE_BIT)

    @property
    def delete_horizon(self) -> int | None:
        """The time from which compaction may remove the tombstones and markers in it; None if it has set none."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None

    @property
    def last_sequence(self) -> int:
        """Sequence of the record at `last_offset`, -1 if there is none."""
        return self.sequence_at(self.last_offset - self.base_offset)

    def sequence_at(self, offset_delta: int) -> int:
        """Sequence of the record at `base_offset + offset_delta`, -1 if there is none. After 2^31 - 1, sequences continue at 0."""
        return -1 if self.base_sequence < 0 else (self.base_sequence + offset_delta) & _MOST_SEQUENCE


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


def _opened(batch: RecordBatch, limit: int, most: int) -> MovingWindow:
    """The records section; what cannot hold as many records as the batch's header counts is refused before the first one is made."""
    count = batch.records_count
    if not count:  # without a records section
        return MovingWindow(iter(()))
    if count > most:
        raise TooLargeError(f"{count} records in a batch, more than {most}")
    if not batch.codec and count * LEAST_RECORD_BYTES > len(batch.payload):
        raise FormatError(f"{count} records cannot lie in {len(batch.payload)} bytes: record is cut short", 0)
    return MovingWindow(decompressed(batch.codec, batch.payload, limit))


class MovingWindow:
    """Moves over pieces of bytes; it lets go of what is behind it, so a caller that reads on holds little at once.

    The bytes ``data[at:]`` are at hand. ``before``: how many bytes lay before ``data``. The caller moves ``at``, beyond ``data`` too.
    The errors of `pieces` are raised where the next piece is taken.
    """

    __slots__ = ("_pieces", "at", "before", "data")

    def __init__(self, pieces: Iterator[Bytes]) -> None:
        self._pieces = pieces
        self.data: Bytes = next(pieces, b"")
        self.at = 0
        self.before = 0

    @property
    def position(self) -> int:
        """The position of ``at`` from the beginning of all pieces."""
        return self.before + self.at

    def has(self, size: int) -> bool:
        """Whether so many bytes are left; afterwards they are at hand. If not, all that are left are at hand."""
        if len(self.data) - self.at >= size:
            return True
        while self.at >= len(self.data):  # nothing of it is needed any more
            piece = next(self._pieces, None)
            if piece is None:
                return size <= 0 and self.at == len(self.data)
            self.before += len(self.data)
            self.at -= len(self.data)
            self.data = piece
        missing = size - (len(self.data) - self.at)
        if missing <= 0:
            return True
        joined = bytearray(self.data[self.at :])
        while missing > 0 and (piece := next(self._pieces, None)) is not None:
            joined += piece
            missing -= len(piece)
        self.before += self.at
        self.data, self.at = joined, 0
        return missing <= 0


def _next_record(window: MovingWindow, *, whole: bool) -> tuple[int, int]:
    """Where the next record begins, after its length, and where it ends; all of it is at hand, or as much as its offset and time take."""
    if len(window.data) - window.at < _MOST_HEAD_BYTES:  # a call for each record would cost more than this
        window.has(_MOST_HEAD_BYTES)
    length, start = read_varint(window.data, window.at)
    if length < 0:
        raise FormatError("record longer than its batch", start)
    if whole:
        before, head = window.before + window.at, start - window.at
        if not window.has(head + length):
            raise FormatError("record longer than its batch", head + before - window.before)
        start = head + before - window.before
    return start, start + length


def _fields(data: Bytes, start: int, end: int) -> tuple[int, int, bytes | None, bytes | None, tuple[Header, ...]]:
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


def _field(data: Bytes, position: int, end: int) -> tuple[bytes | None, int]:
    """A field with its length before it, -1 for null, and the position after it."""
    length, start = read_varint(data, position)
    if length < 0:
        if length != -1:
            raise FormatError("negative length in a record", position)
        return None, start
    position = start + length
    if position > end:
        raise FormatError("field longer than its record", start)
    return bytes(data[start:position]), position


def _headers(data: Bytes, position: int, end: int) -> tuple[tuple[Header, ...], int]:
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


def _placed(error: FormatError, window: MovingWindow) -> FormatError:
    """The same error with its position in the whole section."""
    return error if error.position is None else FormatError(error.what, error.position + window.before)


def read_batch(data: memoryview, position: int = 0, *, check_crc: bool = True) -> RecordBatch | None:
    """The batch that starts at `position`, or None if it is not complete yet (or if zeros of a preallocated file begin there).

    Raises:
        FormatError: these bytes are no batch of magic 2, or its CRC is wrong and `check_crc` is set; with the position.
    """
    if len(data) - position < PREFIX_BYTES:
        return None
    _, length = _PREFIX.unpack_from(data, position)
    if length == 0:
        return None
    size = PREFIX_BYTES + length
    if size < HEADER_BYTES:
        raise FormatError(f"batch length {length} is too small", position)
    if len(data) - position > MAGIC_AT and data[position + MAGIC_AT] != CURRENT_MAGIC:
        raise FormatError(f"magic {data[position + MAGIC_AT]} where {CURRENT_MAGIC} is expected", position)
    if len(data) - position < size:
        return None
    return _batch(data[position : position + size], position, check_crc)


def _batch(data: memoryview, position: int, check_crc: bool) -> RecordBatch:
    (base_offset, _, leader_epoch, _, crc, attributes, last_delta, base_timestamp, max_timestamp, *producer, count) = _HEADER.unpack_from(
        data
    )
    if check_crc and crc32c(data[CHECKED_FROM:]) != crc:
        raise FormatError("wrong CRC", position)
    if base_offset < 0 or last_delta < 0 or count < 0:
        raise FormatError("negative offset or count in a batch", position)
    return RecordBatch(
        size=len(data),
        base_offset=base_offset,
        last_offset=base_offset + last_delta,
        partition_leader_epoch=leader_epoch,
        crc=crc,
        attributes=attributes,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
        records_count=count,
        payload=data[HEADER_BYTES:],
    )


def read_begun_batch(data: memoryview) -> RecordBatch:
    """The batch of which `data` is the beginning: its header, and as much of its records section as is there. The CRC is not checked.

    Raises:
        FormatError: not even the header of a batch of magic 2 is there.
    """
    if len(data) < HEADER_BYTES or data[MAGIC_AT] != CURRENT_MAGIC:
        raise FormatError("no header of a batch")
    return _batch(data, 0, check_crc=False)


def read_record_heads(batch: RecordBatch, limit: int, most: int, *, bodies: bool = False) -> Iterator[tuple[int, int, bytes]]:
    """Offset and timestamp of each record, one after the other, as `read_records` has them; what else is in a record is not kept.

    Reads record batches of magic 2 one by one, for logs with records that are read (`DefaultRecordBatch`). The layout is in `layout`;
    all numbers are big-endian. The logs of user topics are walked and summed elsewhere, many batches at once. This is the simple way.

    Args:
        limit, most: as of `read_records`.
        bodies: with the record's own time, whatever the batch's, and with its bytes behind the offset, which another batch would have
            alike: key, value and headers. The content of these bytes is not checked. Otherwise they are empty.

    Raises:
        FormatError, TooLargeError: as `read_records`, as far as it is read.
    """
    window = _opened(batch, limit, most)
    append_time = batch.max_timestamp if batch.is_log_append_time and not bodies else None
    base_offset, base_timestamp, body = batch.base_offset, batch.base_timestamp, b""
    try:
        for _ in range(batch.records_count):
            start, end = _next_record(window, whole=bodies)
            timestamp_delta, at = read_varlong(window.data, start + 1)
            offset_delta, at = read_varint(window.data, at)
            if at > end:
                raise FormatError("record longer than its batch", start)
            if bodies:
                body = bytes(window.data[at:end])
            window.at = end
            yield base_offset + offset_delta, base_timestamp + timestamp_delta if append_time is None else append_time, body
        if not window.has(0):
            raise FormatError("record longer than its batch", window.at)
        if bodies and window.has(1):
            raise FormatError("bytes after the last record", window.at)
    except IndexError as error:
        raise FormatError("record is cut short", window.position) from error
    except FormatError as error:
        raise _placed(error, window) from error
