"""What events carry as bytes, and how that of two neighbouring ranges becomes one."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from streaming.kafka.coordinator import CoordinatorEntry
from streaming.kafka.transactions import NO_STEPS, Steps, merge_steps
from streaming.rows import COORDINATOR, TRANSACTION_STEPS, pack_rows, unpack_rows


def decode_steps(blob: bytes | None) -> Steps:
    """The steps in a column of an event."""
    return NO_STEPS if blob is None else np.frombuffer(blob, TRANSACTION_STEPS)


def encode_steps(steps: Steps) -> bytes | None:
    """The steps of a range as a column of its event."""
    return steps.tobytes() or None


def merged_steps(first: bytes | None, later: bytes | None, first_bytes: int) -> bytes | None:
    """The steps of a range of ``first_bytes`` bytes and of the one right behind it, as of one range."""
    return first if later is None else encode_steps(merge_steps(decode_steps(first), decode_steps(later), first_bytes))


def encode_entries(entries: Sequence[CoordinatorEntry]) -> bytes | None:
    """What a range of ``__transaction_state`` tells, as a column of its event: from here on transactional ids leave the broker's host."""
    if not entries:
        return None
    columns = [pa.array([getattr(entry, field.name) for entry in entries], field.type) for field in COORDINATOR]
    return pack_rows(pa.RecordBatch.from_arrays(columns, schema=COORDINATOR))


def merged_entries(first: bytes | None, later: bytes | None) -> bytes | None:
    """The newest entries of a range of ``__transaction_state`` and of the one right behind it, as of one range."""
    if first is None or later is None:
        return first if later is None else later
    both = pa.Table.from_batches([unpack_rows(first, COORDINATOR), unpack_rows(later, COORDINATOR)])
    newest = {transactional_id: row for row, transactional_id in enumerate(both["transactional_id"].to_pylist())}
    (merged,) = both.take(sorted(newest.values())).combine_chunks().to_batches()
    return pack_rows(merged)
