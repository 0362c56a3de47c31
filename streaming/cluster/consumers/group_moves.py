"""What rounds remember of where each partition of a group stands: when it was committed, since when it stays, and is held back."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streaming.broker.protocol.history_json import KeptCommit
from streaming.cluster.consumers.commit_times import committed_ms, is_ahead
from streaming.cluster.consumers.group_lag import ABSENT, CODES, KNOWN, LagReason, Lags
from streaming.cluster.consumers.group_past import AppendedNext, GroupPast
from streaming.cluster.consumers.group_places import padded
from streaming.common.arrays import Flags, Longs
from streaming.kafka.groups.commit_table import CommitRows
from streaming.kafka.groups.group_rows import NOT_REPLICATED

_COLUMNS = (
    "offset",
    "stamp",
    "committed_ms",
    "delivered",
    "since_ms",
    "readable_ms",
    "seen_ms",
    "watched_ms",
    "held_next",
    "held_ms",
)
_TIMES = ("since_ms", "readable_ms", "seen_ms", "watched_ms", "held_ms")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moves:
    """The columns of `GroupProgress` that say when."""

    committed_ms: Longs
    stopped_since_ms: Longs
    stopped_earlier: Flags
    perhaps_since_ms: Longs
    unmoved_ms: Longs
    held_since_ms: Longs


class MoveMemory:
    """For one thread. A share group moves with all that it is done with, also where its start offset stays.

    Args:
        past: as for `GroupMemory`.
    """

    def __init__(self, past: GroupPast | None = None) -> None:
        self._past = past
        self._columns: dict[str, Longs] = {name: np.empty(0, np.int64) for name in _COLUMNS}
        self._last_ms = 0

    def keep(self, rows_before: Longs, there: Flags) -> None:
        """There are other commits now: each was that row before, if it was there."""
        self._columns = {name: np.where(there, padded(column)[rows_before], ABSENT) for name, column in self._columns.items()}

    def recall(self, items: Longs, kept: Sequence[KeptCommit]) -> None:
        """Take over what a job before has kept of these rows: where they stood, and since when. What they have done since shows itself."""
        for name, values in (
            ("offset", [each.offset for each in kept]),
            ("since_ms", [each.unmoved_ms for each in kept]),
            ("readable_ms", [each.stopped_since_ms for each in kept]),
            ("seen_ms", [each.stopped_since_ms for each in kept]),
            ("watched_ms", [each.stopped_since_ms if each.stopped_earlier else 0 for each in kept]),
            ("held_next", [each.held_next for each in kept]),
            ("held_ms", [each.held_since_ms for each in kept]),
        ):
            self._columns[name][items] = values

    @property
    def unmoved_ms(self) -> Longs:
        """Since when each stood as of the last round."""
        return self._columns["since_ms"]

    def update(self, rows: CommitRows, lags: Lags, appended: AppendedNext, now_ms: int) -> Moves:
        """Take over what a round has found."""
        at = self._columns
        for name in _TIMES:
            at[name] = np.minimum(at[name], now_ms)
        undated = self._move(rows, now_ms)
        stands = self._read(lags, appended, now_ms)
        since = np.where(stands, np.maximum(at["since_ms"], at["readable_ms"]), ABSENT)
        least_ms = np.where(undated, 0, at["since_ms"])  # a coordinator's stamp of a time to come shows nothing
        perhaps = since if self._past is None else np.where(since != ABSENT, np.maximum(least_ms, appended.earliest_ms), ABSENT)
        return Moves(
            committed_ms=at["committed_ms"],
            stopped_since_ms=since,
            stopped_earlier=(since != ABSENT) & ((perhaps < since) | ((since <= at["watched_ms"]) & np.bool_(self._past is None))),
            perhaps_since_ms=perhaps,
            unmoved_ms=at["since_ms"],
            held_since_ms=self._held(lags, appended, now_ms),
        )

    def _move(self, rows: CommitRows, now_ms: int) -> Flags:
        """Take over where each is committed, and since when. Returns of which that is not shown by the time of its commit."""
        at = self._columns
        new = at["since_ms"] == ABSENT
        stored = np.where(rows.commit_ms >= 0, np.minimum(rows.commit_ms, now_ms), now_ms)
        waits = rows.offset == NOT_REPLICATED  # what counts is not known for a moment: it has not moved by that
        moved = ~waits & (new | (at["offset"] != rows.offset) | (rows.share & (at["delivered"] != rows.delivered)))
        self._date(rows, waits, now_ms)
        undated: Flags = np.zeros(len(rows), np.bool_)
        if self._past is not None:
            since_ms = self._past.since(rows)
            stored, undated = np.where(since_ms >= 0, np.minimum(since_ms, now_ms), now_ms), is_ahead(since_ms, now_ms)
        at["since_ms"] = np.where(new & ~waits, stored, np.where(moved, np.maximum(stored, min(self._last_ms, now_ms)), at["since_ms"]))
        self._last_ms = now_ms
        at["offset"] = np.where(waits, at["offset"], rows.offset)
        at["delivered"] = np.where(waits, at["delivered"], rows.delivered)
        return undated

    def _date(self, rows: CommitRows, waits: Flags, now_ms: int) -> None:
        """Take over when the commits were made; of one that is not known for a moment it stays."""
        at = self._columns
        dated = committed_ms(rows.commit_ms, at["committed_ms"], at["stamp"], self._last_ms, now_ms)
        at["committed_ms"] = np.where(waits, np.minimum(at["committed_ms"], now_ms), dated)
        at["stamp"] = np.where(waits, at["stamp"], rows.commit_ms)

    def _read(self, lags: Lags, appended: AppendedNext, now_ms: int) -> Flags:
        """Take over since when a record is readable. Returns where one is that is not read."""
        at, known, readable = self._columns, lags.reason == KNOWN, lags.left > 0
        begins = readable & (at["readable_ms"] == ABSENT)
        began_ms = now_ms if self._past is None else np.minimum(appended.latest_ms, now_ms)
        at["readable_ms"] = np.where(known & ~readable, ABSENT, np.where(begins, began_ms, at["readable_ms"]))
        at["seen_ms"] = np.where(known, np.where(readable, now_ms, ABSENT), at["seen_ms"])
        at["watched_ms"] = np.where(known & (at["watched_ms"] == ABSENT), now_ms, at["watched_ms"])
        recounted = (lags.reason == CODES[LagReason.FILLING]) & (lags.offsets > 0)  # as after each compaction: it stands on meanwhile
        stands: Flags = (known & readable) | (recounted & (at["seen_ms"] != ABSENT) & (at["seen_ms"] >= at["since_ms"]))
        return stands

    def _held(self, lags: Lags, appended: AppendedNext, now_ms: int) -> Longs:
        """Since when the next record of each is held back. Nothing above the last stable offset was ever readable, so since its append."""
        at, held = self._columns, lags.held
        began_ms = np.minimum(appended.latest_ms, now_ms)
        begins = held & ((at["held_ms"] == ABSENT) | (at["held_next"] != lags.next_offset))
        goes_on = held | (lags.reason != KNOWN)  # what is not known for a moment has not ended by that
        at["held_ms"] = np.where(begins, began_ms, np.where(goes_on, at["held_ms"], ABSENT))
        at["held_next"] = np.where(begins, lags.next_offset, at["held_next"])
        return np.where(held, at["held_ms"], ABSENT)
