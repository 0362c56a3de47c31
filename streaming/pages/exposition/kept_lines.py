"""The packed lines of the last page's families, of which the next page packs only those that it shows otherwise.

On an idle cluster most columns are what they were 15 seconds ago. What has changed is decided by the columns themselves: each value and
each label is compared with the one that was packed. Only packed lines are kept, and the columns of which they were made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import cramjam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streaming.cluster.view.family import TEXT, Family, Samples, text
from streaming.common.arrays import Flags, Longs
from streaming.common.definitions.metric import Metric, Type

_UNIT_DIGITS = {"seconds": 3, "ratio": 6}
"""Times are counted in milliseconds, ratios in millionths."""

_LEVEL = 1
"""100 MB of labels shrink to 11 MB; more effort costs the scrape more than the network saves."""

_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"  # deflate, no name, no time, packed fast, by an unknown system
_END = b"\x03\x00"  # an empty block, the last one

_POLYNOMIAL = 0xEDB88320
_SIZE_BITS = 48  # no page has 256 TB

Sums = NDArray[np.uint32]

PIECE_SERIES = 1024
"""A piece has about so many series: 100 KB, which pack as well as a whole family does. A value that changes costs a piece of it."""


class KeptLines:
    """The packed lines of the last page, and of none before. Only one thread uses it at a time.

    Args:
        piece_series: so many series, about, are packed together.
    """

    def __init__(self, piece_series: int = PIECE_SERIES) -> None:
        self._piece_series = piece_series
        self._kept: dict[Metric, _Packed] = {}

    def packed(self, families: Sequence[Family]) -> list[tuple[GzipPiece, ...]]:
        """The lines of each family as they would be packed from scratch; every family has a series."""
        labels = _Labels(packed.family.labels for packed in self._kept.values())
        found = {}
        for family in families:
            subjects = max(1, self._piece_series // len(family.samples))
            shared = replace(family, labels=labels.one_of(family.labels))
            found[family.metric] = _packed(shared, self._kept.get(family.metric), subjects)
        self._kept = found
        return [packed.pieces for packed in found.values()]


@dataclass(frozen=True, slots=True)
class GzipPiece:
    """Deflate blocks, the number of bytes that they hold, and the CRC-32 of these."""

    blocks: bytes
    size: int
    crc: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Packed:
    """A family, and the pieces of its lines; each but the last has the lines of as many subjects."""

    family: Family
    pieces: tuple[GzipPiece, ...]


class _Labels:
    """One array for all that are equal, whichever page they are of: so they are compared once a page, and kept once."""

    def __init__(self, arrays: Iterator[pa.LargeStringArray]) -> None:
        self._known: dict[int, list[pa.LargeStringArray]] = {}  # by the number of labels
        self._found: dict[int, tuple[pa.LargeStringArray, pa.LargeStringArray]] = {}  # by identity: the array itself, and its equal
        for each in arrays:
            self.one_of(each)

    def one_of(self, labels: pa.LargeStringArray) -> pa.LargeStringArray:
        """The array that stands for all that equal this one."""
        if id(labels) not in self._found:
            known = self._known.setdefault(len(labels), [])
            equal = next((each for each in known if each.equals(labels)), None)
            if equal is None:
                known.append(labels)
            self._found[id(labels)] = labels, labels if equal is None else equal
        return self._found[id(labels)][1]


def _packed(family: Family, last: _Packed | None, subjects: int) -> _Packed:
    """The family's lines, in pieces of so many subjects: those that are as they were, and the others packed again."""
    if last is None or not _is_alike(last.family, family):
        return _Packed(family=_copied(family), pieces=tuple(_pieces(family, subjects)))
    changed = _changed(last.family, family)
    if not changed.any():
        return last
    stale = np.logical_or.reduceat(changed, np.arange(0, len(changed), subjects))
    new = _pieces(_of_subjects(family, np.flatnonzero(np.repeat(stale, subjects)[: len(changed)])), subjects)
    pieces = (next(new) if is_stale else piece for piece, is_stale in zip(last.pieces, stale.tolist(), strict=True))
    return _Packed(family=_copied(family), pieces=tuple(pieces))


def _is_alike(last: Family, family: Family) -> bool:
    """Whether the two differ in values at most."""
    return last.labels is family.labels and list(map(_kind, last.samples)) == list(map(_kind, family.samples))


def _kind(samples: Samples) -> tuple[str, str, bool, np.dtype[np.int64]]:
    return samples.suffix, samples.label, samples.thousandths, samples.values.dtype


def _copied(family: Family) -> Family:
    """The same, without what its values are a part of."""
    return replace(family, samples=tuple(replace(each, values=each.values.copy()) for each in family.samples))


def _pieces(family: Family, subjects: int) -> Iterator[GzipPiece]:
    """The pieces of a family's lines, each of so many subjects."""
    lines = lines_of(family)
    for at in range(0, len(lines), subjects):
        yield pack(text_of(lines.slice(at, subjects)))


