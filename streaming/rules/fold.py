"""The fold of one shard: rows in, the states they lead to and what changed out."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from streaming.rows import SKIP_REASONS, Change, EventRow, Kind
from streaming.rules import throughput
from streaming.rules.log_state import LogKey, LogState, new_log, residue

_STEPS: dict[str, Callable[[LogState, EventRow], LogState]] = {
    Kind.APPENDED: throughput.appended,
    Kind.TRUNCATED: throughput.truncated,
    Kind.SKIPPED: throughput.skipped,
    Kind.CORRUPT: throughput.corrupt,
}


@dataclass(frozen=True, slots=True)
class Changed:
    """One row out of the fold. For ``PICTURE`` only the state's agent counts."""

    change: Change
    state: LogState


class ShardFold:
    """Folds one micro-batch of one shard.

    Args:
        shard: the shard's number.
        find: the state of a log as the last micro-batch left it, or None.
        known: the keys of all logs in the shard with their agents, asked for only when a full picture ends.
        cut: the part of an append from an offset on; None if the row does not tell its batches one by one.
    """

    def __init__(
        self,
        shard: int,
        *,
        find: Callable[[LogKey], LogState | None],
        known: Callable[[], Iterable[tuple[LogKey, str]]],
        cut: Callable[[EventRow, int], EventRow | None],
    ) -> None:
        self.touched: dict[LogKey, LogState | None] = {}
        self._shard = shard
        self._find = find
        self._known = known
        self._cut = cut
        self._pictures: list[Changed] = []
        self._in_picture: set[LogKey] = set()

    def fold(self, rows: Iterable[EventRow]) -> None:
        """Take in the rows of a micro-batch, which come in any order: neither a shuffle nor pandas keeps one."""
        for row in sorted(rows, key=lambda row: (row.agent, row.journal, row.seq, row.part)):
            if row.kind == Kind.BEAT_END:
                self._end_picture(row)
            elif row.kind == Kind.GONE:
                self._gone(row)
            elif row.topic:
                self._step(row)
            else:  # a loss that no log can be named for any more
                self._skip_in_residue(row.agent, row.broker, row.reason, row.bytes)

    def _get(self, key: LogKey) -> LogState | None:
        return self.touched[key] if key in self.touched else self._find(key)

    def _step(self, row: EventRow) -> None:
        key = LogKey(row.broker, row.topic, row.partition, row.topic_id)
        state = self._get(key)
        if row.kind == Kind.APPEARED:
            self.touched[key] = state if state is not None and throughput.repeated(state, row) else throughput.appeared(state, row)
        elif row.kind == Kind.BEAT:
            self._in_picture.add(key)
            if state is not None and not state.departed:
                self.touched[key] = throughput.pictured(state, row)
        else:
            if state is None:
                state = new_log(row, row.base_offset)
            elif throughput.repeated(state, row):
                self.touched[key] = state
                return
            elif state.departed:
                state = throughput.appeared(state, replace(row, next_offset=row.base_offset))
            self.touched[key] = self._counted(state, row)

    def _counted(self, state: LogState, row: EventRow) -> LogState:
        if row.kind == Kind.APPENDED and throughput.straddles(state, row):
            rest = self._cut(row, state.log_end_offset)
            return throughput.lost(state, row) if rest is None else throughput.appended(state, rest)
        return _STEPS[row.kind](state, row)

    def _gone(self, row: EventRow) -> None:
        key = LogKey(row.broker, row.topic, row.partition, row.topic_id)
        state = self._get(key)
        if state is not None and not throughput.repeated(state, row):
            self._leave(replace(state, journal=row.journal, seq=row.seq), deleted=row.reason == "deleted")

    def _leave(self, state: LogState, *, deleted: bool) -> None:
        if not deleted:
            self.touched[state.key] = state.left()
            return
        self.touched[state.key] = None
        for reason, size in _skips(state):
            self._skip_in_residue(state.agent, state.broker, reason, size)

    def _skip_in_residue(self, agent: str, broker: int, reason: str, size: int) -> None:
        empty = residue(agent, broker, self._shard)
        self.touched[empty.key] = (self._get(empty.key) or empty).skipped(reason, size)

    def _end_picture(self, row: EventRow) -> None:
        """What the full picture of an agent lacks is gone: its own event was lost with a journal, or came before this job."""
        everything = dict(self._known())
        everything.update({key: state.agent for key, state in self.touched.items() if state is not None})
        for key, agent in everything.items():
            if agent == row.agent and key.topic and key not in self._in_picture:
                state = self._get(key)
                if state is not None and not state.departed:
                    self._leave(state, deleted=False)
        self._in_picture.clear()
        if row.settled:
            told = LogState(agent=row.agent, broker=row.broker, topic="", partition=-1, topic_id="")
            self._pictures.append(Changed(Change.PICTURE, told))

    def changes(self) -> Iterator[Changed]:
        """What the rows changed, or touched: absolute values, so saying them again is harmless."""
        for key, state in self.touched.items():
            if state is None:
                removed = LogState(agent="", broker=key.broker, topic=key.topic, partition=key.partition, topic_id=key.topic_id)
                yield Changed(Change.REMOVED, removed)
            elif not key.topic:
                yield Changed(Change.RESIDUE, state)
            else:
                yield Changed(Change.DEPARTED if state.departed else Change.LOG, state)
        yield from self._pictures


def _skips(state: LogState) -> Iterator[tuple[str, int]]:
    return ((reason, size) for reason, size in zip(SKIP_REASONS, state.skipped_bytes, strict=True) if size)
