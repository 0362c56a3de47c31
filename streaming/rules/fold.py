"""The fold of one shard: takes rows, and returns the resulting states and the changes."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

from streaming.common.event_row import EventRow
from streaming.common.log_key import LogKey, key_of
from streaming.common.rows import SKIP_REASONS, Change, Kind
from streaming.rules import coordinator_state, log_fold, unclean_losses
from streaming.rules.counters import EVERYTHING, begins_among
from streaming.rules.log_state import LogState, new_log, residue
from streaming.rules.whereabouts import CensusEnd, gone_from

log = logging.getLogger(__name__)

_STEPS: dict[str, Callable[[LogState, EventRow], LogState]] = {
    Kind.TRUNCATED: log_fold.truncated,
    Kind.SKIPPED: log_fold.skipped,
    Kind.CORRUPT: log_fold.corrupt,
}


class ShardFold:
    """Folds one micro-batch of one shard.

    Args:
        shard: the shard's number.
        marks: how far the rows of each agent were folded before.
        find: returns the state of a log after the last micro-batch, or None.
        keys: returns the keys of all logs in the shard. It is called only to compare replicas or a census.
        lacking: the logs that a census may lack, if all others were checked already; None for all.
        cut: returns the part of an append from an offset on; None if the row does not list its batches.
        overwritten_from: returns the first offset of an append that was written in a later leader epoch than the given one; None likewise.
    """

    def __init__(
        self,
        shard: int,
        marks: Mapping[str, Mark],
        *,
        find: Callable[[LogKey], LogState | None],
        keys: Callable[[], Iterable[LogKey]],
        cut: Callable[[EventRow, int], EventRow | None],
        overwritten_from: Callable[[EventRow, int], int | None],
        lacking: Iterable[LogKey] | None = None,
    ) -> None:
        self.touched: dict[LogKey, LogState | None] = {}
        self.marks = dict(marks)
        self._before = dict(marks)
        self._shard = shard
        self._find = find
        self._keys = keys
        self._may_lack = lacking
        self._cut = cut
        self._overwritten_from = overwritten_from
        self._arrived: list[LogChange] = []
        self._recalled = False
        self._in_census: set[LogKey] = set()
        self._leaving: dict[LogKey, EventRow] = {}
        self._last: tuple[str, str, int, int] | None = None
        self._replicas: defaultdict[tuple[str, int, str], dict[LogKey, None]] | None = None

    def fold(self, rows: Iterable[EventRow]) -> None:
        """Fold all rows of a micro-batch. They come in any order, because neither a shuffle nor pandas keeps one."""
        for row in sorted(rows, key=_place):
            if row.kind == Kind.ARRIVED:  # even if its point was reached before: the receiver may need it again
                self._arrived.append(LogChange(Change.ARRIVED, _point(row)))
                continue
            if row.kind == Kind.RECALL:  # it has no journal, so no mark covers it
                self._recalled = True
                continue
            before = self._before.get(row.agent)
            if _place(row) == self._last or (before is not None and before.covers(row)):
                continue
            self._last = _place(row)
            self.marks[row.agent] = Mark(row.journal, row.seq)
            if self._leaving:
                self._settle(row)
            if row.kind == Kind.CENSUS_END:
                self._end_census(row)
            elif row.kind == Kind.GONE:
                self._gone(row)
            elif row.topic:
                self._step(row)
            else:
                _not_known(row)
        self._leave_all()

    def _get(self, key: LogKey) -> LogState | None:
        return self.touched[key] if key in self.touched else self._find(key)

    def _step(self, row: EventRow) -> None:
        key = key_of(row)
        state = self._get(key)
        if row.kind == Kind.APPEARED:
            self.touched[key] = coordinator_state.taken(state, log_fold.appeared(state, row), row)
        elif row.kind == Kind.CENSUS:
            self._in_census.add(key)
        elif row.kind == Kind.FOUND:
            if state is not None and not state.departed:
                after = self.touched[key] = log_fold.listed(state, row)
                self._learn(after)
        elif row.kind == Kind.UNCLEAN:
            if state is not None:
                self._set(unclean_losses.elected(state, row, self._others(key)))
        elif row.kind == Kind.APPENDED or row.kind in _STEPS:
            # the row of a truncation contains only where the log was cut off
            begins = row.next_offset if row.kind == Kind.TRUNCATED else row.base_offset
            if state is None:
                state = new_log(row, begins)
            elif state.departed:
                state = log_fold.appeared(state, replace(row, next_offset=begins, transactions=None))
            after = self._append(state, row) if row.kind == Kind.APPENDED else _STEPS[row.kind](state, row)
            after = self.touched[key] = coordinator_state.taken(state, after, row)
            self._learn(after)
        else:
            _not_known(row)

    def _learn(self, state: LogState) -> None:
        """Add to an unclean election what is known only now about its losses."""
        if unclean_losses.is_late(state):
            self._set(unclean_losses.learnt(state, self._others(state.key)))

    def _set(self, states: Iterable[LogState]) -> None:
        self.touched.update((state.key, state) for state in states)

    def _append(self, state: LogState, row: EventRow) -> LogState:
        if log_fold.overwrites(state, row):
            offset = self._overwritten_from(row, state.log_epoch)
            if offset is None and (row.settled or not log_fold.straddles(state, row)):
                offset = row.base_offset  # seen when it was appended: the log did end where the row begins
            if offset is not None and offset < state.log_end_offset:
                state = log_fold.overwritten(state, row, offset)
        if state.shared_watermark >= 0 and row.log_epoch > state.shared_epoch:
            parts_at = self._overwritten_from(row, state.shared_epoch)
            if parts_at is None:  # seen when it was appended, or somewhere within: then less is certainly gone
                parts_at = row.base_offset if row.settled else row.next_offset
            state = log_fold.begun_anew(state, row, parts_at)
        share_begins = EVERYTHING if row.leads >= 0 else begins_among(row, state, self._others(state.key))
        if log_fold.straddles(state, row):
            rest = self._cut(row, state.log_end_offset)
            if rest is None:
                return log_fold.uncut(state, row) if log_fold.is_of_another(state, row) else log_fold.lost(state, row)
            return log_fold.counted(state, rest, share_begins, self._cut)
        return log_fold.appended(state, row, share_begins, self._cut)

    def _others(self, key: LogKey) -> Iterator[LogState]:
        """The other replicas of a log's partition."""
        if self._replicas is None:  # computed only when needed: usually the agent knows whether its replica led
            self._replicas = defaultdict(dict)
            for known in chain(self._keys(), self.touched):
                self._replicas[_partition(known)][known] = None
        of_partition = self._replicas[_partition(key)]
        of_partition[key] = None
        for other in of_partition:
            state = self._get(other) if other != key else None
            if state is not None:
                yield state

    def _gone(self, row: EventRow) -> None:
        key, deleted = key_of(row), row.reason == "deleted"
        state = self._get(key)
        if state is not None and not state.departed:
            after = gone_from(state, row)
            if after is None and row.log_dir:
                self._leaving[key] = row
            else:
                self._leave_or_stay(state, after, deleted=deleted)
        if deleted and not row.log_dir:  # what other replicas left behind goes with their topic
            for other in [other for other in self._others(key) if other.departed]:
                self._leave(other, deleted=True)

    def _settle(self, row: EventRow) -> None:
        """Let logs go that are gone, before what their agent publishes of them next. Rows of another agent may show where one is now."""
        key = key_of(row)
        if row.kind == Kind.CENSUS_END:
            self._leave_all()
        elif key in self._leaving and self._leaving[key].agent == row.agent:
            self._leave_now(key)

    def _leave_all(self) -> None:
        for key in list(self._leaving):
            self._leave_now(key)

    def _leave_now(self, key: LogKey) -> None:
        """Let a log go that is gone from where it was, unless it has been seen elsewhere since."""
        row, state = self._leaving.pop(key), self._get(key)
        if state is not None and not state.departed:
            self._leave_or_stay(state, gone_from(state, row), deleted=row.reason == "deleted")

    def _leave_or_stay(self, state: LogState, after: LogState | None, *, deleted: bool = False) -> None:
        """Take over where a log is now; ``after``: None if it is nowhere any more."""
        if after is None:
            self._leave(state, deleted=deleted)
        else:
            self.touched[state.key] = after

    def _leave(self, state: LogState, *, deleted: bool) -> None:
        if not deleted:
            self.touched[state.key] = state.left()
            return
        self.touched[state.key] = None
        for reason, size, followed in zip(SKIP_REASONS, state.skipped_bytes, state.follower_skipped_bytes, strict=True):
            if size:
                self._skip_in_residue(state.agent, state.broker, reason, size, followed)

    def _skip_in_residue(self, agent: str, broker: int, reason: str, size: int, followed: int) -> None:
        empty = residue(agent, broker, self._shard)
        self.touched[empty.key] = (self._get(empty.key) or empty).skipped(reason, size, followed)

    def _end_census(self, row: EventRow) -> None:
        """Mark the logs as gone that a census lacks: their own event was lost with a journal, or came before this consumer began.

        The states that departed replicas have left go with their topic.
        """
        end = CensusEnd.of(row.log_dir, row.reason, row.topics)
        keys = self._keys() if self._may_lack is None else self._may_lack
        for key in dict.fromkeys([*keys, *(key for key, state in self.touched.items() if state is not None)]):
            state = self._get(key) if end.may_concern(key) and key not in self._in_census else None
            if state is None:
                continue
            if not state.departed and (after := end.without(state)) is not state:
                self._leave_or_stay(state, after, deleted=end.lacks_topic(key))
            elif state.departed and end.lacks_topic(key):
                self._leave(state, deleted=True)
        self._in_census.clear()

    def changes(self) -> Iterator[LogChange]:
        """Return the logs that the rows changed or touched, and all logs if the rows contain a recall.

        The values are absolute, so sending them again is harmless.
        """
        for key, state in self._changed():
            if state is None:
                removed = LogState(agent="", **key._asdict())
                yield LogChange(Change.REMOVED, removed)
            elif not key.topic:
                yield LogChange(Change.RESIDUE, state)
            else:
                yield LogChange(Change.DEPARTED if state.departed else Change.LOG, self._without_known(key, state))
        yield from self._arrived
        if self._recalled:
            yield recalled(self._shard)

    def _changed(self) -> Iterator[tuple[LogKey, LogState | None]]:
        yield from self.touched.items()
        if self._recalled:
            yield from ((key, self._find(key)) for key in list(self._keys()) if key not in self.touched)

    def _without_known(self, key: LogKey, state: LogState) -> LogState:
        """The state without large values that have not changed, except after a recall: then a restart may have lost them."""
        known = self._find(key)
        if known is None or self._recalled:
            return state
        return replace(
            state,
            segments=None if state.segments == known.segments else state.segments,
            coordinator=None if state.coordinator == known.coordinator else state.coordinator,
        )


