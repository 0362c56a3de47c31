"""Checks the batch that holds an offset, as it is on disk now: whether its header and its CRC are right, and how large it is."""

from collections.abc import Sequence

from streaming.broker.disk.damaged_batches import BAD_CRC, damaged_batches
from streaming.broker.disk.locate import BatchBoundary, beginning, find_offset, scan_on, window
from streaming.broker.disk.segment_files import OpenSegment, Segment
from streaming.broker.protocol.group_json import BatchCheck
from streaming.common.codecs import CODECS
from streaming.kafka.formats.layout import CURRENT_MAGIC
from streaming.kafka.scan.pieces import Scanned
from streaming.kafka.scan.walk import Bytes

MOST_BYTES = 256 << 20
"""A larger batch is not read: its CRC is not checked."""


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
                return _checked(file, boundary, scanned, buffer)
        following = [segment for segment in segments if segment.base_offset > boundary.segment.base_offset]
        if not following:
            return BatchCheck(sound=True, error="the log ends there")
        boundary = beginning(following[0])


def _checked(file: OpenSegment, boundary: BatchBoundary, scanned: Scanned, buffer: Bytes) -> BatchCheck:
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
    return BatchCheck(
        sound=not error,
        error=error,
        base_offset=int(batch.base_offset[0]),
        last_offset=int(batch.last_offset[0]),
        size=int(batch.size[0]),
        codec=CODECS[int(batch.codec[0])],
        records=int(batch.records[0]),
        producer_id=int(batch.headers["producer_id"][0]) if batch.magic[0] == CURRENT_MAGIC else -1,
        position=boundary.position,
        segment=boundary.segment.base_offset,
        file=str(boundary.segment.path),
    )


def _crc_error(file: OpenSegment, boundary: BatchBoundary, scanned: Scanned, buffer: Bytes) -> str:
    if int(scanned.batches.size[0]) > MOST_BYTES:
        return ""
    wrong = damaged_batches(file, boundary.position, scanned, buffer)
    return BAD_CRC if len(wrong) and wrong[0] == 0 else ""
