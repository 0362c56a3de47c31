"""Event rows for tests of the fold, as small as a test wants them, and a fold that keeps its state between micro-batches."""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from streaming.broker.journal.range_values import cut, overwritten_from
from streaming.common.event_row import EVENTS, EventRow
from streaming.common.log_key import LogKey
from streaming.common.rows import Kind
from streaming.kafka.formats.layout import HEADER
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.sums import pack, sum_ranges
from streaming.rules.fold import LogChange, Mark, ShardFold
from streaming.rules.log_state import LogState
from streaming.rules.whereabouts import topic_numbers

CONTROL = 1 << 5

_OF_A_LOG: dict[str, Any] = {
    **{"agent": "a1", "journal": "j1"},
    **{"broker": 1, "log_dir": "/data", "topic": "orders", "partition": 0, "segment": 0},
}


def row(kind: Kind, seq: int = 1, **values: Any) -> EventRow:
    return EventRow(kind=kind, **{**_OF_A_LOG, "seq": seq, **values})


def census_end(*places: str, topics: Sequence[str] | None = None, **values: Any) -> EventRow:
    """The closing row of a census of these log dirs ("broker:path"), none: of the one of which rows are."""
    known = None if topics is None else topic_numbers(topics)
    return row(Kind.CENSUS_END, **{**values, "topic": "", "partition": -1, "log_dir": "\n".join(places or ["1:/data"]), "topics": known})


def appended(seq: int, base_offset: int, next_offset: int, size: int | None = None, **values: Any) -> EventRow:
    """A range of batches with ten bytes an offset, or ``size`` bytes, in one data batch."""
    count = size if size is not None else 10 * (next_offset - base_offset)
    sums = {"bytes": count, "batches": 1, "records": next_offset - base_offset, "codec_bytes": (count, 0, 0, 0, 0)}
    return row(Kind.APPENDED, seq, **{"base_offset": base_offset, "next_offset": next_offset, **sums, **values})


def batch_of(rows: Sequence[EventRow]) -> pa.RecordBatch:
    """Rows as columns of `EVENTS`."""
    return pa.RecordBatch.from_arrays(
        [pa.array([getattr(each, column.name) for each in rows], column.type) for column in EVENTS], schema=EVENTS
    )


class Item(NamedTuple):
    """A batch in a log."""

    base_offset: int
    next_offset: int
    size: int
    records: int
    epoch: int = 0
    codec: int = 0
    control: bool = False
    magic: int = 2
    timestamp: int = -1


def batches_of(items: Sequence[Item]) -> Batches:
    def column(name: str) -> Any:
        return np.array([getattr(item, name) for item in items], np.int64)

    return Batches(
        positions=np.cumsum(column("size")) - column("size"),
        headers=np.zeros(len(items), HEADER),
        base_offset=column("base_offset"),
        last_offset=column("next_offset") - 1,
        size=column("size"),
        records=column("records"),
        max_timestamp=column("timestamp"),
        leader_epoch=column("epoch"),
        attributes=(column("codec") | CONTROL * column("control")).astype(np.int16),
        magic=column("magic").astype(np.int8),
    )


def range_of(seq: int, items: Sequence[Item], *, detailed: bool = False, **values: Any) -> EventRow:
    """The range that these batches make, with their sums as the agent works them out; ``detailed`` as one that is published again."""
    batches = batches_of(items)
    (sums,) = sum_ranges(batches, np.zeros(1, np.intp))
    found = {field.name: getattr(sums, field.name) for field in fields(sums) if field.name not in ("leader_epoch", "least_timestamp")}
    detail = pack(batches) if detailed else None
    return row(Kind.APPENDED, seq, **{**found, "log_epoch": sums.leader_epoch, "detail": detail, **values})


class Shard:
    """A shard's state between micro-batches."""

    def __init__(self) -> None:
        self.states: dict[LogKey, LogState] = {}
        self.marks: dict[str, Mark] = {}

    def fold(self, *rows: EventRow) -> list[LogChange]:
        """Fold a micro-batch and keep what it leads to."""
        fold = self.look(rows)
        changes = list(fold.changes())  # before it is kept: what was reported already is left out by what was known
        for key, state in fold.touched.items():
            if state is None:
                self.states.pop(key, None)
            else:
                self.states[key] = state
        self.marks = fold.marks
        return changes

    def look(self, rows: Iterable[EventRow]) -> ShardFold:
        """Fold a micro-batch and leave everything as it is."""
        fold = ShardFold(
            7,
            self.marks,
            find=self.states.get,
            keys=lambda: self.states,
            cut=cut,
            overwritten_from=overwritten_from,
        )
        fold.fold(rows)
        return fold

    def log(self, topic: str = "orders", partition: int = 0, broker: int = 1, topic_id: str = "") -> LogState:
        return self.states[LogKey(broker, topic, partition, topic_id)]
