"""Committed offsets that were moved: which of them this job has seen happen, how many records lie between, and what that adds up to.

Agents report the moves of a day, again and again: after a restart, and from each replica of a coordinator's log. A move counts once, by the
offset of its record there: those that were there at the job's first look do not count. It counts after `SETTLED_MS`, so that a program that
commits again and again is not taken for a hand, and so that a counter is shown with its value before.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from streaming.cluster.consumers.group_counting import PAIR_BITS
from streaming.cluster.consumers.group_lag import ABSENT, KNOWN
from streaming.cluster.consumers.group_logs import GroupLogs
from streaming.cluster.consumers.group_places import Answered
from streaming.cluster.consumers.group_questions import Question
from streaming.cluster.consumers.move_questions import EdgesWanted, about_edges
from streaming.cluster.consumers.moved_lately import NOTHING_MOVED, ONE_OFF_MS, Amount, FoundMove, Moved, PairKind, shown
from streaming.cluster.consumers.named_rows import Place, rows_of
from streaming.common.arrays import Flags, Longs
from streaming.kafka.formats.names import OFFSETS_TOPIC
from streaming.kafka.groups.commit_table import CommitRows, Commits
from streaming.kafka.groups.offset_moves import GroupPresence, MoveKind, OffsetMove, counts, kind_of

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


@dataclass(slots=True)
class _Tracked:
    """A move. ``row``, ``log``: where it is among the commits of this round and their logs, `ABSENT` if it is not. ``most_end``: the
    furthest that its log has reached since it was seen. ``records``: between its offsets, `ABSENT` as long as they are not counted.
    """

    move: OffsetMove
    pair: int
    is_new: bool
    first_ms: int
    row: int = ABSENT
    log: int = ABSENT
    most_end: int = ABSENT
    from_beyond: bool | None = None
    there: tuple[int, int] = (0, 0)
    records: int = ABSENT
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


@dataclass(slots=True)
class _Seen:
    """Up to which offset of each coordinator's log its moves are known: at the first look, and of groups that had some since."""

    first: dict[int, int] = field(default_factory=dict)
    of_group: dict[int, dict[str, int]] = field(default_factory=dict)

    def look(self, commits: Commits) -> None:
        """A round begins. A log that has lost its end says anew what comes after."""
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
        if len(groups) > MOST_GROUPS:  # names may be made up anew all the time
            self.first[coordinator] = max(groups.values())
            groups.clear()


class MoveCounting:
    """For one thread.

    Args:
        watches: moves are counted by rounds; whoever looks once shows what the log has.
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

    def finish(self, rows: CommitRows, logs: GroupLogs, beyond: Flags, now_ms: int, steady_ms: int) -> Moved:
        """The round is over.

        Args:
            beyond: the commits that are certainly beyond the ends of their logs.
        """
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


def _place_of(identity: _Identity) -> Place:
    return identity[:3]


def pair_values(pairs: Longs, amounts: Mapping[PairKind, Amount], *, forwards: bool) -> Iterator[tuple[MoveKind, Longs, Longs]]:
    """By kind the records and the offsets of some pairs, `ABSENT` where there was no such move; only the kinds that there were."""
    some = {name: amount for name, amount in amounts.items() if name.forwards == forwards}
    place = {pair: at for at, pair in enumerate(pairs.tolist())} if some else {}
    for kind in sorted({name.kind for name in some}):
        records, offsets = np.full(len(pairs), ABSENT, np.int64), np.full(len(pairs), ABSENT, np.int64)
        for name, amount in some.items():
            if name.kind is kind and name.pair in place:
                records[place[name.pair]], offsets[place[name.pair]] = amount.records, amount.offsets
        yield kind, records, offsets
