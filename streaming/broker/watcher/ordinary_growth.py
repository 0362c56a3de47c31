"""Reads what was appended to many ordinary logs in one pass: nothing is looked at log by log that can be looked at as columns.

A log is ordinary if `Tail.is_ordinary`, and what it has grown by is plain: `streaming.kafka.scan.headers`. Any other log is left to
`streaming.broker.watcher.reading`, before anything of it has changed. The events are the same on both ways.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streaming.broker.disk.segment_files import LARGE_BYTES
from streaming.broker.journal.blocks import AppendedRanges
from streaming.broker.journal.cursor import Cursor
from streaming.broker.watcher.cluster_knowledge import Cluster, Leads
from streaming.broker.watcher.cursors import went_on
from streaming.broker.watcher.reading import Noting
from streaming.broker.watcher.tail import Tail
from streaming.common.arrays import Longs
from streaming.common.column_types import defaults_of
from streaming.common.event_row import EVENT, Event
from streaming.common.log_key import KEY, LogKey, key_arrays
from streaming.common.rows import Kind
from streaming.kafka.formats.layout import HEADER_BYTES, OPAQUE_HEADER
from streaming.kafka.scan.headers import PieceHeaders, PlainRanges, headers_of_whole, plain_ranges
from streaming.kafka.scan.producer_states import Producers, Taken, take_ranges
from streaming.kafka.scan.sums import COUNTS, NO_ARRIVALS, AppendDelays, Appended, arrivals, on_time, sum_columns, sum_ranges
from streaming.kafka.scan.walk import Bytes, batch_size_at
from streaming.rules.config_values import UNLIMITED

log = logging.getLogger(__name__)

_WHOLE = np.zeros(1, np.intp)
_DEFAULTS = defaults_of(Event)

FEW_LOGS = 8
"""So few logs are read faster one by one."""


class OrdinaryReader:
    """Reads ordinary logs that have grown, many at once. Only the watcher's thread uses it.

    Args:
        buffer: is used again and again; a log that has grown by more is left.
        note: as of `GrowthReader`.
    """

    def __init__(self, cluster: Cluster, clock_ms: Callable[[], int], note: Noting | None, buffer: Bytes) -> None:
        self._cluster = cluster
        self._clock_ms = clock_ms
        self._note = note
        self._buffer = buffer
        self._facts: dict[tuple[LogKey, int], OrdinaryFacts] = {}
        self._version = -1  # of the metadata, of which these facts are

    def read(self, tails: Sequence[Tail], looked_ms: int) -> OrdinaryRound:
        """Read logs that are ordinary and have grown since their end was reached: up to the sizes that their files had at a look.

        Args:
            looked_ms: before that look. What has come since then is not read, so it may have come right after it.
        """
        version = self._cluster.version()
        if version != self._version:
            self._version, self._facts = version, {}
        try:
            ranges = self._ranges(self._read_files(tails))
        except Exception as error:  # the bytes of one log must not end the agent: read by itself, it is found
            log.warning("logs are read one by one, because they could not be read together", exc_info=error, extra={"logs": len(tails)})
            ranges = None
        if ranges is None:
            return OrdinaryRound(None, (), tails)
        now_ms = self._clock_ms()
        rows = zip(ranges.tails, ranges.cursors, ranges.producers, ranges.noted(), strict=True)
        for item, (tail, after, taken, (records, size, seen_ms)) in enumerate(rows):
            if self._note is not None:
                self._note.note_plain(tail, after.next_offset, records, size, seen_ms, partial(ranges.plain.of, item))
            tail.take_range(after, taken, looked_ms, now_ms)
        read = set(ranges.tails)
        return OrdinaryRound(ranges.events, ranges.tails, [tail for tail in tails if tail not in read])

    def _read_files(self, tails: Sequence[Tail]) -> _ReadFiles:
        files = _ReadFiles()
        large: list[Tail] = []
        small: list[Tail] = []
        for tail in tails:
            (large if batch_size_at(tail.cursor.anchor) >= LARGE_BYTES else small).append(tail)
        self._read_bytes([*small, *self._read_headers(large, files)], files)
        return files

    @staticmethod
    def _read_headers(tails: Sequence[Tail], files: _ReadFiles) -> list[Tail]:
        """Read only the headers of logs whose last batch was large; returns those in which smaller ones come after it."""
        headers: list[bytes] = []
        counts, smaller = [], []
        for tail in tails:
            cursor, file = tail.cursor, tail.file
            if file is None:
                continue
            try:
                own, modified_ms = file.read_headers(cursor.position, tail.size, cursor.anchor, cursor.anchor_position)
            except OSError as error:
                _note_unread(tail, error)
                continue
            if modified_ms >= 0:
                files.add(tail, modified_ms)
                headers += own
                counts.append(len(own))
            elif own:
                smaller.append(tail)
        files.headers.append(PieceHeaders(np.frombuffer(b"".join(headers), OPAQUE_HEADER), np.array(counts, np.int64)))
        return smaller

    def _read_bytes(self, tails: Sequence[Tail], files: _ReadFiles) -> None:
        starts: list[int] = []
        filled = 0
        for tail in tails:
            cursor, file = tail.cursor, tail.file
            room = tail.size - cursor.position
            if file is None or not 0 < room <= len(self._buffer):
                continue
            if filled + room > len(self._buffer):
                self._take_headers(files, starts, filled)
                starts, filled = [], 0
            try:
                into = self._buffer[filled : filled + room]
                modified_ms = file.read_growth(into, cursor.position, cursor.anchor, cursor.anchor_position)
            except OSError as error:
                _note_unread(tail, error)
                continue
            if modified_ms >= 0:
                files.add(tail, modified_ms)
                starts.append(filled)
                filled += room
        self._take_headers(files, starts, filled)

    def _take_headers(self, files: _ReadFiles, starts: list[int], filled: int) -> None:
        if starts:
            begins = np.array(starts, np.int64)
            files.headers.append(headers_of_whole(self._buffer, begins, np.append(begins[1:], filled)))

    def _ranges(self, files: _ReadFiles) -> OrdinaryRanges | None:
        """The ranges of those logs in which nothing is unusual, None if there are none."""
        facts = [self._facts_of(tail) for tail in files.tails]
        known = np.array([each is not None for each in facts], bool)
        if not known.any():
            return None
        counts = np.concatenate([each.counts for each in files.headers])
        headers = np.concatenate([each.headers for each in files.headers])
        if not known.all():
            headers, counts = headers[np.repeat(known, counts)], np.where(known, counts, 0)
        plain = plain_ranges(PieceHeaders(headers, counts), *_cursor_columns(files.tails))
        kept = plain.kept.tolist()
        if not kept:
            return None
        tails, own = [files.tails[item] for item in kept], [each for item in kept if (each := facts[item]) is not None]
        return OrdinaryRanges.of(tails, own, plain, np.array(files.modified_ms, np.int64)[plain.kept], self._clock_ms())

    def _facts_of(self, tail: Tail) -> OrdinaryFacts | None:
        """None: who led is not known yet, or has to be found out."""
        key = tail.cursor.log, tail.cursor.log_epoch
        known = self._facts.get(key)
        if known is not None:
            return known
        leads = self._cluster.leads(*key)
        if leads not in (Leads.YES, Leads.NO, Leads.UNKNOWN):
            return None
        limits = self._cluster.limits(key[0])
        retention_ms = limits.expires_ms if leads is Leads.YES else UNLIMITED
        self._facts[key] = OrdinaryFacts(int(leads), retention_ms, limits.compacts, limits.judges_expiry)
        return self._facts[key]


@dataclass(frozen=True, slots=True)
class OrdinaryFacts:
    """What the metadata says of a log in a leader epoch.

    ``leads``: 1, 0, or -1 if that cannot be known; ``retention_ms``: how long its leader keeps a record, -1 for ever or not known.
    """

    leads: int
    retention_ms: int
    compacts: bool
    judges_expiry: bool


@dataclass(frozen=True, slots=True)
class OrdinaryRound:
    """The result of a round: the events, the tails that were moved, and those that are unusual after all, which are as they were."""

    ranges: AppendedRanges | None
    read: Sequence[Tail]
    left: Sequence[Tail]


@dataclass(slots=True)
class _ReadFiles:
    """The logs whose files were read: when each was written last, and the headers that were found in it."""

    tails: list[Tail] = field(default_factory=list)
    modified_ms: list[int] = field(default_factory=list)
    headers: list[PieceHeaders] = field(default_factory=list)

    def add(self, tail: Tail, modified_ms: int) -> None:
        """Add a log; its headers have to be added in the same order."""
        self.tails.append(tail)
        self.modified_ms.append(modified_ms)


def _note_unread(tail: Tail, error: OSError) -> None:
    """Read by itself, the log meets the same error, which is handled there."""
    log.debug("log cannot be read now", extra={"log": str(tail.cursor.log), "path": tail.path, "error": str(error)})


@dataclass(frozen=True, slots=True, eq=False)
class OrdinaryRanges:
    """Ranges that were read at the cursors of these tails, one of each, in order.

    The ranges of many ordinary logs as columns: what is published of them, and where each log stands after its own.

    ``seen_ms``: when the append of each was seen; ``cursors`` and ``producers``: after it, None for producers that are not known.
    """

    tails: Sequence[Tail]
    plain: PlainRanges
    records: Longs
    seen_ms: Longs
    cursors: Sequence[Cursor]
    producers: Sequence[Taken | None]
    events: AppendedRanges

    @classmethod
    def of(
        cls, tails: Sequence[Tail], facts: Sequence[OrdinaryFacts], plain: PlainRanges, modified_ms: Longs, now_ms: int
    ) -> OrdinaryRanges:
        """The ranges of tails that have read everything up to their cursors; nothing of a tail changes.

        Args:
            modified_ms: when the file of each was written last.
        """
        summed = sum_columns(plain.batches, plain.firsts)
        looked_ms = np.array([tail.looked_ms for tail in tails], np.int64)
        seen_ms = np.minimum(np.maximum(modified_ms, looked_ms), now_ms)
        cursors = _cursors(tails, plain, summed)
        producers = _producers(tails, plain)
        columns: dict[str, Any] = {name: summed[name] for name in COUNTS} | {
            "log_dir": [str(tail.partition.log_dir.path) for tail in tails],
            "segment": [cursor.segment for cursor in cursors],
            "start_position": plain.batches.positions[plain.firsts],
            "end_position": [cursor.position for cursor in cursors],
            "base_offset": summed["base_offset"],
            "next_offset": summed["next_offset"],
            "log_epoch": summed["leader_epoch"],
            "leads": [each.leads for each in facts],
            "settled": [True] * len(tails),
            "seen_at": seen_ms,
            "max_timestamp": summed["max_timestamp"],
            "active_producers": [_active(taken) for taken in producers],
            "sequence_gaps": [0 if taken is None or each.compacts else taken.gaps for taken, each in zip(producers, facts, strict=True)],
            "high_watermark": [tail.high_watermark for tail in tails],
            "judges_expiry": [each.judges_expiry for each in facts],
        }
        columns |= _delays(plain, summed, facts, looked_ms, now_ms)
        logs = [cursor.log for cursor in cursors]
        events = AppendedRanges(logs, summed["bytes"], _events(logs, columns))
        return cls(tails, plain, summed["records"], seen_ms, cursors, producers, events)

    def noted(self) -> Iterator[tuple[int, int, int]]:
        """The records, the bytes and the time of each range."""
        return zip(self.records.tolist(), self.events.bytes.tolist(), self.seen_ms.tolist(), strict=True)


def _cursors(tails: Sequence[Tail], plain: PlainRanges, summed: Mapping[str, Longs]) -> list[Cursor]:
    lasts = np.append(plain.firsts[1:], len(plain.batches)) - 1
    anchors, positions = plain.batches.headers[lasts].tobytes(), plain.batches.positions[lasts]
    columns = (summed["bytes"], summed["next_offset"], summed["max_timestamp"], positions)
    return [
        went_on(tail.cursor, size, next_offset, newest, anchors[at : at + HEADER_BYTES], position)
        for tail, at, size, next_offset, newest, position in zip(
            tails, range(0, len(anchors), HEADER_BYTES), *(column.tolist() for column in columns), strict=True
        )
    ]


def _producers(tails: Sequence[Tail], plain: PlainRanges) -> list[Taken | None]:
    known = [tail.producers.now for tail in tails]
    taken = take_ranges([Producers.none(1) if each is None else each for each in known], plain.batches, plain.firsts)
    return [None if before is None else after for before, after in zip(known, taken, strict=True)]


def _active(taken: Taken | None) -> int:
    active = None if taken is None else taken.producers.active
    return -1 if active is None else active


def _delays(
    plain: PlainRanges, summed: Mapping[str, Longs], facts: Sequence[OrdinaryFacts], looked_ms: Longs, now_ms: int
) -> dict[str, Any]:
    """The columns of `AppendDelays`: one by one only of ranges that hold a late batch, or one that is ahead."""
    leads: NDArray[np.int64] = np.array([each.leads for each in facts], np.int64)
    retention_ms = np.array([each.retention_ms for each in facts], np.int64)
    usual = on_time(summed, looked_ms, now_ms, retention_ms)
    buckets = np.zeros((len(facts), len(NO_ARRIVALS.append_delay_buckets)), np.int64)
    buckets[:, 0] = np.where(leads == 0, 0, summed["batches"])
    others: dict[int, AppendDelays] = {}
    for item in np.flatnonzero(~usual & (leads != 0)).tolist():
        batches = plain.of(item)
        (sums,) = sum_ranges(batches, _WHOLE)
        others[item] = arrivals(batches, sums, Appended(int(looked_ms[item]), now_ms), facts[item].retention_ms)
    for item, late in others.items():
        buckets[item] = late.append_delay_buckets
    rows = [others.get(item, NO_ARRIVALS) for item in range(len(facts))] if others else [NO_ARRIVALS] * len(facts)
    return {
        "append_delay_buckets": buckets,
        "append_delay_ms": [late.append_delay_ms for late in rows],
        "ahead_batches": [late.ahead_batches for late in rows],
        "expired": [late.expired for late in rows],
    }


def _events(logs: Sequence[LogKey], columns: Mapping[str, Any]) -> pa.RecordBatch:
    """APPENDED events of these logs. Columns that are not given have the default of `Event`; a list has a row of a table for each."""
    given = {**dict(zip(KEY, key_arrays(logs), strict=True)), **columns}
    return pa.RecordBatch.from_arrays([_column(field, given, len(logs)) for field in EVENT], schema=EVENT)


def _column(field: pa.Field, given: Mapping[str, Any], rows: int) -> pa.Array:
    if field.name == "kind":
        return pa.repeat(pa.scalar(str(Kind.APPENDED)), rows)
    if field.name not in given:
        return pa.repeat(pa.scalar(_DEFAULTS[field.name], field.type), rows)
    values = given[field.name]
    return _lists(values) if pa.types.is_list(field.type) else pa.array(values, field.type)


def _lists(table: NDArray[np.int64]) -> pa.Array:
    ends = np.arange(len(table) + 1, dtype=np.int32) * table.shape[1]
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(np.ascontiguousarray(table).reshape(-1)))


def _cursor_columns(tails: Sequence[Tail]) -> tuple[Longs, Longs, Longs]:
    """Position, next offset and leader epoch of each."""
    rows = [(tail.cursor.position, tail.cursor.next_offset, tail.cursor.log_epoch) for tail in tails]
    positions, next_offsets, epochs = np.array(rows, np.int64).T
    return positions, next_offsets, epochs
