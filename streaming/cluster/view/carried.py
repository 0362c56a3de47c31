"""The values of a log that are no numbers: its transactions, its coordinator entries, its segments."""

import logging
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streaming.common.rows import SEGMENTS, TRANSACTIONS, unpack_entries
from streaming.rules.transaction_fold import NO_TRANSACTIONS, Transactions

log = logging.getLogger(__name__)

CARRIED = ("transactions", "coordinator", "segments")
"""Columns of `streaming.common.state_row.STATES`, in the order of `Carried.updated`."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Carried:
    """The values of one log. ``coordinator`` is a batch of `rows.COORDINATOR`, ``segments`` of `SEGMENTS`; None until known.

    ``listed_bytes`` is the size of all segments together. ``last_segment`` is the base offset of the last one, ``last_bytes`` its size. All
    three are -1 if no segment is listed.
    """

    transactions: Transactions
    coordinator: pa.RecordBatch | None = None
    segments: NDArray[np.void] | None = None
    listed_bytes: int = -1
    last_segment: int = -1
    last_bytes: int = -1

    def updated(self, transactions: bytes | None, coordinator: bytes | None, segments: bytes | None) -> "Carried":
        """The values after a row; None leaves a value as it is, except for ``transactions``."""
        after = self
        if transactions or len(self.transactions):
            after = replace(after, transactions=np.frombuffer(transactions, TRANSACTIONS) if transactions else NO_TRANSACTIONS)
        if coordinator is not None:
            after = replace(after, coordinator=unpack_entries(coordinator))
        if segments is None:
            return after
        if len(segments) % SEGMENTS.itemsize:
            log.error("the segments of a log are not understood")
            return after
        found = np.frombuffer(segments, SEGMENTS)
        if not len(found):
            return replace(after, segments=found)
        last, size = (int(found[name][-1]) for name in ("base_offset", "size"))
        return replace(after, segments=found, listed_bytes=int(found["size"].sum()), last_segment=last, last_bytes=size)


NOTHING_CARRIED = Carried(transactions=NO_TRANSACTIONS)