@dataclass(frozen=True, slots=True)
class Mark:
    """How far an agent's rows have been folded in a shard: up to and including ``seq`` of ``journal``.

    An agent delivers its events in order and without gaps, though some more than once. So one mark identifies every row that comes again,
    also those of logs that no longer exist.

    It needs no more than one journal: a micro-batch has one range of one journal of each agent (`streaming.spark.source.offsets.ranges`). A
    run that begins from scratch at an agent gets a journal of another name, and the one before is never read again. Where a micro-batch is
    run again, the marks are those of before it, as the states are.
    """

    journal: str
    seq: int

    def covers(self, row: EventRow) -> bool:
        """Whether this row has been folded before."""
        return row.journal == self.journal and row.seq <= self.seq


@dataclass(frozen=True, slots=True)
class LogChange:
    """One row out of the fold. For ``ARRIVED`` and ``RECALLED`` see `streaming.common.state_row.STATES`."""

    change: Change
    state: LogState


def _place(row: EventRow) -> tuple[str, str, int, int]:
    return (row.agent, row.journal, row.seq, row.part)


def _point(row: EventRow) -> LogState:
    return LogState(
        agent=row.agent, broker=-1, topic="", partition=-1, topic_id=row.journal, log_end_offset=row.seq, appended_bytes=row.bytes
    )


def _not_known(row: EventRow) -> None:
    log.error("an event of unknown kind is skipped: is the agent of a later version?", extra={"kind": row.kind, "agent": row.agent})


def _partition(key: LogKey) -> tuple[str, int, str]:
    return key.topic, key.partition, key.topic_id


def recalled(shard: int) -> LogChange:
    """The row that closes everything a shard hands out after a recall."""
    return LogChange(Change.RECALLED, LogState(agent="", broker=-1, topic="", partition=shard, topic_id=""))
