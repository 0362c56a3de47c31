"""The sums over the batches of a log: exact and never rounded. Only the compression ratio is taken from samples."""

from collections.abc import Callable, Iterable

import numpy as np

from streaming.broker.excerpts.segment_walk import SegmentTail, Window
from streaming.common.codecs import CODECS
from streaming.errors import FormatError
from streaming.kafka.formats.layout import CURRENT_MAGIC, DELETE_HORIZON_BIT, HEADER_BYTES, TIMESTAMP_TYPE_BIT
from streaming.kafka.scan.headers import Batches
from streaming.terminal.dump.batch_table import producer_column, transactional
from streaming.terminal.dump.row_table import Cell, RowTable, cells

_NONE = -1
_MARKED_IDS = 1 << 16
_MOST_OPENED_BYTES = 64 << 20
_CODEC_IDS = 8  # the number of values of three bits


class Summary:
    """Sums over the batches of one log, window by window. Control batches count like all others, and are also counted separately."""

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
        self._add_codecs(batches)
        if self._first_offset is None:
            self._first_offset = int(batches.base_offset[0])
        self._next_offset = int(batches.last_offset[-1]) + 1
        self._add_times(batches)
        self._add_producers(batches)
        self._open_one(window, batches, read)

    def end_of(self, tail: SegmentTail) -> None:
        """Add the end of a segment."""
        self.segments += 1
        self.tail = SegmentTail(self.tail.zeros + tail.zeros, self.tail.damaged + tail.damaged)

    def _add_codecs(self, batches: Batches) -> None:
        codec = int(batches.codec[0])
        if (batches.codec == codec).all():  # nearly always: a producer uses one codec only
            self._codec_batches[codec] += len(batches)
            self._codec_bytes[codec] += batches.size.sum()
        else:
            self._codec_batches += np.bincount(batches.codec, minlength=_CODEC_IDS)
            self._codec_bytes += np.bincount(batches.codec, batches.size, _CODEC_IDS).astype(np.int64)

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

    def _add_producers(self, batches: Batches) -> None:
        producers = producer_column(batches, "producer_id")
        least, span = int(producers.min()), int(producers.max()) - int(producers.min())
        if span < _MARKED_IDS:  # nearly always: a mark for each is many times faster than sorting them
            marks = np.zeros(span + 1, bool)
            marks[producers - least] = True
            self._producers.update((np.flatnonzero(marks) + least).tolist())
        else:
            self._producers.update(np.unique(producers).tolist())

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
            ("ratio", self._ratio()),
            ("ratio_batches", self._opened_batches),
            ("zero_tail_bytes", self.tail.zeros),
            ("unreadable_bytes", self.tail.damaged),
        ]
        return cells("summary", path, [name for name, _ in stamped], [[value for _, value in stamped]])

    def _codecs(self) -> dict[str, Cell]:
        names = enumerate((*CODECS, *map(str, range(len(CODECS), _CODEC_IDS))))
        found: Iterable[tuple[int, str]] = ((codec, name) for codec, name in names if self._codec_batches[codec])
        return {name: {"batches": int(self._codec_batches[codec]), "bytes": int(self._codec_bytes[codec])} for codec, name in found}

    def _ratio(self) -> float | None:
        """How many times larger the compressed batches are after decompression, by the samples; None if none is compressed."""
        return round(self._opened_after / self._opened_before, 3) if self._opened_before else None
