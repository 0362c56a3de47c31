"""The headers of many batches as columns."""

from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_

import numpy as np
from numpy.typing import NDArray

from streaming.common.arrays import Longs
from streaming.common.codecs import CODECS
from streaming.errors import FormatError
from streaming.kafka.formats.layout import (
    CODEC_MASK,
    CONTROL_BIT,
    CURRENT_MAGIC,
    GIT_LFS_POINTER,
    HEADER,
    HEADER_BYTES,
    LENGTH_AT,
    MIN_BATCH_BYTES,
    NOT_FETCHED,
    OPAQUE_HEADER,
    PREFIX_BYTES,
)
from streaming.kafka.scan.walk import Bytes, Positions


@dataclass(frozen=True)
class Batches:
    """Columns of equal length, one item for each batch (a message of magic 0 or 1 counts as one), in the order of the log.

    ``positions`` are bytes in the buffer they were read from; timestamps are Unix milliseconds, -1 none. ``headers`` are the raw 61 bytes.
    If ``magic`` is below 2, their fields after ``magic`` have no meaning.
    """

    positions: Positions
    headers: NDArray[np.void]
    base_offset: Longs
    last_offset: Longs
    size: Longs
    records: Longs
    max_timestamp: Longs
    leader_epoch: Longs
    attributes: NDArray[np.int16]
    magic: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.positions)

    @cached_property
    def control(self) -> NDArray[np.bool_]:
        """Which batches are control batches: transaction markers and the quorum's own records."""
        control: NDArray[np.bool_] = (self.attributes & CONTROL_BIT) != 0
        return control

    @cached_property
    def codec(self) -> NDArray[np.int16]:
        """Codec ids, 0 to 7 (5 to 7 do not exist)."""
        return self.attributes & CODEC_MASK

    def anchor(self, item: int) -> bytes:
        """The bytes of a header, which identify a batch later; fewer than 61 for an old message that is shorter."""
        return bytes(self.headers[item].tobytes()[: int(self.size[item])])

    def take(self, items: slice | NDArray[np.bool_]) -> "Batches":
        """Some of the batches, in order."""
        return Batches(*(getattr(self, name)[items] for name in self.__dataclass_fields__))


def read_headers(buffer: Bytes, positions: Positions) -> Batches:
    """Read the headers at ``positions``, each the beginning of a complete entry of ``buffer``.

    It does not raise for wrong content, which `find_flaws` detects. For a legacy entry that cannot be read, ``records`` is -1.
    """
    batches = columns_of(positions, raw_headers(buffer, positions))
    for item in np.flatnonzero((batches.magic == 0) | (batches.magic == 1)).tolist():
        _read_legacy(buffer, batches, item)
    return batches


def columns_of(positions: Positions, headers: NDArray[np.void]) -> Batches:
    """The columns from raw headers (of `HEADER`). For magic 2 they are complete; for older messages nearly all of them are missing."""
    base_offset = headers["base_offset"].astype(np.int64)
    return Batches(
        positions=positions,
        headers=headers,
        base_offset=base_offset,
        last_offset=base_offset + headers["last_offset_delta"],
        size=headers["batch_length"].astype(np.int64) + PREFIX_BYTES,
        records=headers["records_count"].astype(np.int64),
        max_timestamp=headers["max_timestamp"].astype(np.int64),
        leader_epoch=headers["partition_leader_epoch"].astype(np.int64),
        attributes=headers["attributes"].astype(np.int16),
        magic=headers["magic"].astype(np.int8),
    )


def raw_headers(buffer: Bytes, positions: Positions) -> NDArray[np.void]:
    """The 61 bytes at each of ``positions`` as items of `HEADER`."""
    count = len(positions)
    fits = not count or positions[-1] <= len(buffer) - HEADER_BYTES  # as nearly always
    whole = count if fits else int(np.searchsorted(positions, len(buffer) - HEADER_BYTES, side="right"))
    headers = np.empty(count, OPAQUE_HEADER)
    if whole:  # each byte of the buffer begins an overlapping item, so indexing copies the wanted items at once
        headers[:whole] = np.ndarray((len(buffer) - HEADER_BYTES + 1,), OPAQUE_HEADER, buffer=buffer, strides=(1,))[positions[:whole]]
    for item in range(whole, count):  # entries of an old format may be shorter than a header, at the very end of the buffer
        rest = bytes(buffer[int(positions[item]) :])
        headers[item : item + 1] = np.frombuffer(rest.ljust(HEADER_BYTES, b"\0"), OPAQUE_HEADER)
    return headers.view(HEADER)


