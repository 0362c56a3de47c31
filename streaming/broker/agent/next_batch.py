"""The batch that a group reads next: whether it is sound, its next record, and in what both differ from those around them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from streaming.broker.disk.locate import BatchBoundary, beginning, find_offset, scan_on, start_at, window
from streaming.broker.disk.scanning import BAD_CRC, damaged_batches
from streaming.broker.disk.segment_files import OpenSegment, Segment
from streaming.broker.protocol.group_json import BatchCheck, Unlike
from streaming.common.arrays import Longs
from streaming.common.codecs import CODECS
from streaming.errors import FormatError
from streaming.kafka.formats.entries import read_entry_records
from streaming.kafka.formats.layout import CURRENT_MAGIC
from streaming.kafka.formats.records import MAX_OPENED_BYTES, Record
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.pieces import Scanned
from streaming.kafka.scan.walk import Bytes

MOST_BYTES = 256 << 20
"""A larger batch is not read: its CRC is not checked."""

NEIGHBORS = 500
"""So many batches before it and after it at most, in the bytes that are read of each side at once, are its neighbors."""

NEIGHBORS_BYTES = 2 << 20
"""How much is read before it."""

FEW = 10
"""Among fewer than so many it is no news that one is the largest, or the first of its producer."""


def check_batch(segments: Sequence[Segment], offset: int) -> BatchCheck:
    """Check the batch that holds an offset; where there is none, the next one after it.

    Raises:
        OSError: a segment is gone or cannot be read.
    """
    buffer = window()
    boundary = find_offset(segments, offset, buffer)
    while True:
        with boundary.segment.open() as file:
            scanned = scan_on(file, boundary.position, boundary.next_offset, buffer)
            if len(scanned.batches) or scanned.flaw is not None:
                return _checked(file, boundary, scanned, buffer, offset)
        following = [segment for segment in segments if segment.base_offset > boundary.segment.base_offset]
        if not following:
            return BatchCheck(sound=True, error="the log ends there")
        boundary = beginning(following[0])


def _checked(file: OpenSegment, boundary: BatchBoundary, scanned: Scanned, buffer: Bytes, offset: int) -> BatchCheck:
    if not len(scanned.batches):
        return BatchCheck(
            sound=False,
            error=scanned.flaw or "",
            position=boundary.position,
            segment=boundary.segment.base_offset,
            file=str(boundary.segment.path),
        )
    batch = scanned.batches.take(slice(0, 1))
    error = _crc_error(file, boundary, scanned, buffer)
    check = BatchCheck(
        sound=not error,
        error=error,
        base_offset=int(batch.base_offset[0]),
        last_offset=int(batch.last_offset[0]),
        size=int(batch.size[0]),
        codec=CODECS[int(batch.codec[0])],
        records=int(batch.records[0]),
        producer_id=int(_producers(batch)[0]),
        position=boundary.position,
        segment=boundary.segment.base_offset,
        file=str(boundary.segment.path),
        format=int(batch.magic[0]),
    )
    if error or batch.control[0]:
        return check
    return _among(_opened(check, file, offset), batch, _before(file, boundary.position, buffer), scanned.batches.take(slice(1, None)))


def _crc_error(file: OpenSegment, boundary: BatchBoundary, scanned: Scanned, buffer: Bytes) -> str:
    if int(scanned.batches.size[0]) > MOST_BYTES:
        return ""
    wrong = damaged_batches(file, boundary.position, scanned, buffer)
    return BAD_CRC if len(wrong) and wrong[0] == 0 else ""


def _producers(batches: Batches) -> Longs:
    producers: Longs = np.where(batches.magic == CURRENT_MAGIC, batches.headers["producer_id"], -1)
    return producers


def _among(check: BatchCheck, batch: Batches, before: Batches | None, after: Batches) -> BatchCheck:
    """The check with what none of the neighbors has."""
    sides = [] if before is None else [before.take(~before.control).take(slice(-NEIGHBORS, None))]
    earlier = _producers(sides[0]) if sides else np.empty(0, np.int64)
    sides.append(after.take(~after.control).take(slice(0, NEIGHBORS)))
    count = sum(map(len, sides))
    unlike = {
        Unlike.LARGEST: count >= FEW and all(each.size.max(initial=0) < check.size for each in sides),
        Unlike.PRODUCER: len(earlier) >= FEW and check.producer_id >= 0 and check.producer_id not in earlier,
        Unlike.CODEC: count >= FEW and not any((each.codec == batch.codec[0]).any() for each in sides),
        Unlike.FORMAT: count >= FEW and not any((each.magic == batch.magic[0]).any() for each in sides),
    }
    return replace(check, neighbors=count, unlike=[*(each for each, so in unlike.items() if so), *check.unlike])


def _opened(check: BatchCheck, file: OpenSegment, offset: int) -> BatchCheck:
    """The check with what the lengths of its records say."""
    if check.size > MAX_OPENED_BYTES:
        return check
    length, tombstone, record_offset = -1, False, -1
    others, largest, tombstones = 0, -1, 0
    try:
        for each in read_entry_records(memoryview(file.read(check.position, check.size))) or ():
            if record_offset < 0 and each.offset >= offset:
                record_offset, length, tombstone = each.offset, _length(each), each.value is None
            else:
                others, largest, tombstones = others + 1, max(largest, _length(each)), tombstones + (each.value is None)
    except FormatError as error:
        return replace(check, error=f"its records cannot be opened: {error}")
    unlike = {
        Unlike.LARGEST_RECORD: others >= FEW and length > largest,
        Unlike.ONLY_TOMBSTONE: others >= FEW and tombstone and not tombstones,
    }
    found = [str(each) for each, so in unlike.items() if so]
    return replace(check, record_offset=record_offset, record_bytes=length, tombstone=tombstone, unlike=found)


def _length(record: Record) -> int:
    headers = sum(len(each.name) + len(each.value or b"") for each in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers


def _before(file: OpenSegment, position: int, buffer: Bytes) -> Batches | None:
    """The batches right before a position, None where the index leads to none that is near."""
    start, next_offset = start_at(file, max(position - NEIGHBORS_BYTES, 0))
    if not start < position <= start + len(buffer):
        return None
    return scan_on(file, start, next_offset, buffer[: position - start]).batches
