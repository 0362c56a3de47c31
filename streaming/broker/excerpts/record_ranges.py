"""Reads the records of ranges of offsets, each of them a segment as it was when the read was planned.

A range goes by offsets and not by a file: meanwhile compaction may have put another file under the same name, which may hold the next
segments too, and a reader of offsets gets every record once all the same.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from streaming.broker.disk.replay import without_replaced
from streaming.broker.disk.scanning import window as window_buffer
from streaming.broker.disk.segment_files import Segment, list_segments
from streaming.broker.excerpts.damaged_records import OnDamage, RecordDamage
from streaming.broker.excerpts.finding import FormatFlaw
from streaming.broker.excerpts.opened_records import RecordOpener
from streaming.broker.excerpts.record_arrow import RecordArrow
from streaming.broker.excerpts.segment_walk import SegmentReader, Window
from streaming.broker.excerpts.transaction_fates import TransactionFates
from streaming.common.arrays import Flags, Longs
from streaming.errors import LogDirError
from streaming.kafka.formats.layout import CONTROL_BIT, PREFIX_BYTES, TRANSACTIONAL_BIT
from streaming.kafka.scan.headers import Batches, find_flaws
from streaming.kafka.scan.walk import Bytes

log = logging.getLogger(__name__)

_MOST_TRIES = 3
"""So often segments are listed again that were renamed before they could be opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRange:
    """Offsets of a partition from ``begin`` up to ``end``, which is not among them.

    ``stop``: the offset at which what is known to be replicated ends; markers after it do not count. ``committed``: leave out what belongs
    to aborted transactions. ``size``: about the bytes that are read.
    """

    directory: Path
    topic: str
    partition: int
    begin: int
    end: int
    stop: int
    committed: bool
    size: int


