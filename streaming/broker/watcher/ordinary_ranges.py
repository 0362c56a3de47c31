"""The ranges of many ordinary logs as columns: what is published of them, and where each log stands after its own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streaming.broker.journal.blocks import AppendedRanges
from streaming.broker.journal.cursor import Cursor
from streaming.broker.watcher.cursors import went_on
from streaming.broker.watcher.tail import Tail
from streaming.common.arrays import Longs
from streaming.common.column_types import defaults_of
from streaming.common.event_row import EVENT, Event
from streaming.common.log_key import KEY, LogKey, key_arrays
from streaming.common.rows import Kind
from streaming.kafka.formats.layout import HEADER_BYTES
from streaming.kafka.scan.arrivals import NO_ARRIVALS, AppendDelays, Appended, arrivals, on_time
from streaming.kafka.scan.producer_states import Producers, Taken, take_ranges
from streaming.kafka.scan.sums import COUNTS, sum_columns, sum_ranges
from streaming.kafka.scan.whole_pieces import PlainRanges

_WHOLE = np.zeros(1, np.intp)
_DEFAULTS = defaults_of(Event)


@dataclass(frozen=True, slots=True)
class OrdinaryFacts:
    """What the metadata says of a log in a leader epoch.

    ``leads``: 1, 0, or -1 if that cannot be known; ``retention_ms``: how long its leader keeps a record, -1 for ever or not known.
    """

    leads: int
    retention_ms: int
    compacts: bool
    judges_expiry: bool


@dataclass(frozen=True, slots=True, eq=False)
class OrdinaryRanges:
    """Ranges that were read at the cursors of these tails, one of each, in order.

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
    ) -> "OrdinaryRanges":
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
        events = AppendedRanges(
            logs, summed["base_offset"], summed["next_offset"], summed["leader_epoch"], summed["bytes"], _events(logs, columns)
        )
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
