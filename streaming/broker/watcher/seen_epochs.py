"""The leader epochs that were read of a log, and the offset where the stored epochs differ from them.

A leader epoch has one leader, and so one beginning: two logs that both contain a part of it are equal before it (KIP-101). The batches that
were read of epochs after the last common one are gone, whether higher or lower epochs have replaced them.
"""

import struct
from collections.abc import Iterable, Sequence

from streaming.kafka.formats.checkpoint_files import EpochEntry

MOST_EPOCHS = 64
"""How many of the latest epochs of a log are remembered."""

_ENTRY = struct.Struct("<iq")


def pack(entries: Iterable[EpochEntry]) -> bytes:
    """Epochs with the first offset that was read of each, ascending, as a cursor stores them."""
    packed = b"".join(_ENTRY.pack(entry.epoch, entry.start_offset) for entry in entries)
    return packed[-MOST_EPOCHS * _ENTRY.size :]


def unpack(packed: bytes) -> list[EpochEntry]:
    """The same as entries."""
    return [EpochEntry(epoch, start) for epoch, start in _ENTRY.iter_unpack(packed)]


def with_epoch(packed: bytes, epoch: int, base_offset: int) -> bytes:
    """The epochs together with the epoch of batches that are read from ``base_offset`` on (-1: they have none)."""
    last = _ENTRY.unpack_from(packed, len(packed) - _ENTRY.size)[0] if packed else -1
    return packed if epoch <= last else (packed + _ENTRY.pack(epoch, base_offset))[-MOST_EPOCHS * _ENTRY.size :]


def parted_at(read: Sequence[EpochEntry], stored: Sequence[EpochEntry], next_offset: int) -> int | None:
    """The first offset below ``next_offset`` where the stored epoch is not the one that was read, None if there is none.

    Args:
        read: epochs with the first offset that was read of each, at least one. Compaction may have removed offsets before it.
        stored: the log's ``leader-epoch-checkpoint``.
    """
    if not stored:
        return None
    common = {entry.epoch for entry in read} & {entry.epoch for entry in stored}
    first = stored[0]
    if common:
        last = max(common)
        later = [entry.start_offset for entry in (*read, *stored) if entry.epoch > last]
    else:  # the first epochs that were read may have been deleted at the beginning of the log; the log may begin before the reading
        later = [entry.start_offset for entry in read if entry.epoch > first.epoch] + [first.start_offset] * (read[0].epoch < first.epoch)
    parted = min(later, default=next_offset)
    return parted if parted < next_offset else None
