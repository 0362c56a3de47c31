"""Packs the batches of a range one by one, so that a reader can cut a range that is published again at exactly the offset it knows.

Layout, version 1: a byte 1, then a zstd frame of int64 little-endian columns, each with one value for each batch: base_offset, last_offset,
size, records, max_timestamp, leader_epoch, attributes, magic. Each value is the difference to the one before it. A column is stored byte by
byte: first the lowest bytes of all its values. Then most of it is zeros, and a batch takes a few bytes instead of 64. The detail is sent
from the watcher to the fold, and is never kept longer than the journal.
"""

import numpy as np
import zstandard
from numpy.typing import NDArray

from streaming.errors import FormatError
from streaming.kafka.formats.layout import HEADER
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.sums import Sums, sum_ranges

_VERSION = b"\x01"
_COLUMNS = ("base_offset", "last_offset", "size", "records", "max_timestamp", "leader_epoch", "attributes", "magic")
_LEVEL = 1
_MAX_BYTES = 256 << 20
"""A range of one window is far below this; if a larger size is stored, it is damaged."""


def pack(batches: Batches) -> bytes:
    """Pack the columns that sums are computed from."""
    columns = np.array([getattr(batches, name) for name in _COLUMNS], "<i8").reshape(len(_COLUMNS), -1)
    differences = np.diff(columns, axis=1, prepend=0)
    by_byte = differences.view(np.uint8).reshape(len(_COLUMNS), -1, 8).transpose(0, 2, 1)
    return _VERSION + zstandard.compress(by_byte.tobytes(), _LEVEL)


def sums_from(detail: bytes, offset: int) -> Sums | None:
    """The sums over the packed batches that begin at or after ``offset``; None if there are none.

    Raises:
        FormatError: the bytes are not of this version.
    """
    columns = _unpack(detail)
    columns = columns[:, np.searchsorted(columns[0], offset) :]
    count = columns.shape[1]
    if not count:
        return None
    values = dict(zip(_COLUMNS, columns, strict=True))
    batches = Batches(
        positions=np.cumsum(values["size"]) - values["size"],
        headers=np.zeros(count, HEADER),
        attributes=values.pop("attributes").astype(np.int16),
        magic=values.pop("magic").astype(np.int8),
        **values,
    )
    return sum_ranges(batches, np.zeros(1, np.intp))[0]


def first_offset_above(detail: bytes, leader_epoch: int) -> int | None:
    """The base offset of the first packed batch of a later leader epoch; None if there is none.

    The log was truncated there. So if a reader has counted offsets after this one in an earlier epoch, it has counted bytes that were cut
    off since.

    Raises:
        FormatError: the bytes are not of this version.
    """
    columns = _unpack(detail)
    later = np.flatnonzero(columns[_COLUMNS.index("leader_epoch")] > leader_epoch)
    return int(columns[0][later[0]]) if len(later) else None


def _unpack(detail: bytes) -> NDArray[np.int64]:
    """One row for each column, in the order of `_COLUMNS`."""
    if detail[:1] != _VERSION:
        raise FormatError(f"packed batches of version {detail[:1]!r}, known is {_VERSION!r}")
    try:
        if zstandard.frame_content_size(detail[1:]) > _MAX_BYTES:
            raise FormatError("packed batches are damaged: they are too many")
        by_byte = np.frombuffer(zstandard.decompress(detail[1:]), np.uint8).reshape(len(_COLUMNS), 8, -1)
    except (zstandard.ZstdError, ValueError) as error:
        raise FormatError(f"packed batches are damaged: {error}") from error
    columns: NDArray[np.int64] = np.ascontiguousarray(by_byte.transpose(0, 2, 1)).view("<i8").reshape(len(_COLUMNS), -1).cumsum(axis=1)
    return columns
