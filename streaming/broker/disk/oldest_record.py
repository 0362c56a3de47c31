"""Finds when the oldest record that a log still serves was written."""

from dataclasses import dataclass

from streaming.broker.disk.locate import start_near
from streaming.broker.disk.segment_files import OpenSegment, Segment
from streaming.errors import FormatError
from streaming.kafka.formats.entry_head import read_entry_head
from streaming.kafka.formats.layout import HEADER_BYTES

MOST_BATCHES = 10_000
"""The most batches without a time of their own that are skipped, so that one call does not read a whole compacted log."""


@dataclass(frozen=True, slots=True)
class Oldest:
    """The batch with the oldest record: its segment (base offset), the offset after it, and the record's time in Unix milliseconds."""

    segment: int
    next_offset: int
    timestamp: int


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
        with segment.open() as file:
            found, left = _oldest_in(file, log_start, left)
        if found is not None or not left:
            return found
    return None


def _oldest_in(file: OpenSegment, log_start: int, left: int) -> tuple[Oldest | None, int]:
    position, _ = start_near(file, log_start) if log_start > file.base_offset else (0, 0)
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
