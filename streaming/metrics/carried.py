"""What the table carries of a log besides numbers: its transactions, its entries of coordinators, its facts, as values."""

import logging
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from streaming.errors import FormatError
from streaming.facts import Facts, decode
from streaming.rows import COORDINATOR, TRANSACTIONS, unpack_rows
from streaming.rules.transactions import NO_TRANSACTIONS, Transactions

log = logging.getLogger(__name__)

CARRIED = ("transactions", "coordinator", "facts")
"""Columns of `streaming.rows.STATES`, in the order of `Carried.told`."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Carried:
    """Of one log. ``coordinator`` is a batch of `streaming.rows.COORDINATOR`; it and ``facts`` are None until they are told."""

    transactions: Transactions
    coordinator: pa.RecordBatch | None = None
    facts: Facts | None = None

    def told(self, transactions: bytes | None, coordinator: bytes | None, facts: bytes | None) -> "Carried":
        """With what a row says."""
        after = self
        if transactions or len(self.transactions):
            after = replace(after, transactions=np.frombuffer(transactions, TRANSACTIONS) if transactions else NO_TRANSACTIONS)
        if coordinator is not None:
            after = replace(after, coordinator=unpack_rows(coordinator, COORDINATOR))
        return after if facts is None else replace(after, facts=_facts(facts))


NOTHING_CARRIED = Carried(transactions=NO_TRANSACTIONS)


def _facts(facts: bytes) -> Facts | None:
    try:
        return decode(facts)
    except FormatError as error:
        log.error("facts of a log are not understood", extra={"error": str(error)})
        return None