def lines_of(family: Family) -> pa.LargeStringArray:
    """The lines of a family, those of one subject together, as OpenMetrics requires.

    The lines of a family in the text formats of Prometheus, which are the same in both. Arrow's compute functions format a million
    series one column at a time, and other threads can use the interpreter meanwhile. Every line of a family is joined into one array
    of texts. The data of this array, one text after the other, is a part of the page.
    """
    parts: list[pa.Array | pa.Scalar] = []
    end_of_line = ""
    for samples in family.samples:
        more = f",{samples.label}}} " if samples.label else "} "
        parts += (
            text(f"{end_of_line}{family.metric.name}{samples.suffix}{{"),
            family.labels,
            text(more),
            _numbers(samples.values, _digits(family.metric, samples)),
        )
        end_of_line = "\n"
    return pc.binary_join_element_wise(*parts, text("\n"), text(""))


def _numbers(values: Longs, digits: int) -> pa.LargeStringArray:
    """Whole numbers as texts, the last ``digits`` of each after the decimal point."""
    numbers = pa.array(values)
    if digits:
        wide = numbers.cast(pa.decimal128(22, 0))
        # The same integers, declared as thousandths or millionths. This is exact; a division would go through floats.
        numbers = pa.Array.from_buffers(pa.decimal128(22, digits), len(wide), wide.buffers())
    return numbers.cast(TEXT)


def _digits(metric: Metric, samples: Samples) -> int:
    """How many digits of a whole number are after the decimal point."""
    if metric.type == Type.HISTOGRAM:
        return 3 if samples.thousandths else 0
    return _UNIT_DIGITS.get(metric.unit, 0)


def pack(text: bytes | memoryview) -> GzipPiece:
    """Pack a text."""
    packer = cramjam.gzip.Compressor(_LEVEL)
    packer.compress(bytes(text))
    blocks = bytes(packer.flush())[len(_HEAD) :]  # ends at a byte
    trailer = bytes(packer.finish())[-8:]
    return GzipPiece(blocks, len(text), int.from_bytes(trailer[:4], "little"))


def text_of(lines: pa.LargeStringArray) -> memoryview:
    """Lines below each other."""
    _, ends, data = lines.buffers()
    first, last = np.frombuffer(ends, np.int64)[[lines.offset, lines.offset + len(lines)]].tolist()
    return memoryview(data)[first:last]


def _changed(last: Family, family: Family) -> Flags:
    """Which subjects have another value than before."""
    differing = [before.values != now.values for before, now in zip(last.samples, family.samples, strict=True)]
    found: Flags = np.logical_or.reduce(differing)
    return found


def _of_subjects(family: Family, subjects: Longs) -> Family:
    """The family of some of its subjects."""
    if len(subjects) == len(family.labels):
        return family
    samples = tuple(replace(each, values=each.values[subjects]) for each in family.samples)
    return replace(family, labels=family.labels.take(pa.array(subjects)), samples=samples)


def join(pieces: Sequence[GzipPiece]) -> bytes:
    """The gzip member of all texts, one after the other.

    Pieces of a text that are packed one by one, and put together as one gzip member (RFC 1952), however they are combined. Each is a
    row of whole deflate blocks (RFC 1951) that ends at a byte and refers to nothing before itself. So pieces can follow each other,
    and one that was packed for an earlier page is as good as a new one. They are no members of their own, although RFC 1952 allows
    several: curl and browsers read the first of them alone.
    """
    size = sum(piece.size for piece in pieces) % (1 << 32)
    blocks = (piece.blocks for piece in pieces)
    return b"".join((_HEAD, *blocks, _END, crc_of(pieces).to_bytes(4, "little"), size.to_bytes(4, "little")))


def crc_of(pieces: Sequence[GzipPiece]) -> int:
    """The CRC-32 of all texts, one after the other: the sum of what each contributes, moved past the bytes that follow it."""
    sizes = np.array([piece.size for piece in pieces], np.int64)
    after = sizes.sum() - sizes.cumsum()
    sums = np.array([piece.crc for piece in pieces], np.uint32)
    for bit, tables in enumerate(_zeros()[: int(after.max(initial=0)).bit_length()]):
        moved = np.flatnonzero(after >> bit & 1)
        sums[moved] = _looked_up(tables, sums[moved])
    return int(np.bitwise_xor.reduce(sums, initial=0))


@cache
def _zeros() -> list[Sums]:
    """What 1, 2, 4, 8... bytes of zero do to a CRC: shape (4, 256), by each of its bytes; as in zlib's ``crc32_combine``."""
    bits = np.uint32(1) << np.arange(32, dtype=np.uint32)
    operator = np.concatenate((np.array([_POLYNOMIAL], np.uint32), bits[:-1]))  # one bit of zero, as the images of a CRC's bits
    every = np.arange(256, dtype=np.uint32) << (8 * np.arange(4, dtype=np.uint32))[:, None]
    found = []
    for doubled in range(3 + _SIZE_BITS):
        if doubled >= 3:
            found.append(_applied(operator, every))
        operator = _applied(operator, operator)
    return found


def _applied(operator: Sums, sums: Sums) -> Sums:
    """``operator`` has the images of a CRC's bits."""
    images = np.where(sums[..., None] >> np.arange(32, dtype=np.uint32) & 1, operator, np.uint32(0))
    found: Sums = np.bitwise_xor.reduce(images, axis=-1)
    return found


def _looked_up(tables: Sums, sums: Sums) -> Sums:
    found: Sums = tables[0, sums & 255] ^ tables[1, sums >> 8 & 255] ^ tables[2, sums >> 16 & 255] ^ tables[3, sums >> 24]
    return found
