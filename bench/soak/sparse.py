"""A backlog that is large to whoever reads it and small on the disk: the values of its records are zeros, and holes in the file."""

import os
import struct
from pathlib import Path

from streaming.simulator.batch_writer import Batch, Record, encode

BATCH_BYTES, SEGMENT_BYTES = 1 << 20, 1 << 30
_WRITTEN_BYTES = 128  # the headers of the batch and of its record


def write_sparse_log(directory: Path, size: int, now_ms: int) -> int:
    """Fill the directory of a log with segments of together about ``size`` bytes; returns how many they are exactly."""
    whole = encode(Batch(records=(Record(None, bytes(BATCH_BYTES), now_ms),)), 0)
    header, length = whole[8:_WRITTEN_BYTES], len(whole)
    assert not any(whole[_WRITTEN_BYTES:])
    offset = 0
    for first in range(0, max(1, size // length), SEGMENT_BYTES // length):
        count = min(SEGMENT_BYTES // length, max(1, size // length) - first)
        fd = os.open(directory / f"{offset:020}.log", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            for number in range(count):
                os.pwrite(fd, struct.pack(">q", offset) + header, number * length)
                offset += 1
            os.ftruncate(fd, count * length)
            entries = [struct.pack(">ii", number, number * length) for number in range(count)]
            (directory / f"{offset - count:020}.index").write_bytes(b"".join(entries))
            (directory / f"{offset - count:020}.timeindex").write_bytes(struct.pack(">qi", now_ms, count - 1))
        finally:
            os.close(fd)
    return offset * length
