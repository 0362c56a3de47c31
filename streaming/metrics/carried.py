"""What the table carries of a log besides numbers: its transactions, its entries of coordinators, its segments, as values."""

import logging
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streaming.rows import SEGMENTS, TRANSACTIONS, unpack_entries
from streaming.rules.transactions import NO_TRANSACTIONS, Transactions

log = logging.getLogger(__name__)

CARRIED = ("transactions", "coordinator", "segments")
"""Columns of `streaming.rows.STATES`, in the order of `Carried.told`."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Carried:
    """Of one log. ``coordinator`` is a batch of `streaming.rows.COORDINATOR`, ``segments`` of `SEGMENTS`; None until they are told.

    Of the segments: ``listed_bytes`` of all together, ``last_segment`` the base offset and ``last_bytes`` the size of the last one; -1
    where none is listed.
    """

    transactions: Transactions
    coordinator: pa.RecordBatch | None = None
    segments: NDArray[np.void] | None = None
    listed_bytes: int = -1
    last_segment: int = -1
    last_bytes: int = -1

    def told(self, transactions: bytes | None, coordinator: bytes | None, segments: bytes | None) -> "Carried":
        """With what a row says."""
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
