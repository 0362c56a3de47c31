"""What the table carries of a log besides numbers: its transactions, its entries of coordinators, its facts, as values."""

import logging
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from streaming.errors import FormatError
from streaming.facts import Facts, decode
from streaming.rows import TRANSACTIONS, unpack_entries
from streaming.rules.transactions import NO_TRANSACTIONS, Transactions

log = logging.getLogger(__name__)

CARRIED = ("transactions", "coordinator", "facts")
"""Columns of `streaming.rows.STATES`, in the order of `Carried.told`."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Carried:
    """Of one log. ``coordinator`` is a batch of `streaming.rows.COORDINATOR`; it and ``facts`` are None until they are told.

    Of the segments that the facts list: ``listed_bytes`` of all together, ``last_segment`` the base offset and ``last_bytes`` the size of
    the last one; -1 where none is listed.
    """

    transactions: Transactions
    coordinator: pa.RecordBatch | None = None
    facts: Facts | None = None
    listed_bytes: int = -1
    last_segment: int = -1
    last_bytes: int = -1

    def told(self, transactions: bytes | None, coordinator: bytes | None, facts: bytes | None) -> "Carried":
        """With what a row says."""
        after = self
        if transactions or len(self.transactions):
            after = replace(after, transactions=np.frombuffer(transactions, TRANSACTIONS) if transactions else NO_TRANSACTIONS)
        if coordinator is not None:
            after = replace(after, coordinator=unpack_entries(coordinator))
        found = None if facts is None else _facts(facts)
        if found is None:
            return after
        if not len(found.segments):
            return replace(after, facts=found)
        last, size = (int(found.segments[name][-1]) for name in ("base_offset", "size"))
        return replace(after, facts=found, listed_bytes=int(found.segments["size"].sum()), last_segment=last, last_bytes=size)


NOTHING_CARRIED = Carried(transactions=NO_TRANSACTIONS)


def _facts(facts: bytes) -> Facts | None:
    try:
        return decode(facts)
    except FormatError as error:
        log.error("facts of a log are not understood", extra={"error": str(error)})
        return None
