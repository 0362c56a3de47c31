"""The batches of a range one by one, packed: what a reader needs to cut a range that is published again at exactly the offset it knows.

Layout, version 1: a byte 1, then numpy records of (base_offset i64, last_offset i64, size i64, records i64, max_timestamp i64,
leader_epoch i32, attributes i16, magic i8), little-endian, without gaps. It travels from the watcher to the fold and is never kept longer
than the journal.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming.errors import FormatError
from streaming.kafka.headers import Batches
from streaming.kafka.layout import HEADER
from streaming.kafka.sums import Sums, sum_ranges

_VERSION = b"\x01"
_COLUMNS = ("base_offset", "last_offset", "size", "records", "max_timestamp", "leader_epoch", "attributes", "magic")
_RECORD = np.dtype(list(zip(_COLUMNS, ["<i8", "<i8", "<i8", "<i8", "<i8", "<i4", "<i2", "i1"], strict=True)))


def pack(batches: Batches) -> bytes:
    """Pack the columns that sums are made of."""
    records = np.empty(len(batches), _RECORD)
    for name in _COLUMNS:
        records[name] = getattr(batches, name)
    return _VERSION + records.tobytes()


def sums_from(detail: bytes, offset: int) -> Sums | None:
    """The sums over the packed batches that begin at or after ``offset``; None if there are none.

    Raises:
        FormatError: the bytes are not of this version.
    """
    records = _unpack(detail)
    records = records[np.searchsorted(records["base_offset"], offset) :]
    if not len(records):
        return None
    columns = {name: records[name].astype(np.int64) for name in _COLUMNS[:6]}
    batches = Batches(
        positions=np.cumsum(columns["size"]) - columns["size"],
        headers=np.zeros(len(records), HEADER),
        attributes=records["attributes"].astype(np.int16),
        magic=records["magic"].astype(np.int8),
        **columns,
    )
    return sum_ranges(batches, np.zeros(1, np.intp))[0]


def first_offset_above(detail: bytes, leader_epoch: int) -> int | None:
    """The base offset of the first packed batch of a later leader epoch; None if there is none.

    A reader that has counted offsets behind it in an earlier epoch has counted what was cut off since: the log parts there.

    Raises:
        FormatError: the bytes are not of this version.
    """
    records = _unpack(detail)
    later = np.flatnonzero(records["leader_epoch"] > leader_epoch)
    return int(records["base_offset"][later[0]]) if len(later) else None


def _unpack(detail: bytes) -> NDArray[Any]:
    if detail[:1] != _VERSION or (len(detail) - 1) % _RECORD.itemsize:
        raise FormatError(f"packed batches of version {detail[:1]!r} and {len(detail)} bytes, known is {_VERSION!r}")
    records: NDArray[Any] = np.frombuffer(detail, _RECORD, offset=1)
    return records
