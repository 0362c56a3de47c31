"""Transactions of a log as rows of `streaming.common.rows.TRANSACTION_ROWS`."""

import numpy as np
import pyarrow as pa

from streaming.broker.excerpts.excerpt_transactions import ENDED, Ended
from streaming.common.log_key import LogKey
from streaming.common.rows import TRANSACTION_ROWS
from streaming.rules.transaction_fold import Transactions


def ended_rows(log: LogKey, log_dir: str, ended: Ended) -> pa.RecordBatch:
    """The rows of transactions that ended in a log."""
    count = len(ended)
    named = log._asdict() | {"log_dir": log_dir}
    columns = [
        pa.repeat(pa.scalar(named[each.name], each.type), count)
        if each.name in named
        else pa.array(np.ascontiguousarray(ended[each.name])).cast(each.type)
        for each in TRANSACTION_ROWS
    ]
    return pa.RecordBatch.from_arrays(columns, schema=TRANSACTION_ROWS)


def open_rows(log: LogKey, log_dir: str, transactions: Transactions) -> pa.RecordBatch:
    """The rows of transactions that are open in a log."""
    rows = np.zeros(len(transactions), ENDED)
    for name in transactions.dtype.names or ():
        rows[name] = transactions[name]
    rows["end_ms"] = -1
    return ended_rows(log, log_dir, rows)
