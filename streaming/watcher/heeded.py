"""Which leader epochs were read of a log, and where what lies there now parts from them.

A leader epoch has one leader, and so one beginning: two logs that both hold a part of it hold the same before it (KIP-101). What was read
of later epochs than the last one in common is gone, whether higher or lower ones stand in its place.
"""

import struct
from collections.abc import Iterable, Sequence

from streaming.kafka.checkpoints import EpochEntry

MOST_EPOCHS = 64
"""So many of the latest epochs of a log are remembered."""

_ENTRY = struct.Struct("<iq")


def pack(entries: Iterable[EpochEntry]) -> bytes:
    """Epochs with the first offset that was read of each, ascending, as a place keeps them."""
    packed = b"".join(_ENTRY.pack(entry.epoch, entry.start_offset) for entry in entries)
    return packed[-MOST_EPOCHS * _ENTRY.size :]


def unpack(packed: bytes) -> list[EpochEntry]:
    """The same as entries."""
    return [EpochEntry(epoch, start) for epoch, start in _ENTRY.iter_unpack(packed)]


def with_epoch(packed: bytes, epoch: int, base_offset: int) -> bytes:
    """With what is read from ``base_offset`` on, which is of this epoch (-1: of none)."""
    last = _ENTRY.unpack_from(packed, len(packed) - _ENTRY.size)[0] if packed else -1
    return packed if epoch <= last else (packed + _ENTRY.pack(epoch, base_offset))[-MOST_EPOCHS * _ENTRY.size :]


def parted_at(read: Sequence[EpochEntry], told: Sequence[EpochEntry], next_offset: int) -> int | None:
    """The first offset below ``next_offset`` where another epoch stands than was read, None if there is none.

    Args:
        read: epochs with the first offset that was read of each, at least one. Compaction may have removed what came before it.
        told: the log's ``leader-epoch-checkpoint``.
    """
    if not told:
        return None
    common = {entry.epoch for entry in read} & {entry.epoch for entry in told}
    first = told[0]
    if common:
        last = max(common)
        later = [entry.start_offset for entry in (*read, *told) if entry.epoch > last]
    else:  # epochs that were read first may have been deleted at the beginning of the log; where reading began, the log had begun before
        later = [entry.start_offset for entry in read if entry.epoch > first.epoch] + [first.start_offset] * (read[0].epoch < first.epoch)
    parted = min(later, default=next_offset)
    return parted if parted < next_offset else None
