"""Offsets that were moved: by a reset or by hand, how often, from where to where, and when last."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streaming.broker.protocol.history_json import KeptCommit
from streaming.cluster.consumers.commit_times import AppendedNext, GroupPast, committed_ms, is_ahead
from streaming.cluster.consumers.group_counting import LOST_LATELY_MS, PAIR_BITS
from streaming.cluster.consumers.group_lag import ABSENT, CODES, KNOWN, Answered, LagReason, Lags, padded
from streaming.cluster.consumers.group_logs import GroupLogs
from streaming.cluster.consumers.group_questions import Question, by_agent, plain_question
from streaming.common.arrays import Flags, Longs
from streaming.kafka.formats.names import OFFSETS_TOPIC
from streaming.kafka.groups.commit_table import CommitRows, Commits
from streaming.kafka.groups.group_rows import NOT_REPLICATED
from streaming.kafka.groups.offset_moves import GroupPresence, MoveKind, OffsetMove, counts, is_notable, kind_of, not_taken_back

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

ONE_OFF_MS = 180_000
"""A commit in an empty group after which no program has gone on for so long was made by hand."""

Place = tuple[str, str, int]
"""Group, topic and partition."""

_BITS = 32
_LOW_BITS = (1 << _BITS) - 1

SETTLED_MS = ONE_OFF_MS
"""A move counts so long after it was seen."""

CERTAIN_MS = 30_000
"""That an offset was beyond the end of its log is certain if the log does not reach it for so long: it may be known a little later."""

COUNTED_WITHIN_MS = 600_000
"""If an agent has not counted the records of a move within this time, its offsets count instead."""

MOST_GROUPS = 10_000
"""Of so many groups of one coordinator it is remembered apart up to where their moves are known."""

_Identity = tuple[str, str, int, int]
"""A `Place`, and the offset of the record in the coordinator's log."""


