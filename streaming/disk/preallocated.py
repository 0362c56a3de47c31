"""Half-written batches in a preallocated file: the length of a batch does not show how much of it is written, only its CRC does.

A writer is at one position of a file only, so only the last batch before the zeros can be half written.
"""

from dataclasses import replace

from streaming.disk.segment_files import OpenSegment
from streaming.kafka.crc import has_right_crc
from streaming.kafka.layout import PREFIX_BYTES
from streaming.scan.pieces import Piece, Scanned, scan
from streaming.scan.walk import Bytes, Stop


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
