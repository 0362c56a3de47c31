"""Records of a topic from evenly spread windows of its last segments, as their producers sent them. Nothing of them is logged or kept.

The windows are bounded, in bytes on the disk and after decompression. What a read alone brought into the page cache, it releases again.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from streaming.broker.disk.locate import scan_on, start_at, walk_on
from streaming.broker.disk.opening import written_ms
from streaming.broker.disk.scanning import written_end
from streaming.broker.disk.segment_files import Segment
from streaming.errors import FormatError
from streaming.kafka.formats.layout import CURRENT_MAGIC, TRANSACTIONAL_BIT
from streaming.kafka.formats.names import PARTITION_METADATA
from streaming.kafka.formats.rebatching import Sent
from streaming.kafka.formats.records import RecordBatch, read_batch, read_record_heads
from streaming.kafka.scan.walk import Bytes

log = logging.getLogger(__name__)

WINDOWS = 8
"""So many of a topic, whatever its size: the spread between them is the error of what is computed from all."""

_SEGMENTS = 4
_OPENED_BYTES = 8 << 20
_MOST_RECORDS = 1 << 16
_RECORD_BYTES = 100  # that an object of its own takes, besides its bytes
_LEAD_BYTES = 4 << 20  # from the last batch that the index leads to up to a window
_SLACK_BYTES = 64 << 10  # behind a window, so that its last batch is whole
_FAR_MS = 1 << 60  # no time is beyond it, whatever a record says
_APART_MS = 1000  # few producers let a record wait for so long
_ASIDE_MS = 600_000  # clocks differ, and a producer may try again
_BACK_MS = 100  # a record that several threads send comes a little late


def sample(logs: Sequence[Sequence[Segment]], most: int, buffer: Bytes, paced: Callable[[int], None]) -> Sample:
    """Read a topic.

    Args:
        logs: the segments of one replica of each partition; the last ones are taken.
        most: bytes on the disk.
        buffer: bounds what is read at once.
        paced: called with the bytes of each read.
    """
    found = Sample()
    begun = {
        each: one[at - 1].modified_ms if at else written_ms(each.directory / PARTITION_METADATA)
        for one in logs
        for at, each in enumerate(one)
    }
    segments = [(each, _size(each)) for one in logs for each in one[-_SEGMENTS:]]
    found.total = sum(size for _, size in segments)
    length = min(most, found.total) / WINDOWS
    whole = found.total <= most
    for number in range(WINDOWS):
        begin = number * length if whole else (number + 0.5) * found.total / WINDOWS - length / 2
        reader = _Window(found, number, whole, begun)
        base = 0
        for segment, size in segments:
            first, last = max(base, round(begin)) - base, min(base + size, round(begin + length)) - base
            if first < last:
                _read(segment, first, last, buffer, paced, reader)
            base += size
    return found


@dataclass(slots=True)
class Sample:
    """What was read of a topic. ``total``: the bytes of the segments it was taken from. ``left_out``: batches, by the reason."""

    total: int = 0
    taken: list[float] = field(default_factory=lambda: [0.0] * WINDOWS)  # bytes of the batches of each window
    batches: int = 0
    records: int = 0
    codecs: Counter[int] = field(default_factory=Counter)  # their bytes
    producers: dict[tuple[str, int, int], Sent] = field(default_factory=dict)  # by directory, producer id and epoch
    unnamed: int = 0  # batches without a producer id
    append_time: int = 0  # batches with the broker's times
    back: int = 0  # records from before the one sent before them
    doubtful: int = 0  # batches whose times hardly are those of sending: too far apart, or not from when their file was written
    left_out: Counter[str] = field(default_factory=Counter)


def _size(segment: Segment) -> int:
    """Without the zeros of a preallocated file; 0 if it is gone."""
    try:
        with segment.open() as file:
            return written_end(file, 0)
    except OSError:
        return 0


@dataclass(slots=True)
class _Window:
    """Puts the batches of a window to those of their producers. ``joins``: it begins where the one before ended.

    ``begun``: before when no file of a segment was written.
    """

    found: Sample
    number: int
    joins: bool
    begun: Mapping[Segment, int]
    opened: int = 0
    _at: set[tuple[str, int, int]] = field(default_factory=set)  # the producers of it so far
    _shifts: dict[tuple[str, int, int], int] = field(default_factory=dict)

    def leave_out(self, reason: str, segment: Segment, position: int, what: str = "") -> None:
        """Count a batch that is not used, and say where it is."""
        self.found.left_out[reason] += 1
        log.warning("batch is left out", extra={"path": str(segment.path), "position": position, "reason": reason, "error": what})

    def take(self, segment: Segment, at: int, position: int, magic: int, piece: Bytes) -> None:
        """Take the batch at ``position`` of the bytes that begin ``at`` a position of the segment."""
        if magic != CURRENT_MAGIC:
            self.found.left_out["of an old format"] += 1
            return
        try:
            batch = read_batch(piece.data, position)
            if batch is not None:
                self._take(segment, batch)
        except FormatError as error:
            self.leave_out("damaged or too large", segment, at + position, str(error))

    def _take(self, segment: Segment, batch: RecordBatch) -> None:
        found, producer = self.found, (str(segment.directory), batch.producer_id, batch.producer_epoch)
        if batch.is_control:  # behind it begins another transaction
            sent = found.producers.get(producer)
            if sent is not None and sent.bodies:
                sent.ends.append(len(sent.bodies))
            return
        if batch.delete_horizon is not None or batch.records_count != batch.last_offset - batch.base_offset + 1:
            found.left_out["cleaned by compaction"] += 1
            return
        if self.opened >= _OPENED_BYTES:
            found.left_out["beyond what is opened of a window"] += 1
            return
        records = [(stamp, body) for _, stamp, body in read_record_heads(batch, _OPENED_BYTES, _MOST_RECORDS, bodies=True)]
        first = batch.base_sequence == 0 and batch.producer_epoch == 0  # each transaction may begin at 0, in an epoch of its own
        sent = found.producers.setdefault(producer, Sent(born=batch.producer_id if first else -1))
        self.opened += sum(len(body) for _, body in records) + _RECORD_BYTES * len(records)
        self._send(sent, producer, records, transactional=bool(batch.attributes & TRANSACTIONAL_BIT))
        found.taken[self.number] += batch.size
        found.batches += 1
        found.records += len(records)
        found.codecs[batch.codec] += batch.size
        found.unnamed += batch.producer_id < 0
        found.append_time += batch.is_log_append_time
        aside = not self.begun[segment] - _ASIDE_MS <= batch.max_timestamp <= segment.modified_ms + _ASIDE_MS
        found.doubtful += aside or batch.max_timestamp - batch.base_timestamp > _APART_MS

    def _send(self, sent: Sent, producer: tuple[str, int, int], records: list[tuple[int, bytes]], *, transactional: bool) -> None:
        """Another window goes on as if nothing lay between, but within a transaction: each batch but the last is as full as ever."""
        before = len(sent.bodies)
        if before and producer not in self._at and not self.joins:
            self._shifts[producer] = sent.sent[-1] - records[0][0]
            if transactional:
                sent.ends.append(before)
        self._at.add(producer)
        shift = self._shifts.get(producer, 0)
        last = sent.sent[-1] if before else max(-_FAR_MS, min(records[0][0], _FAR_MS))
        sent.begins.append(before)
        for stamp, body in records:
            self.found.back += stamp + shift < last - _BACK_MS
            last = min(max(last, stamp + shift), _FAR_MS)
            sent.sent.append(last)
            sent.stamps.append(stamp)
            sent.bodies.append(body)
        sent.windows += [self.number] * len(records)


def _read(segment: Segment, first: int, last: int, buffer: Bytes, paced: Callable[[int], None], reader: _Window) -> None:
    """Hand the batches to the reader that begin in ``[first, last)`` of a segment."""
    at = first
    try:
        with segment.open() as file:
            at, offset = start_at(file, first)
            if first - at > _LEAD_BYTES:
                reader.leave_out("no index leads there", segment, first)
                return
            piece = buffer[: min(len(buffer), last - at + _SLACK_BYTES)]
            for start, scanned in walk_on(file, at, offset, piece, spare_cache=True):
                paced(scanned.end)
                at, offset = start + scanned.end, int(scanned.batches.last_offset[-1]) + 1
                held = piece
                if scanned.end > len(piece):  # one batch, of which nothing but the header was needed
                    held = buffer[: scanned.end]
                    if file.read_into(held, start, spare_cache=True) < scanned.end:
                        reader.leave_out("larger than what is read at once", segment, start)
                        continue
                for position, magic in zip(scanned.batches.positions.tolist(), scanned.batches.magic.tolist(), strict=True):
                    if first <= start + position < last:
                        reader.take(segment, start, position, magic, held)
                if at >= last:
                    return
            if flaw := scan_on(file, at, offset, piece).flaw:
                reader.leave_out("damaged", segment, at, flaw)
    except OSError as error:
        reader.leave_out("not to be read", segment, at, str(error))
