"""The written part of a preallocated file: its size does not show it, and the length of its last batch does not show that this is whole.

A writer is at one position of a file only, so only the last batch before the zeros can be half written: only its CRC shows it.
"""

from dataclasses import replace

from streaming.broker.disk.segment_files import OpenSegment, Segment
from streaming.kafka.formats.crc import has_right_crc
from streaming.kafka.formats.layout import PREFIX_BYTES
from streaming.kafka.scan.pieces import Piece, Scanned, scan
from streaming.kafka.scan.walk import Bytes, Stop

BLOCK_BYTES = 4096
"""Fewer zeros than this at the end of a file may be the end of a record."""

_LOOK_BYTES = 1 << 20


def written_end(file: OpenSegment, position: int) -> int:
    """Where the written part of a file ends: at the last byte that is not zero, at ``position`` at least. Raises OSError.

    Of a file whose zeros are stored (a copy), one look after ``position`` decides: if it is full of data, the size of the file counts.
    """
    size = file.size()
    if size <= position or any(file.read(max(position, size - BLOCK_BYTES), BLOCK_BYTES)):
        return size
    end = file.stored_end(position)
    begin = max(position, end - BLOCK_BYTES)
    written = _without_zeros(file, begin, end)
    if written > begin or begin == position:
        return written
    end = min(end, position + _LOOK_BYTES)
    written = _without_zeros(file, position, end)
    return written if end - written >= BLOCK_BYTES else size


def has_data(segment: Segment) -> bool:
    """Whether anything is written in a segment. Raises OSError."""
    if not segment.size:
        return False
    with segment.open() as file:
        return any(file.read(0, PREFIX_BYTES))


def _without_zeros(file: OpenSegment, begin: int, end: int) -> int:
    return begin + len(file.read(begin, end - begin).rstrip(b"\0"))


def without_half_written(file: OpenSegment, position: int, buffer: Bytes, start: int, scanned: Scanned, *, plain: bool) -> Scanned:
    """The batches scanned from ``start`` of the buffer, without the last one if it is half written. Raises OSError.

    Args:
        position: the position of ``start`` in the file.
        plain: the file is known not to be preallocated: everything up to its size is written.
    """
    if scanned.sums is None or scanned.flaw is not None or not _in_doubt(file, position - start, scanned, plain):
        return scanned
    if _is_whole(buffer, scanned):
        return scanned
    at = scanned.anchor_position
    if at == start:
        return Scanned(start, Stop.ZEROS, None, scanned.batches.take(slice(0, 0)), None)
    return replace(scan(buffer, [Piece(start, at, int(scanned.batches.base_offset[0]))])[0], stop=Stop.ZEROS)


def _in_doubt(file: OpenSegment, shift: int, scanned: Scanned, plain: bool) -> bool:
    if scanned.stop is Stop.END and not plain:
        return not any(file.read(shift + scanned.end, PREFIX_BYTES))  # a preallocated file may also be full to its last byte
    return scanned.stop is Stop.ZEROS


def _is_whole(buffer: Bytes, scanned: Scanned) -> bool:
    at, end = scanned.anchor_position, scanned.end
    if end > len(buffer):  # larger than a window: counted by its header, as soon as the file reaches its end
        return True
    return has_right_crc(buffer[at:end].data)
