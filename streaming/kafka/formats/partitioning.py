"""The partition of a coordinator's topic that an id belongs to (`TransactionStateManager`, `GroupCoordinatorService`: `partitionFor`)."""

import struct

_UNIT = struct.Struct(">H")


def coordinator_partition(identity: str, partitions: int) -> int:
    """The partition of `__transaction_state` for a transactional id, or of `__consumer_offsets` for a group.

    Args:
        partitions: how many the topic has (50 unless the cluster was configured otherwise before the topic was created).
    """
    number = _java_hash(identity)
    return 0 if number == -(1 << 31) else abs(number) % partitions  # Utils.abs


def _java_hash(text: str) -> int:
    """`String.hashCode`: over UTF-16 units, in 32 bits, signed."""
    code = 0
    for (unit,) in _UNIT.iter_unpack(text.encode("utf-16-be")):
        code = (31 * code + unit) & 0xFFFFFFFF
    return code - (1 << 32) if code >> 31 else code
