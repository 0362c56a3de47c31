"""The aborted transactions that have data in a part of a log, from the ``.txnindex`` files of its segments."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from streaming.broker.disk.opening import INDEX_BYTES, read_small
from streaming.broker.disk.segment_files import Segment
from streaming.kafka.formats.names import FileKind, FileStage, segment_file_name
from streaming.kafka.formats.transaction_index import ABORTED, read_aborted_columns


def aborted_transactions(segments: Sequence[Segment], upto: int) -> NDArray[np.void]:
    """The aborted transactions that end in one of ``segments`` and may have data below the offset ``upto``, as records of `ABORTED`.

    A transaction is in the index of the segment that holds its marker, and may have begun long before. An entry whose last stable offset is
    at ``upto`` or above shows that no later one has data below it (`TransactionIndex.collectAbortedTxns`), so later files are not read.

    Raises:
        FormatError: an index is of a later version, or larger than any.
        OSError: an index is there and cannot be read.
    """
    found = []
    for segment in segments:
        entries = read_aborted_columns(_read(segment))
        if len(entries):
            found.append(entries)
            if int(entries["last_stable_offset"].max()) >= upto:
                break
    return np.concatenate(found) if found else np.empty(0, ABORTED)


def _read(segment: Segment) -> bytes:
    """The index of a segment, empty if it has none: most have not."""
    path = segment.path.with_name(segment_file_name(segment.base_offset, FileKind.TXNINDEX))
    paths = (path.with_name(f"{path.name}.{FileStage.SWAP}"), path) if segment.swap else (path,)
    for one in paths:
        try:
            return read_small(one, INDEX_BYTES)
        except FileNotFoundError:
            continue
    return b""
