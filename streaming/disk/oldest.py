"""Finds when the oldest record that a log still serves was written."""

from dataclasses import dataclass
from struct import Struct

from streaming.disk.segments import OpenSegment, Segment
from streaming.errors import FormatError
from streaming.kafka.layout import (
    CONTROL_BIT,
    CURRENT_MAGIC,
    DELETE_HORIZON_BIT,
    HEADER_BYTES,
    MAGIC_AT,
    MIN_LENGTH,
    PREFIX_BYTES,
    TIMESTAMP_TYPE_BIT,
)

MOST_BATCHES = 10_000
"""The most batches without a time of their own that are skipped, so that one call does not read a whole compacted log."""

_PREFIX = Struct(">qi")
_HEADER = Struct(">hiqq")  # attributes, last offset delta, base and largest timestamp
_ATTRIBUTES_AT, _COUNT_AT = 21, 57
_OLD_TIMESTAMP_AT = 18
_COUNT, _LONG = Struct(">i"), Struct(">q")


@dataclass(frozen=True, slots=True)
class Entry:
    """The head of an entry of a ``.log``.

    ``timestamp`` is that of its first record, -1 if the head does not contain it: the entry has no user's record, has a delete horizon in
    that field, or is of magic 0. For a wrapper of magic 1 it is the largest timestamp inside.
    """

    size: int
    last_offset: int
    timestamp: int


@dataclass(frozen=True, slots=True)
class Oldest:
    """The batch with the oldest record: its segment (base offset), the offset after it, and the record's time in Unix milliseconds."""

    segment: int
    next_offset: int
    timestamp: int


def read_entry_head(head: bytes) -> Entry | None:
    """The head of the entry that begins with these bytes (61, or fewer at the end of a file); None if there is none.

    Raises:
        FormatError: Kafka cannot have written a batch with this beginning.
    """
    if len(head) <= MAGIC_AT + 1:
        return None
    offset, length = _PREFIX.unpack_from(head)
    if length == 0:
        return None
    if length < MIN_LENGTH:
        raise FormatError(f"bad batch length {length}")
    size, magic = PREFIX_BYTES + length, head[MAGIC_AT]
    if magic < CURRENT_MAGIC:
        dated = magic == 1 and len(head) >= _OLD_TIMESTAMP_AT + _LONG.size
        return Entry(size, offset, _LONG.unpack_from(head, _OLD_TIMESTAMP_AT)[0] if dated else -1)
    if magic != CURRENT_MAGIC or (len(head) == HEADER_BYTES and size < HEADER_BYTES):
        raise FormatError(f"bad magic {magic} or batch length {length}")
    if len(head) < HEADER_BYTES:
        return None
    attributes, delta, base_timestamp, max_timestamp = _HEADER.unpack_from(head, _ATTRIBUTES_AT)
    (count,) = _COUNT.unpack_from(head, _COUNT_AT)
    if count <= 0 or attributes & (CONTROL_BIT | DELETE_HORIZON_BIT):
        timestamp = -1
    else:
        timestamp = max_timestamp if attributes & TIMESTAMP_TYPE_BIT else base_timestamp
    return Entry(size, offset + delta, max(timestamp, -1))


def oldest_record(segments: tuple[Segment, ...], log_start: int) -> Oldest | None:
    """The first batch that ends at or after ``log_start`` and has a time of its own; None if there is none, or none near enough.

    Raises:
        OSError: a segment cannot be read.
        FormatError: a batch before it does not have Kafka's format; with the position.
    """
    left = MOST_BATCHES
    for item, segment in enumerate(segments):
        following = segments[item + 1].base_offset if item + 1 < len(segments) else None
        if segment.size == 0 or (following is not None and following <= log_start):
            continue
        file = OpenSegment(segment.path, segment.base_offset)
        try:
            found, left = _oldest_in(file, log_start, left)
        finally:
            file.close()
        if found is not None or not left:
            return found
    return None


def _oldest_in(file: OpenSegment, log_start: int, left: int) -> tuple[Oldest | None, int]:
    indexed = file.indexed(log_start) if log_start > file.base_offset else None
    position = indexed[1] if indexed is not None and _begins_at(file, *indexed) else 0
    while left:
        try:
            entry = read_entry_head(file.read(position, HEADER_BYTES))
        except FormatError as error:
            raise FormatError(f"{file.path}: {error.what}", position) from error
        if entry is None:
            break
        if entry.last_offset >= log_start and entry.timestamp >= 0:
            return Oldest(file.base_offset, entry.last_offset + 1, entry.timestamp), left
        position += entry.size
        left -= 1
    return None, left


def _begins_at(file: OpenSegment, last_offset: int, position: int) -> bool:
    """Whether a batch begins at the position from the index, judged by its head: an entry may be stale."""
    try:
        entry = read_entry_head(file.read(position, HEADER_BYTES))
    except FormatError:
        return False
    return entry is not None and file.base_offset <= entry.last_offset <= last_offset