class RangeReader:
    """Reads ranges one after the other; for one thread. Its two buffers are all that it holds of the files.

    Args:
        schema: the wanted columns, those of `RecordArrow`.
        fails_on_loss: whether it is an error if what was planned is deleted before it is read; else it is logged, and the rest comes.
    """

    def __init__(self, schema: pa.Schema, damage: RecordDamage, *, fails_on_loss: bool = True) -> None:
        self._schema = schema
        self._damage = damage
        self._fails_on_loss = fails_on_loss
        self._buffer = window_buffer()
        self._ahead: Bytes | None = None

    def read(self, wanted: RecordRange) -> Iterator[pa.RecordBatch]:
        """The rows of a range.

        Raises:
            LogDirError: a segment is gone, or cannot be read.
            FormatError: there is damage, and it makes the query fail.
        """
        try:
            yield from self._read(wanted)
        except OSError as error:
            raise LogDirError(
                f"{wanted.directory}: {error.strerror or error} while offsets from {wanted.begin} on were read: "
                "run the query again once the log dir can be read"
            ) from error

    def _read(self, wanted: RecordRange) -> Iterator[pa.RecordBatch]:
        for _ in range(_MOST_TRIES):
            segments = without_replaced(list_segments(wanted.directory), self._buffer)
            if not segments or segments[0].base_offset > wanted.begin:
                wanted = self._without_deleted(wanted, segments)
            ends = [*(each.base_offset for each in segments[1:]), wanted.end]
            try:
                for number, segment in enumerate(segments):
                    if segment.base_offset < wanted.end and ends[number] > wanted.begin:
                        yield from self._read_one(wanted, segments, number)
                        wanted = replace(wanted, begin=max(wanted.begin, ends[number]))
            except FileNotFoundError:  # renamed between listing and opening
                continue
            return
        self._without_deleted(wanted, segments)

    def _without_deleted(self, wanted: RecordRange, segments: Sequence[Segment]) -> RecordRange:
        """What is left of a range. Raises LogDirError if a loss is one."""
        begins = segments[0].base_offset if segments else wanted.end
        rest = min(begins, wanted.end) if begins > wanted.begin else wanted.end  # else files of it could not be opened
        there = f"its log begins at {begins} now" if segments else "it has no segment now"
        deleted = f"{wanted.directory}: offsets {wanted.begin} to {rest - 1} were deleted after the read was planned, {there}"
        if self._fails_on_loss:
            raise LogDirError(
                f"{deleted}: run the query again, or let it go on with failOnDataLoss=false; a copy of the log dir does not change"
            )
        # in the text: in a Python worker of Spark nobody has set up how other fields are written
        log.warning("deleted: %s; the query goes on, as failOnDataLoss is false", deleted)
        return replace(wanted, begin=rest)

    def _read_one(self, wanted: RecordRange, segments: Sequence[Segment], number: int) -> Iterator[pa.RecordBatch]:
        segment, growing = segments[number], number == len(segments) - 1
        rows = RecordArrow(self._schema, wanted.topic, wanted.partition)
        opener = RecordOpener(rows, self._damage, segment.path, wanted.begin, wanted.end)
        fates: TransactionFates | None = None
        following = segment.base_offset
        with SegmentReader.of(segment, self._report, self._buffer, growing=growing, crcs=True) as reader:
            for window in reader.windows(reader.proven_start(wanted.begin)):
                if (window.batches.base_offset >= wanted.end).all():
                    return
                beyond = None if growing else segments[number + 1].base_offset
                kept, following = self._sound(wanted, window, reader, following, beyond)
                batches = window.batches.take(kept)
                if wanted.committed and fates is None and len(batches) and (batches.attributes & TRANSACTIONAL_BIT).any():
                    fates = self._fates(wanted, segments[number:], window.position)
                if fates is not None and len(batches):
                    batches = batches.take(~fates.aborted(batches))
                data = (batches.attributes & CONTROL_BIT == 0) & (batches.records > 0)
                yield from opener.open(window.buffer, window.position, batches if data.all() else batches.take(data))

    def _fates(self, wanted: RecordRange, segments: Sequence[Segment], position: int) -> TransactionFates:
        if self._ahead is None:
            self._ahead = window_buffer()
        return TransactionFates(segments, position, wanted.stop, self._ahead, self._damage.found)

    def _report(self, flaw: FormatFlaw) -> None:
        self._damage.found(flaw.path, flaw.position, flaw.what)

    def _sound(self, wanted: RecordRange, window: Window, reader: SegmentReader, following: int, beyond: int | None) -> tuple[Flags, int]:
        """Which batches of a window are in the range and may be opened, and the offset after them; what is wrong with others is reported.

        Args:
            following: the smallest offset that the first batch may have.
            beyond: the base offset of the next segment, None in the active one.
        """
        batches, path = window.batches, reader.file.path
        kept: Flags = (batches.last_offset >= wanted.begin) & (batches.base_offset < wanted.end)
        expected = np.concatenate([[following], batches.last_offset + 1])
        for item in np.flatnonzero(_beyond_next(batches, expected, beyond)).tolist():  # an offset is not covered by the CRC
            own = f"offsets {batches.base_offset[item]} to {batches.last_offset[item]}"
            follows = f"{batches.base_offset[item + 1]} follows" if item + 1 < len(batches) else f"{beyond} begins the next segment"
            self._damage.found(path, window.position + int(batches.positions[item]), f"{own}, where {follows}")
            kept[item], expected[item + 1] = False, expected[item]
        placed: Flags = (expected[:-1] >= wanted.begin) & (expected[:-1] < wanted.end)  # by the batch before: its own offset may be wrong
        for flaw in find_flaws(batches, np.arange(len(batches)), expected[:-1]):
            if kept[flaw.item] or placed[flaw.item]:
                self._damage.found(path, window.position + int(batches.positions[flaw.item]), flaw.what)
                kept[flaw.item] = False
        for item in window.wrong[kept[window.wrong]].tolist():
            if beyond is None and item == len(batches) - 1 and _is_unfinished(reader, window, batches):
                kept[item] = False
                continue
            what = "expected bytes with the CRC that the batch names, found others"
            self._damage.found(path, window.position + int(batches.positions[item]), what)
            kept[item] = self._damage.on_damage is not OnDamage.LEAVE_OUT
        return kept, int(expected[-1])


def _beyond_next(batches: Batches, expected: Longs, beyond: int | None) -> Flags:
    """Which batches reach beyond what follows them: a batch that continues well where they are, or the next segment."""
    found: Flags = np.zeros(len(batches), np.bool_) if beyond is None else batches.last_offset >= beyond
    following, before = batches.base_offset[1:], expected[: max(0, len(batches) - 1)]
    # of two that contradict each other, one that continues without a gap is right
    found[:-1] |= (batches.last_offset[:-1] >= following) & (following >= before) & (batches.base_offset[:-1] != before)
    return found


def _is_unfinished(reader: SegmentReader, window: Window, batches: Batches) -> bool:
    """Whether zeros follow the last batch: then a preallocated file ends here, and a writer may be in the middle of this batch."""
    after = reader.read(window.position + int(batches.positions[-1] + batches.size[-1]), PREFIX_BYTES)
    return bool(after) and not any(after)
