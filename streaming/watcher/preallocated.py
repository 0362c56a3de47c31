"""Batches half written into a preallocated file: their length says nothing of how much of them is there, only their CRC does.

A writer is at one place of a file only, so it can be the last batch before the zeros alone.
"""

from dataclasses import replace

from streaming.disk.segments import OpenSegment
from streaming.kafka.crc import CHECKED_FROM, OLD_CHECKED_FROM, OLD_CRC_AT, crc32, crc32c
from streaming.kafka.layout import CURRENT_MAGIC, PREFIX_BYTES
from streaming.kafka.scan import Piece, Scanned, scan
from streaming.kafka.walk import Bytes, Stop

_CRC_AT = 17


def without_half_written(file: OpenSegment, position: int, buffer: Bytes, start: int, scanned: Scanned, *, plain: bool) -> Scanned:
    """What was scanned from ``start`` of the buffer, less a last batch that is not all there. Raises OSError.

    Args:
        position: where in the file ``start`` stands.
        plain: the file is known not to be preallocated: what its size covers is written.
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
    if end > len(buffer):  # larger than a window: counted by its header, as soon as the file reaches to its end
        return True
    if scanned.batches.magic[-1] < CURRENT_MAGIC:
        return crc32(buffer[at + OLD_CHECKED_FROM : end].data) == _u32(buffer, at + OLD_CRC_AT)
    return crc32c(buffer[at + CHECKED_FROM : end].data) == _u32(buffer, at + _CRC_AT)


def _u32(buffer: Bytes, at: int) -> int:
    return int.from_bytes(buffer[at : at + 4].tobytes(), "big")
