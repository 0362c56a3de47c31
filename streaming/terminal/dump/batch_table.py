"""The batches of a log as a table, one row for each with the terms of Kafka's own dump, and the sums over them."""

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from streaming.broker.disk.segment_walk import SegmentTail, Window
from streaming.common.codecs import CODECS
from streaming.errors import FormatError
from streaming.kafka.formats.layout import CURRENT_MAGIC, DELETE_HORIZON_BIT, HEADER_BYTES, TIMESTAMP_TYPE_BIT, TRANSACTIONAL_BIT
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.soundness import stored_crcs
from streaming.terminal.dump.row_table import Cell, Choices, Column, Flags, Numbers, RowTable, cells

TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime", "NoTimestampType")
_NO_TIMESTAMP_TYPE = 2
_CODEC_NAMES = (*CODECS, "5", "6", "7")  # 5 to 7 are in damaged headers
_MOST_SEQUENCE = 0x7FFFFFFF
_OLD_ATTRIBUTES_SHIFT = 24  # an old message has its attributes in the byte where the CRC of magic 2 begins

_NONE = -1
_MARKED_IDS = 1 << 16
_MOST_OPENED_BYTES = 64 << 20
_CODEC_IDS = 8  # the number of values of three bits


def batch_table(path: str, window: Window, batches: Batches, valid: NDArray[np.bool_] | None) -> RowTable:
    """The table of some batches of a window.

    Args:
        valid: whether each batch has the CRC of its header; None if that was not checked.
    """
    headers = batches.headers
    producer_ids = producer_column(batches, "producer_id")
    base_sequence = producer_column(batches, "base_sequence")
    columns: tuple[Column, ...] = (
        Numbers("position", batches.positions + window.position),
        Numbers("base_offset", batches.base_offset),
        Numbers("last_offset", batches.last_offset),
        Numbers("count", batches.records.astype(np.int32)),
        Numbers("base_sequence", base_sequence),
        Numbers("last_sequence", _last_sequence(base_sequence, headers["last_offset_delta"])),
        Numbers("producer_id", producer_ids),
        Numbers("producer_epoch", producer_column(batches, "producer_epoch")),
        Numbers("leader_epoch", batches.leader_epoch.astype(np.int32)),
        Flags("transactional", transactional(batches)),
        Flags("control", batches.control),
        Numbers("delete_horizon", _delete_horizon(batches), nullable=True),
        Choices("timestamp_type", _timestamp_types(batches), TIMESTAMP_TYPES),
        Numbers("max_timestamp", batches.max_timestamp),
        Numbers("size", batches.size.astype(np.int32)),
        Numbers("magic", batches.magic),
        Choices("codec", batches.codec.astype(np.int8), _CODEC_NAMES),
        Numbers("crc", stored_crcs(batches)),
    )
    if valid is not None:
        columns += (Flags("valid", valid),)
    return RowTable("batch", path, len(batches), columns)


def producer_column(batches: Batches, name: str) -> NDArray[np.integer]:
    """A field of the header that only magic 2 has, -1 in older messages."""
    values: NDArray[np.integer] = batches.headers[name].astype(batches.headers[name].dtype.newbyteorder("="))
    old = batches.magic < CURRENT_MAGIC
    if old.any():
        values[old] = -1
    return values


def _last_sequence(base: NDArray[np.integer], deltas: NDArray[np.integer]) -> NDArray[np.integer]:
    last: NDArray[np.integer] = base + deltas.astype(np.int32)  # after 2^31 - 1 they continue at 0, which the mask makes of the overflow
    last &= _MOST_SEQUENCE
    last[base < 0] = -1
    return last


def transactional(batches: Batches) -> NDArray[np.bool_]:
    """Whether each batch belongs to a transaction, including markers."""
    flags: NDArray[np.bool_] = (batches.attributes & TRANSACTIONAL_BIT) != 0
    return flags


def _delete_horizon(batches: Batches) -> NDArray[np.int64]:
    has = (batches.attributes & DELETE_HORIZON_BIT) != 0
    if not has.any():
        return np.full(len(batches), -1, np.int64)
    return np.where(has, batches.headers["base_timestamp"].astype(np.int64), -1)


def _timestamp_types(batches: Batches) -> NDArray[np.int8]:
    attributes = batches.attributes
    old = batches.magic < CURRENT_MAGIC
    if old.any():  # for an old message, only the codec is kept
        attributes = np.where(old, (batches.headers["crc"] >> _OLD_ATTRIBUTES_SHIFT).astype(np.int16), attributes)
    types: NDArray[np.int8] = ((attributes & TIMESTAMP_TYPE_BIT) != 0).astype(np.int8)
    types[batches.magic == 0] = _NO_TIMESTAMP_TYPE
    return types