class MoveCounting:
    """Counts the moves of commits, with the records between. Only the thread that polls uses it.

    ``watches``: moves are counted from poll to poll; a command that polls once shows what the log has.
    """

    def __init__(self, *, watches: bool) -> None:
        self._watches = watches
        self._seen = _Seen()
        self._tracked: dict[_Identity, _Tracked] = {}
        self._groups: Mapping[str, object] | None = None
        self._amounts: dict[PairKind, Amount] = {}
        self._beyond: tuple[CommitRows, Flags] | None = None

    def begin(self, commits: Commits, logs: GroupLogs, steady_ms: int) -> None:
        """A round begins."""
        if self._watches:
            self._seen.look(commits)
        if commits.groups is not self._groups:
            self._groups = commits.groups
            self._take(commits, steady_ms)
        if self._tracked:
            self._place(commits.rows, logs)
        for each in self._tracked.values():
            self._look(each, logs, steady_ms)

    def ask(self, logs: GroupLogs, reads_uncommitted: Flags, most: int) -> list[Question]:
        """What agents are asked: the positions of both ends of each move whose records are not counted, the first ones first."""
        wanted = [each for each in self._tracked.values() if each.log != ABSENT and each.records < 0 and each.there[1] > each.there[0]]
        wanted = [each for each in wanted if logs.reason[each.log] == KNOWN][: most // 2]
        if not wanted:
            return []
        edges = EdgesWanted(
            log=np.array([each.log for each in wanted], np.int64),
            first=np.array([each.there[0] for each in wanted], np.int64),
            end=np.array([each.there[1] for each in wanted], np.int64),
            reads_uncommitted=reads_uncommitted[[each.row for each in wanted]],
        )
        return list(about_edges(logs, edges))

    def answer(self, question: Question, positions: Answered) -> None:
        """Take an agent's answer: of each move first where it begins, then where it ends."""
        begins, ends = np.arange(len(question.log) // 2), np.arange(len(question.log) // 2, len(question.log))
        data, kept = positions.numbers["data"], positions.numbers["data"] - positions.numbers["aborted"]
        before = np.where(question.reads_uncommitted, data, kept)
        same = (positions.edition[begins] == positions.edition[ends]) & (positions.edition[begins] != ABSENT)
        places = zip(question.log[begins].tolist(), question.offset[begins].tolist(), question.offset[ends].tolist(), strict=True)
        counted = {
            (*place, uncommitted): records
            for place, records, known, uncommitted in zip(
                places, (before[ends] - before[begins]).tolist(), same.tolist(), question.reads_uncommitted[begins].tolist(), strict=True
            )
            if known
        }
        for each in self._tracked.values():
            if each.records < 0 and each.log != ABSENT:
                for uncommitted in (False, True):
                    records = counted.get((each.log, *each.there, uncommitted))
                    each.records = each.records if records is None else max(records, 0)

    def finish(self, rows: CommitRows, beyond: Flags, now_ms: int, steady_ms: int) -> Moved:
        """The round is over. ``beyond``: the commits that are certainly beyond the ends of their logs."""
        self._beyond = rows, beyond
        for each in self._tracked.values():
            if each.is_new and not each.done and self._is_due(each, steady_ms):
                self._count(each)
            elif each.is_new and each.is_decided and self._is_counted(each):
                self._amounts.setdefault(self._pair_kind(each), Amount())
        if not self._tracked and not self._amounts:
            return NOTHING_MOVED
        found = [
            FoundMove(row=each.row, move=each.move, kind=each.kind, amount=each.amount)
            for each in self._tracked.values()
            if each.row != ABSENT
        ]
        return Moved(shown=tuple(shown(found, now_ms)), amounts=self._amounts.copy())

    def _take(self, commits: Commits, steady_ms: int) -> None:
        """Take over the moves that agents report now."""
        tracked: dict[_Identity, _Tracked] = {}
        for name, facts in commits.groups.items():
            if not facts.moves:
                continue
            for move in facts.moves:
                identity = (name, move.topic, move.partition, move.record_offset)
                known = self._tracked.get(identity)
                if known is None:
                    is_new = self._watches and self._seen.is_new(name, facts.coordinator, move)
                    known = _Tracked(move=move, pair=ABSENT, is_new=is_new, first_ms=steady_ms)
                known.move = move
                tracked[identity] = known
            self._seen.take(name, facts.coordinator, facts.moves)
        for identity in self._tracked.keys() - tracked.keys():  # it happened, whatever became of its offset
            gone = self._tracked[identity]
            if gone.is_new and not gone.done and gone.pair != ABSENT:
                self._count(gone)
        self._tracked = tracked

    def _place(self, rows: CommitRows, logs: GroupLogs) -> None:
        """Find the moves among the commits of this round, and those that are not decided among the commits of the round before."""
        for each, row in zip(self._tracked.values(), rows_of(rows, [*map(_place_of, self._tracked)]), strict=True):
            each.row, each.log = row, ABSENT
            if row != ABSENT:
                each.log, each.pair = int(logs.of_row[row]), int(rows.key[row] >> PAIR_BITS)
        undecided = {identity: each for identity, each in self._tracked.items() if each.from_beyond is None}
        if self._beyond is None or not undecided:
            return
        before, beyond = self._beyond
        for each, row in zip(undecided.values(), rows_of(before, [*map(_place_of, undecided)]), strict=True):
            if row != ABSENT and beyond[row] and before.offset[row] == each.move.before:
                each.from_beyond = True

    def _look(self, each: _Tracked, logs: GroupLogs, steady_ms: int) -> None:
        """See how much of a move is in its log, and whether that ends before."""
        if each.log == ABSENT:
            return
        move, end = each.move, int(logs.log_end[each.log])
        each.most_end = max(each.most_end, end)
        if each.from_beyond is None and end >= 0 and (not self._watches or steady_ms - each.first_ms >= CERTAIN_MS):
            each.from_beyond = move.before > each.most_end
        if each.records < 0 and end >= 0:
            first, last = sorted((move.before, move.offset))
            each.there = max(first, int(logs.log_start[each.log])), min(last, int(logs.high_watermark[each.log]))
            if each.there[1] <= each.there[0]:
                each.records = 0

    @staticmethod
    def _is_due(each: _Tracked, steady_ms: int) -> bool:
        age_ms = steady_ms - each.first_ms
        return age_ms >= COUNTED_WITHIN_MS or (age_ms >= SETTLED_MS and each.records >= 0)

    @staticmethod
    def _is_counted(each: _Tracked) -> bool:
        return each.pair != ABSENT and counts(each.move, each.kind)

    def _count(self, each: _Tracked) -> None:
        each.done = True
        if self._is_counted(each):
            name = self._pair_kind(each)
            self._amounts[name] = self._amounts.get(name, Amount()) + each.amount

    @staticmethod
    def _pair_kind(each: _Tracked) -> PairKind:
        return PairKind(each.pair, each.kind, each.move.forwards)


@dataclass(slots=True)
class _Seen:
    """Up to which offset of each coordinator's log its moves are known: at the first look, and of groups that had some since."""

    first: dict[int, int] = field(default_factory=dict)
    of_group: dict[int, dict[str, int]] = field(default_factory=dict)

    def look(self, commits: Commits) -> None:
        """A poll begins. A log that has lost its end says again what comes after."""
        for log in commits.logs:
            if log.topic != OFFSETS_TOPIC or not log.observed:
                continue
            first, groups = self.first.setdefault(log.partition, log.upto), self.of_group.get(log.partition, {})
            if log.complete and log.upto < max([first, *groups.values()]):
                self.first[log.partition] = min(first, log.upto)
                self.of_group[log.partition] = {name: min(upto, log.upto) for name, upto in groups.items()}

    def is_new(self, group: str, coordinator: int, move: OffsetMove) -> bool:
        """Whether a move has come since the last look at its group."""
        upto = max(self.of_group.get(coordinator, {}).get(group, 0), self.first.get(coordinator, move.effective_offset + 1))
        return move.effective_offset >= upto

    def take(self, group: str, coordinator: int, moves: Iterable[OffsetMove]) -> None:
        """These moves of a group are known."""
        groups = self.of_group.setdefault(coordinator, {})
        groups[group] = max([groups.get(group, 0), *(move.effective_offset + 1 for move in moves)])
        if len(groups) > MOST_GROUPS:  # clients may make up new names all the time
            self.first[coordinator] = max(groups.values())
            groups.clear()


@dataclass(slots=True)
class _Tracked:
    """A move. ``row``, ``log``: where it is among the commits of this round and their logs, `ABSENT` if it is not."""

    move: OffsetMove
    pair: int
    is_new: bool
    first_ms: int
    row: int = ABSENT
    log: int = ABSENT
    most_end: int = ABSENT  # the furthest that its log has reached since it was seen
    from_beyond: bool | None = None
    there: tuple[int, int] = (0, 0)
    records: int = ABSENT  # between its offsets, `ABSENT` as long as they are not counted
    done: bool = False

    @property
    def is_decided(self) -> bool:
        """Whether its kind is known, unless it turns out to be a program's."""
        return self.from_beyond is not None or self.move.presence != GroupPresence.THERE

    @property
    def kind(self) -> MoveKind:
        return kind_of(self.move, from_beyond=bool(self.from_beyond))

    @property
    def amount(self) -> Amount:
        """Its records, else the offsets of it that are in the log."""
        first, end = self.there
        return Amount(records=self.records) if self.records >= 0 else Amount(offsets=max(end - first, 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """Records, and besides them offsets whose records were not counted."""

    records: int = 0
    offsets: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(records=self.records + other.records, offsets=self.offsets + other.offsets)


class PairKind(NamedTuple):
    """What is added up: the moves of one kind and direction, of a pair of group and topic by its number."""

    pair: int
    kind: MoveKind
    forwards: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EdgesWanted:
    """Stretches of logs, one item for each. ``reads_uncommitted``: as in `Wanted`."""

    log: Longs
    first: Longs
    end: Longs
    reads_uncommitted: Flags


def about_edges(logs: GroupLogs, wanted: EdgesWanted) -> Iterator[Question]:
    """What agents are asked about the edges of stretches."""
    for agent, own in by_agent(logs, np.arange(len(wanted.log)), wanted.log):
        offset = np.concatenate([wanted.first[own], wanted.end[own]])
        yield plain_question(agent, logs, np.tile(wanted.log[own], 2), offset, np.tile(wanted.reads_uncommitted[own], 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundMove:
    """A move of the commit ``row``, and what lies between its offsets, as far as it is in the log."""

    row: int
    move: OffsetMove
    kind: MoveKind
    amount: Amount

    def is_settled(self, now_ms: int) -> bool:
        """Whether it will not turn out to be the first commit of a program."""
        return self.move.presence != GroupPresence.LEFT or now_ms - self.move.at_ms >= ONE_OFF_MS


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moved:
    """Moves of commits. ``shown``: those that an operator should know of, by commit, then by time. ``amounts``: totals; they only grow.

    What is shown of committed offsets that were moved: those of a day that nobody has taken back, and what all of them add up to.
    """

    shown: tuple[FoundMove, ...] = ()
    amounts: Mapping[PairKind, Amount] = field(default_factory=dict)


def shown(moves: Iterable[FoundMove], now_ms: int) -> Iterator[FoundMove]:
    """The moves that an operator should know of, of some in the order of the log: of a day, not taken back, and with records between.

    Those by hand that follow each other are shown as one.
    """
    of_row: dict[int, list[FoundMove]] = {}
    for each in moves:
        of_row.setdefault(each.row, []).append(each)
    for _, all_of_row in sorted(of_row.items()):
        some = _joined(all_of_row)
        left = {id(move) for move in not_taken_back(each.move for each in some)}
        for each in some:
            there = each.amount != Amount() and now_ms - each.move.at_ms <= LOST_LATELY_MS
            if there and id(each.move) in left and is_notable(each.move, each.kind):
                yield each


def _joined(moves: Iterable[FoundMove]) -> list[FoundMove]:
    """The moves of a partition; those by hand of which each begins where the one before has ended are one: no record was read in between.

    They are none if the last one has ended where the first began.
    """
    runs: list[list[FoundMove]] = []
    for each in moves:
        before = runs[-1][-1] if runs else None
        if before is not None and before.kind is each.kind is MoveKind.ADMIN and before.move.offset == each.move.before:
            runs[-1].append(each)
        else:
            runs.append([each])
    return [_net(run) for run in runs if len(run) == 1 or run[0].move.before != run[-1].move.offset]


def _net(run: Sequence[FoundMove]) -> FoundMove:
    """What some moves amount to."""
    if len(run) == 1:
        return run[0]
    move = replace(run[-1].move, before=run[0].move.before, before_ms=run[0].move.before_ms)
    if any(each.amount.offsets for each in run):
        return replace(run[-1], move=move, amount=Amount(offsets=abs(move.offset - move.before)))
    there = sum(each.amount.records if each.move.forwards == move.forwards else -each.amount.records for each in run)
    return replace(run[-1], move=move, amount=Amount(records=max(there, 0)))


NOTHING_MOVED = Moved()


def rows_of(rows: CommitRows, places: Sequence[Place]) -> list[int]:
    """The commit of each of some places, `ABSENT` where there is none. Those of share groups are left out: their topics have no name."""
    if not places:
        return []
    groups, topics = _numbers(rows.group_names, {place[0] for place in places}), _numbers(rows.topic_names, {place[1] for place in places})
    wanted = np.array([(groups.get(group, ABSENT), topics.get(topic, ABSENT), number) for group, topic, number in places], np.int64)
    group, topic, partition = wanted.T
    some = np.flatnonzero(np.isin(rows.group, group.astype(np.int32)) & np.isin(rows.partition, partition.astype(np.int32)) & ~rows.share)
    own = _packed(rows.group[some], rows.topic[some])
    pairs, pair = np.unique(_packed(group, topic), return_inverse=True)
    near = np.minimum(np.searchsorted(pairs, own), len(pairs) - 1)
    some, near = some[pairs[near] == own], near[pairs[near] == own]
    key = _packed(near, rows.partition[some])
    order = np.argsort(key, kind="stable")
    last = np.searchsorted(key[order], key_wanted := _packed(pair.reshape(-1), partition), side="right") - 1
    same = np.append(key[order], ABSENT)[last] == key_wanted
    found: list[int] = np.where(same, np.append(some[order], ABSENT)[last], ABSENT).tolist()
    return found


def _numbers(names: Sequence[str], some: Container[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(names) if name in some}


def _packed(high: NDArray[np.signedinteger], low: NDArray[np.signedinteger]) -> Longs:
    """Two numbers of 32 bits in one."""
    packed: Longs = high.astype(np.int64) << _BITS | low.astype(np.int64) & _LOW_BITS
    return packed


def _place_of(identity: _Identity) -> Place:
    return identity[:3]


class MoveMemory:
    """Remembers since when each commit stands. A share group moves with all that it is done with, also where its start offset stays.

    What rounds remember of where each partition of a group stands: when it was committed, since when it stays, and is held back.

    Args:
        past: as for `GroupMemory`.

    Only the thread that polls uses it.
    """

    def __init__(self, past: GroupPast | None = None) -> None:
        self._past = past
        self._columns: dict[str, Longs] = {name: np.empty(0, np.int64) for name in _COLUMNS}
        self._last_ms = 0

    def keep(self, rows_before: Longs, there: Flags) -> None:
        """There are other commits now: each was that row before, if it was there."""
        self._columns = {name: np.where(there, padded(column)[rows_before], ABSENT) for name, column in self._columns.items()}

    def recall(self, items: Longs, kept: Sequence[KeptCommit]) -> None:
        """Take over what a job before has kept of these rows: where they stood, and since when. Moves since then show by themselves."""
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moves:
    """The columns of `GroupProgress` that say when."""

    committed_ms: Longs
    stopped_since_ms: Longs
    stopped_earlier: Flags
    perhaps_since_ms: Longs
    unmoved_ms: Longs
    held_since_ms: Longs


def pair_values(pairs: Longs, amounts: Mapping[PairKind, Amount], *, forwards: bool) -> Iterator[tuple[MoveKind, Longs, Longs]]:
    """The records and the offsets of some pairs by kind, `ABSENT` where there was no such move; only the kinds that there were.

    Committed offsets that were moved: which of them this job has seen happen, how many records lie between, and what that adds up to.
    Agents report the moves of a day, again and again: after a restart, and from each replica of a coordinator's log. A move counts
    once, by the offset of its record there: those that were there at the job's first look do not count. It counts after `SETTLED_MS`,
    so that a program that commits again and again is not taken for a hand, and so that a counter is shown with its value before.
    """
    some = {name: amount for name, amount in amounts.items() if name.forwards == forwards}
    place = {pair: at for at, pair in enumerate(pairs.tolist())} if some else {}
    for kind in sorted({name.kind for name in some}):
        records, offsets = np.full(len(pairs), ABSENT, np.int64), np.full(len(pairs), ABSENT, np.int64)
        for name, amount in some.items():
            if name.kind is kind and name.pair in place:
                records[place[name.pair]], offsets[place[name.pair]] = amount.records, amount.offsets
        yield kind, records, offsets
