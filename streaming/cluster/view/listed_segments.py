"""The segments of many logs as columns, with their limits: made again only of logs that have changed, for they take most of a page.

Where groups have committed, a page follows each round over them, with the same logs: it takes what the round has made, and only the clock
has gone on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter, is_not

import numpy as np
from numpy.typing import NDArray

from streaming.cluster.view.decisions import Decided
from streaming.cluster.view.replica_offsets import ReplicaOffsets
from streaming.cluster.view.value_matrix import Carried, Columns
from streaming.common.arrays import Longs
from streaming.common.rows import SEGMENTS, TIME_UNKNOWN
from streaming.rules.limits import Limiter, Limits
from streaming.rules.retention_rule import LogFacts, SegmentColumns

_SEGMENTS_OF = attrgetter("segments")

_NEWEST = ("active_segment", "active_position", "active_max_timestamp_ms", "last_append_ms")


class ListedMemory:
    """The segments that were made last. Safe from any thread: each takes what is there, and what it makes replaces it whole."""

    def __init__(self) -> None:
        self._last: _Made | None = None

    def listed(
        self,
        logs: Columns,
        carried: Sequence[Carried],
        names: Sequence[str],
        decided: Decided,
        replica_offsets: ReplicaOffsets,
        limiter: Limiter,
    ) -> Listed:
        """The segments of some logs; arguments as those of `streaming.cluster.view.retention_columns.keep`."""
        listed = [item for item, each in enumerate(carried) if each.segments is not None and len(each.segments)]
        items = np.array(listed, np.intp)
        columns = (
            logs["log_start_offset"],
            logs["log_end_offset"],
            replica_offsets["high_watermark"],
            replica_offsets["last_stable_offset"],
            decided.cleaner_checkpoint,
            logs["oldest_timestamp"],
            decided.moving,
            *(logs[name] for name in _NEWEST),
        )
        inputs = _Inputs(
            items=items,
            carried=[carried[item] for item in listed],
            columns=tuple(column[items] for column in columns),
            limits=_limits(logs, names, decided, items, limiter),
        )
        last = self._last
        changed = None if last is None else inputs.changed_since(last.inputs)
        if last is None or changed is None:
            facts = list(_facts(inputs))
        elif not len(changed):
            return last.listed
        else:
            facts = last.facts.copy()
            for number, found in zip(changed.tolist(), _facts(inputs.of(changed)), strict=True):
                facts[number] = found
        made = Listed(items=items, limits=inputs.limits, logs=SegmentColumns(facts))
        self._last = _Made(inputs=inputs, facts=facts, listed=made)
        return made


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Listed:
    """The logs whose segments have been published: their ``items``, their ``limits``, and their segments as columns, in the same order."""

    items: NDArray[np.intp]
    limits: list[Limits]
    logs: SegmentColumns


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Inputs:
    """What segments are made of. Lists of segments are compared by identity: another list is another array."""

    items: NDArray[np.intp]
    carried: list[Carried]
    columns: tuple[Longs, ...]
    limits: list[Limits]

    def changed_since(self, before: _Inputs) -> NDArray[np.intp] | None:
        """The indexes of the logs that are not as they were before, None if these are others or have other limits."""
        if not (np.array_equal(self.items, before.items) and self.limits == before.limits):
            return None
        changed = np.fromiter(map(is_not, map(_SEGMENTS_OF, self.carried), map(_SEGMENTS_OF, before.carried)), np.bool_, len(self.items))
        for column, earlier in zip(self.columns, before.columns, strict=True):
            changed |= column != earlier
        return np.flatnonzero(changed)

    def of(self, chosen: NDArray[np.intp]) -> _Inputs:
        """Those of some logs, by their indexes."""
        numbers = chosen.tolist()
        return _Inputs(
            items=self.items[chosen],
            carried=[self.carried[number] for number in numbers],
            columns=tuple(column[chosen] for column in self.columns),
            limits=[self.limits[number] for number in numbers],
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Made:
    """What was made last, and of what: most logs of a large cluster rest, and keep their ``facts``."""

    inputs: _Inputs
    facts: list[LogFacts]
    listed: Listed


def _limits(logs: Columns, names: Sequence[str], decided: Decided, items: NDArray[np.intp], limiter: Limiter) -> list[Limits]:
    """The limits of the logs ``items``: computed once for each topic of a broker, however many logs it has."""
    limits_of, broker = limiter.now(), logs["broker"]
    _, first, numbers = np.unique(logs["topic"][items] << 32 | decided.configs[items] + 1, return_index=True, return_inverse=True)
    found = [limits_of(int(broker[item]), names[item], decided.text(item)) for item in items[first].tolist()]
    return [found[number] for number in numbers.tolist()]


def _facts(inputs: _Inputs) -> Iterator[LogFacts]:
    offsets, newest = inputs.columns[:-4], inputs.columns[-4:]
    segments = (_with_active(each, *last) for each, *last in zip(inputs.carried, *(column.tolist() for column in newest), strict=True))
    rows = zip(segments, inputs.limits, *(column.tolist() for column in offsets), strict=True)
    for each, limits, log_start, log_end, high_watermark, last_stable, checkpoint, oldest, moving in rows:
        yield LogFacts(
            segments=each,
            log_start_offset=log_start,
            log_end_offset=log_end,
            high_watermark=high_watermark,
            last_stable_offset=last_stable,
            cleaner_checkpoint=checkpoint,
            oldest_record_ms=oldest,
            limits=limits,
            moving=moving > 0,
        )


def _with_active(carried: Carried, active: int, position: int, newest: int, modified: int) -> NDArray[np.void]:
    """The segments as they were listed, with what was read since: the last one grew, or another one follows it."""
    segments = carried.segments
    assert segments is not None
    if active < carried.last_segment or (active == carried.last_segment and position <= carried.last_bytes):
        return segments
    if active > carried.last_segment:
        grown = np.empty(len(segments) + 1, SEGMENTS)  # `np.append` takes ten times as long with a structured type
        grown[:-1] = segments
        grown[-1] = (active, position, newest, modified)
        return grown
    grown = segments.copy()
    last = segments[-1]
    largest = int(last["largest_timestamp"])
    grown[-1] = (active, position, largest if largest == TIME_UNKNOWN else max(newest, largest), max(modified, int(last["modified_ms"])))
    return grown
