"""The headers of many batches as columns, also of many small pieces that end with a whole batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_
from struct import Struct

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
    TRANSACTIONAL_BIT,
)
from streaming.kafka.scan.walk import Bytes, Positions, Stop, walk_lanes

_LFS_PREFIX = int.from_bytes(GIT_LFS_POINTER[:LENGTH_AT]), PREFIX_BYTES + int.from_bytes(GIT_LFS_POINTER[LENGTH_AT:])

_UNUSUAL = TRANSACTIONAL_BIT | CONTROL_BIT

_PLAIN = Struct(">8xi4xb4xh")
"""Length, magic and attributes of a header: three fields by one call, as one is read for each batch."""

_LEAST_LENGTH = HEADER_BYTES - PREFIX_BYTES


def headers_of_whole(buffer: Bytes, starts: Positions, ends: Positions) -> PieceHeaders:
    """The headers of the pieces ``[start, end)`` of a buffer, ascending and not overlapping; each begins with a batch."""
    lanes = walk_lanes(buffer, starts, ends)
    positions = lanes.positions
    counts = np.diff(np.append(np.searchsorted(positions, starts), len(positions)))
    whole = (lanes.reached == ends) & (lanes.stops == Stop.END)
    if not whole.all():
        positions, counts = positions[np.repeat(whole, counts)], np.where(whole, counts, 0)
    return PieceHeaders(raw_headers(buffer, positions).view(OPAQUE_HEADER), counts)


@dataclass(frozen=True, slots=True)
class PieceHeaders:
    """The headers of some pieces, piece after piece, and how many each piece has: none where it does not end with a whole batch.

    They are opaque, because numpy turns the bytes of numbers into its own order where it joins arrays, and an anchor is bytes.
    """

    headers: NDArray[np.void]
    counts: Longs


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


def read_headers(buffer: Bytes, positions: Positions) -> Batches:
    """Read the headers at ``positions``, each the beginning of a complete entry of ``buffer``.

    It does not raise for wrong content, which `find_flaws` detects. For a legacy entry that cannot be read, ``records`` is -1.
    """
    batches = columns_of(positions, raw_headers(buffer, positions))
    for item in np.flatnonzero((batches.magic == 0) | (batches.magic == 1)).tolist():
        _read_legacy(buffer, batches, item)
    return batches


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

    def take(self, items: slice | NDArray[np.bool_]) -> Batches:
        """Some of the batches, in order."""
        return Batches(*(getattr(self, name)[items] for name in self.__dataclass_fields__))


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


def first_broken(headers: NDArray[np.void]) -> int | None:
    """The first item that is no batch at all: its magic does not exist, or it is shorter than its own header."""
    magic = headers["magic"].view(np.uint8)
    bad = np.flatnonzero((magic > CURRENT_MAGIC) | ((magic == CURRENT_MAGIC) & (headers["batch_length"] < MIN_BATCH_BYTES - PREFIX_BYTES)))
    return int(bad[0]) if len(bad) else None


def plain_size(header: bytes) -> int:
    """The size of the batch with this header if it is of the present format, and neither transactional nor a control batch; else 0."""
    if len(header) < HEADER_BYTES:
        return 0
    length, magic, attributes = _PLAIN.unpack_from(header)
    return length + PREFIX_BYTES if magic == CURRENT_MAGIC and not attributes & _UNUSUAL and length >= _LEAST_LENGTH else 0


def batches_of(headers: Sequence[bytes]) -> Batches:
    """Batches of the present format that follow each other, by their headers; positions count from the first one."""
    opaque = np.frombuffer(b"".join(headers), OPAQUE_HEADER)
    fields = opaque.view(HEADER)
    return columns_of(_in_files(fields, np.zeros(1, np.intp), np.array([len(fields)]), np.zeros(1, np.int64)), fields)


def _in_files(headers: NDArray[np.void], firsts: NDArray[np.intp], counts: Longs, positions: Positions) -> Positions:
    """The position of each batch in its file; ``positions``: where each piece begins."""
    sizes = headers["batch_length"].astype(np.int64) + PREFIX_BYTES
    ends = np.cumsum(sizes)
    begins: Positions = ends - sizes
    return begins + np.repeat(positions - begins[firsts], counts)


def plain_ranges(pieces: PieceHeaders, positions: Positions, expected_offsets: Longs, epochs: Longs) -> PlainRanges:
    """The ranges in which nothing is unusual: whole and sound batches of the present format and of one leader epoch, no transactions.

    The batches of many small pieces, each of another log: only of those pieces that end with a whole batch.

    Args:
        positions: of each piece in its file; those of the batches are in the file, too.
        expected_offsets: the smallest offset at which each piece may begin.
        epochs: the leader epoch of each.
    """
    kept = np.flatnonzero(pieces.counts)
    counts = pieces.counts[kept]
    firsts = np.cumsum(counts) - counts
    headers = pieces.headers.view(HEADER)
    batches = columns_of(_in_files(headers, firsts, counts, positions[kept]), headers)
    if not len(kept):
        return PlainRanges(kept, batches, firsts)
    unusual = (batches.magic != CURRENT_MAGIC) | (batches.attributes & _UNUSUAL != 0)
    sound = ~np.logical_or.reduceat(unusual, firsts)
    lasts = firsts + counts - 1
    for ends in (firsts, lasts):  # epochs only rise along a log
        sound &= batches.leader_epoch[ends] == epochs[kept]
    for flaw in find_flaws(batches, firsts, expected_offsets[kept]):
        sound[np.searchsorted(firsts, flaw.item, side="right") - 1] = False
    if sound.all():
        return PlainRanges(kept, batches, firsts)
    sound_batches, counts = np.repeat(sound, counts), counts[sound]
    headers = pieces.headers[sound_batches].view(HEADER)
    return PlainRanges(kept[sound], columns_of(batches.positions[sound_batches], headers), np.cumsum(counts) - counts)


@dataclass(frozen=True, slots=True, eq=False)
class PlainRanges:
    """Ranges of several logs. ``kept``: which pieces they are, by number; ``firsts``: the index of the first batch of each."""

    kept: NDArray[np.intp]
    batches: Batches
    firsts: NDArray[np.intp]

    def of(self, item: int) -> Batches:
        """The batches of one range."""
        end = self.firsts[item + 1] if item + 1 < len(self.firsts) else len(self.batches)
        return self.batches.take(slice(self.firsts[item], end))


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


@dataclass(frozen=True, slots=True)
class Flaw:
    """The first batch of a range that Kafka cannot have written there: its index in the columns, and what is wrong with it."""

    item: int
    what: str


def describe_flaw(batches: Batches, item: int, name: str, expected: int) -> str:
    """What is wrong with a batch, by the name of the check that it failed, with all that was checked."""
    if (int(batches.base_offset[item]), int(batches.size[item])) == _LFS_PREFIX:
        return NOT_FETCHED
    return (
        f"bad {name}: magic {batches.magic[item]}, size {batches.size[item]}, "
        f"offsets {batches.base_offset[item]} to {batches.last_offset[item]}, "
        f"records {batches.records[item]}, attributes {int(batches.attributes[item]) & 0xFFFF:#06x}, expected offset {expected} or above"
    )