def first_broken(headers: NDArray[np.void]) -> int | None:
    """The first item that is no batch at all: its magic does not exist, or it is shorter than its own header."""
    magic = headers["magic"].view(np.uint8)
    bad = np.flatnonzero((magic > CURRENT_MAGIC) | ((magic == CURRENT_MAGIC) & (headers["batch_length"] < MIN_BATCH_BYTES - PREFIX_BYTES)))
    return int(bad[0]) if len(bad) else None


def _read_legacy(buffer: Bytes, batches: Batches, item: int) -> None:
    from streaming.kafka.formats.entries import (
        read_entry,
    )  # few logs have old messages, and importing the codecs' libraries slows down a start

    position = int(batches.positions[item])
    try:
        entry = read_entry(buffer.data[position : position + int(batches.size[item])])
    except FormatError:
        batches.last_offset[item], batches.records[item], batches.attributes[item] = batches.base_offset[item], -1, 0
        return
    batches.base_offset[item], batches.last_offset[item] = entry.base_offset, entry.last_offset
    batches.records[item], batches.max_timestamp[item] = entry.records, entry.timestamp
    batches.leader_epoch[item], batches.attributes[item] = -1, entry.codec


_LFS_PREFIX = int.from_bytes(GIT_LFS_POINTER[:LENGTH_AT]), PREFIX_BYTES + int.from_bytes(GIT_LFS_POINTER[LENGTH_AT:])


@dataclass(frozen=True, slots=True)
class Flaw:
    """The first batch of a range that Kafka cannot have written there: its index in the columns, and what is wrong with it."""

    item: int
    what: str


def find_flaws(batches: Batches, firsts: NDArray[np.intp], expected_offsets: Longs) -> list[Flaw]:
    """Find in each of several consecutive ranges the first batch that may not follow the one before it.

    Args:
        firsts: the index of each range's first batch, ascending, beginning with 0; no range is empty.
        expected_offsets: for each range the smallest offset at which it may begin. A larger one is a gap of compaction and allowed.

    Returns:
        At most one flaw for each range, in order. The batches after it in its range are not checked.
    """
    if not len(batches):
        return []
    following = np.empty(len(batches), np.int64)
    following[1:] = batches.last_offset[:-1] + 1
    following[firsts] = expected_offsets
    checks = (
        ((batches.magic < 0) | (batches.magic > CURRENT_MAGIC), "magic byte"),
        ((batches.magic == CURRENT_MAGIC) & (batches.size < MIN_BATCH_BYTES), "batch length"),
        ((batches.magic < CURRENT_MAGIC) & (batches.records < 0), "old message, it cannot be opened"),
        (batches.codec >= len(CODECS), "codec"),
        ((batches.records < 0) | (batches.records > batches.last_offset - batches.base_offset + 1), "records count"),
        (batches.base_offset < following, "base offset"),
        (batches.last_offset < batches.base_offset, "last offset"),
    )
    flawed = np.flatnonzero(reduce(or_, [bad for bad, _ in checks]))
    heads = np.unique(np.searchsorted(firsts, flawed, side="right"), return_index=True)[1]
    return [
        Flaw(item, describe_flaw(batches, item, next(name for bad, name in checks if bad[item]), int(following[item])))
        for item in flawed[heads].tolist()
    ]


def describe_flaw(batches: Batches, item: int, name: str, expected: int) -> str:
    """What is wrong with a batch, by the name of the check that it failed, with all that was checked."""
    if (int(batches.base_offset[item]), int(batches.size[item])) == _LFS_PREFIX:
        return NOT_FETCHED
    return (
        f"bad {name}: magic {batches.magic[item]}, size {batches.size[item]}, "
        f"offsets {batches.base_offset[item]} to {batches.last_offset[item]}, "
        f"records {batches.records[item]}, attributes {int(batches.attributes[item]) & 0xFFFF:#06x}, expected offset {expected} or above"
    )
