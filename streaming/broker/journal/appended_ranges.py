"""Ranges of many logs that were read in one pass, as columns of events: the journal takes them without a value for each row."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streaming.broker.journal.blocks import BLOCK
from streaming.common.arrays import Longs
from streaming.common.event_row import EVENT
from streaming.common.log_key import LogKey


@dataclass(frozen=True, slots=True, eq=False)
class AppendedRanges:
    """APPENDED events of as many logs, one of each, in order.

    ``base_offset``, ``next_offset``, ``log_epoch`` and ``bytes`` are columns of theirs in numpy; ``columns`` are all of `EVENT`.
    """

    logs: Sequence[LogKey]
    base_offset: Longs
    next_offset: Longs
    log_epoch: Longs
    bytes: Longs
    columns: pa.RecordBatch

    def placed(self, seq: int, total: int, published_upto: Longs) -> pa.RecordBatch:
        """The block of the rows that come after ``seq``, where so many bytes were published before; for the last argument see `Event`."""
        places = [pa.array(seq + 1 + np.arange(len(self.logs))), pa.array(total + np.cumsum(self.bytes))]
        columns = dict(zip(EVENT.names, self.columns.columns, strict=True)) | {"published_upto": pa.array(published_upto)}
        return pa.RecordBatch.from_arrays([*places, *columns.values()], schema=BLOCK)