class Summary:
    """Sums over the batches of one log, window by window. Control batches count like all others, and are also counted separately.

    The sums over the batches of a log: exact and never rounded. Only the compression ratio is taken from samples.
    """

    def __init__(self) -> None:
        self.segments = 0
        self.tail = SegmentTail()
        self._bytes = self._batches = self._records = self._control = self._transactional = self._old = 0
        self._codec_batches = np.zeros(_CODEC_IDS, np.int64)
        self._codec_bytes = np.zeros(_CODEC_IDS, np.int64)
        self._first_offset: int | None = None
        self._next_offset: int | None = None
        self._least_timestamp = self._largest_timestamp = _NONE
        self._producers: set[int] = set()
        self._opened_batches = self._opened_before = self._opened_after = 0

    def add(self, window: Window, batches: Batches, read: Callable[[int, int], bytes]) -> None:
        """Add the wanted batches of the next window, at least one; ``read`` takes a position in its file and a number of bytes."""
        self._bytes += int(batches.size.sum())
        self._batches += len(batches)
        self._records += int(batches.records.sum())
        self._control += int(np.count_nonzero(batches.control))
        self._transactional += int(np.count_nonzero(transactional(batches)))
        self._old += int(np.count_nonzero(batches.magic < CURRENT_MAGIC))
        codec = int(batches.codec[0])
        if (batches.codec == codec).all():  # nearly always: a producer uses one codec only
            self._codec_batches[codec] += len(batches)
            self._codec_bytes[codec] += batches.size.sum()
        else:
            self._codec_batches += np.bincount(batches.codec, minlength=_CODEC_IDS)
            self._codec_bytes += np.bincount(batches.codec, batches.size, _CODEC_IDS).astype(np.int64)
        if self._first_offset is None:
            self._first_offset = int(batches.base_offset[0])
        self._next_offset = int(batches.last_offset[-1]) + 1
        self._add_times(batches)
        producers = producer_column(batches, "producer_id")
        least, span = int(producers.min()), int(producers.max()) - int(producers.min())
        if span < _MARKED_IDS:  # nearly always: a mark for each is many times faster than sorting them
            marks = np.zeros(span + 1, bool)
            marks[producers - least] = True
            self._producers.update((np.flatnonzero(marks) + least).tolist())
        else:
            self._producers.update(np.unique(producers).tolist())
        self._open_one(window, batches, read)

    def end_of(self, tail: SegmentTail) -> None:
        """Add the end of a segment."""
        self.segments += 1
        self.tail = SegmentTail(self.tail.zeros + tail.zeros, self.tail.damaged + tail.damaged)

    def _add_times(self, batches: Batches) -> None:
        largest = int(batches.max_timestamp.max())
        self._largest_timestamp = max(self._largest_timestamp, largest)
        # the time of the first record, if the header contains it
        stamped = (batches.magic == CURRENT_MAGIC) & ((batches.attributes & (DELETE_HORIZON_BIT | TIMESTAMP_TYPE_BIT)) == 0)
        times = np.where(stamped & (batches.records > 0), batches.headers["base_timestamp"].astype(np.int64), batches.max_timestamp)
        least = int(times.min())
        if least < 0:
            least = int(times[times >= 0].min(initial=largest))
        if least >= 0:
            self._least_timestamp = least if self._least_timestamp < 0 else min(self._least_timestamp, least)

    def _open_one(self, window: Window, batches: Batches, read: Callable[[int, int], bytes]) -> None:
        """Open a sample of each window: its first compressed batch."""
        compressed = np.flatnonzero((batches.codec > 0) & (batches.magic == CURRENT_MAGIC) & (batches.records > 0))
        if not len(compressed):
            return
        from streaming.kafka.formats.decompression import (
            decompressed,  # many logs are not compressed, and the codecs' libraries are slow to import
        )

        item = int(compressed[0])
        data = read(window.position + int(batches.positions[item]), int(batches.size[item]))
        try:
            opened = sum(map(len, decompressed(int(batches.codec[item]), data[HEADER_BYTES:], _MOST_OPENED_BYTES)))
        except FormatError:  # a dump of the records reports it; the ratio from other batches is right without this one
            return
        self._opened_batches += 1
        self._opened_before += len(data)
        self._opened_after += HEADER_BYTES + opened

    def table(self, path: str, topic: str, partition: int | None) -> RowTable:
        """The summary as a table of one row."""
        stamped: list[tuple[str, Cell]] = [
            ("topic", topic or None),
            ("partition", partition),
            ("segments", self.segments),
            ("bytes", self._bytes),
            ("batches", self._batches),
            ("records", self._records),
            ("control_batches", self._control),
            ("transactional_batches", self._transactional),
            ("old_format_batches", self._old),
            ("base_offset", self._first_offset),
            ("next_offset", self._next_offset),
            ("min_timestamp", None if self._least_timestamp < 0 else self._least_timestamp),
            ("max_timestamp", None if self._largest_timestamp < 0 else self._largest_timestamp),
            ("producers", len(self._producers - {_NONE})),
            ("codecs", self._codecs()),
            ("ratio", round(self._opened_after / self._opened_before, 3) if self._opened_before else None),
            ("ratio_batches", self._opened_batches),
            ("zero_tail_bytes", self.tail.zeros),
            ("unreadable_bytes", self.tail.damaged),
        ]
        return cells("summary", path, [name for name, _ in stamped], [[value for _, value in stamped]])

    def _codecs(self) -> dict[str, Cell]:
        names = enumerate((*CODECS, *map(str, range(len(CODECS), _CODEC_IDS))))
        found: Iterable[tuple[int, str]] = ((codec, name) for codec, name in names if self._codec_batches[codec])
        return {name: {"batches": int(self._codec_batches[codec]), "bytes": int(self._codec_bytes[codec])} for codec, name in found}
