"""Opens the records sections of batches: many in one buffer, so that their records are found together.

A section that does not grow beyond some MiB is opened whole. Everything else is opened on its own, record by record: messages of old
formats, what grows larger, and what is damaged.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from streaming.common.arrays import Longs
from streaming.errors import FormatError
from streaming.kafka.formats.decompression import decompress
from streaming.kafka.formats.layout import CURRENT_MAGIC, HEADER_BYTES
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.record_walk import PADDING
from streaming.kafka.scan.walk import Bytes, Positions

GROUP_BYTES = 8 << 20
"""Sections are opened together until they have so many bytes, or so many records: the more there are, the less each record costs."""

GROUP_RECORDS = 64 << 10

WHOLE_BYTES = 32 << 20
"""A section that is larger when it is open is read piece by piece."""

_MOST_PLAIN_BYTES = 1 << 30  # positions in Arrow's columns have 31 bits


@dataclass(frozen=True, slots=True)
class Sections:
    """The open sections of the batches ``items``: each at ``starts`` to ``ends`` of ``data``, which is padded for `walk_records`.

    ``data`` is None for one batch that has to be opened record by record.
    """

    items: slice
    data: Bytes | None
    starts: Positions
    ends: Positions


_NOWHERE = np.empty(0, np.int64)


def open_sections(buffer: Bytes, batches: Batches) -> Iterator[Sections]:
    """The sections of all batches in order; the buffer holds the whole batches, at their positions."""
    kinds = np.where(batches.magic < CURRENT_MAGIC, -1, np.minimum(batches.codec, 1)).astype(np.int64)
    kinds[(kinds == 0) & (batches.size > _MOST_PLAIN_BYTES)] = -1
    changes = np.flatnonzero(np.diff(kinds)) + 1
    for begin, end in zip([0, *changes.tolist()], [*changes.tolist(), len(batches)], strict=True):
        if begin == end:
            continue
        if kinds[begin] < 0:
            yield from (_alone(item) for item in range(begin, end))
        elif kinds[begin] == 0:
            yield from _plain(buffer, batches, begin, end)
        else:
            yield from _compressed(buffer, batches, begin, end)


def _alone(item: int) -> Sections:
    return Sections(slice(item, item + 1), None, _NOWHERE, _NOWHERE)


def _plain(buffer: Bytes, batches: Batches, begin: int, end: int) -> Iterator[Sections]:
    """Batches without a codec: their sections are in the buffer already."""
    starts, ends = batches.positions + HEADER_BYTES, batches.positions + batches.size
    so_many = np.cumsum(batches.records)
    while begin < end:
        by_bytes = int(np.searchsorted(ends[begin:end], starts[begin] + GROUP_BYTES))
        by_records = int(np.searchsorted(so_many[begin:end], so_many[begin] + GROUP_RECORDS))
        following = begin + max(1, min(by_bytes, by_records))
        items = slice(begin, following)
        first, last = int(starts[begin]), int(ends[following - 1])
        if last + PADDING <= len(buffer):
            yield Sections(items, buffer, starts[items], ends[items])
        else:
            yield Sections(items, _padded([buffer[first:last].data]), starts[items] - first, ends[items] - first)
        begin = following


def _compressed(buffer: Bytes, batches: Batches, begin: int, end: int) -> Iterator[Sections]:
    codecs, records = batches.codec.tolist(), batches.records.tolist()
    starts, ends = (batches.positions + HEADER_BYTES).tolist(), (batches.positions + batches.size).tolist()
    made: list[bytearray] = []
    size, many, first = 0, 0, begin
    for item in range(begin, end):
        try:
            section = decompress(codecs[item], buffer[starts[item] : ends[item]].data, WHOLE_BYTES)
        except FormatError:  # damaged, or too large: whoever opens it record by record gets as far as possible, and says what is wrong
            if made:
                yield _joined(made, slice(first, item))
            yield _alone(item)
            made, size, many, first = [], 0, 0, item + 1
            continue
        made.append(section)
        size, many = size + len(section), many + records[item]
        if size >= GROUP_BYTES or many >= GROUP_RECORDS:
            yield _joined(made, slice(first, item + 1))
            made, size, many, first = [], 0, 0, item + 1
    if made:
        yield _joined(made, slice(first, end))


def _joined(made: list[bytearray], items: slice) -> Sections:
    ends: Longs = np.cumsum([len(each) for each in made], dtype=np.int64)
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
    return Sections(items, _padded(made), starts, ends)


def _padded(parts: list[bytearray] | list[memoryview]) -> Bytes:
    return np.frombuffer(b"".join([*parts, bytes(PADDING)]), np.uint8)
