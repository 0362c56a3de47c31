"""Which positions and counts a round asks of each agent, and what the answers mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.broker.protocol.group_messages import POSITIONS_ASKED
from streaming.cluster.consumers.group_lag import ABSENT, CODES, KNOWN, NUMBERS, Answered, Codes, Ends, LagReason, carried, first, padded
from streaming.cluster.consumers.group_logs import GroupLogs
from streaming.cluster.view.fading_rates import FadingRates, Rates
from streaming.common.arrays import Flags, Longs

MOST_ASKED = 16_384
"""The most positions of commits that an agent is asked for at once; the others wait for the next round."""

OF_START, OF_DELETED, OF_PARTED = range(3)
"""Which offset of a commit a position is of: that from which it is read; one below the log start; that where a commit that is not valid has
to go on."""

_NONE: Longs = np.empty(0, np.int64)
_POSITIVE = 2**63 - 1
_MEANINGS = {"KNOWN": KNOWN, "BELOW": CODES[LagReason.REMOTE], "DAMAGED": CODES[LagReason.DAMAGED]}

CHECKED_ROUNDS = 8
"""The counts of a log that does not grow are asked for again after so many rounds: it may have been compacted."""

_COLUMNS = ("high_watermark", "last_stable", "edition", "data", "stable_data", "kept", "end_kept", "control", "bytes")


def plain_question(
    agent: str,
    logs: GroupLogs,
    log: Longs,
    offset: Longs,
    reads_uncommitted: Flags,
    *,
    ends: Longs = _NONE,
    key: Longs = _NONE,
    of_row: Longs = _NONE,
    of: Longs = _NONE,
) -> Question:
    """A question about offsets of logs, which are those of one agent; the rest as in `Question`."""
    columns = [
        pa.array(logs.broker[log]),
        pa.array(logs.topics, pa.string()).take(pa.array(log)),
        pa.array(logs.topic_ids, pa.string()).take(pa.array(log)),
        pa.array(logs.partition[log]),
        pa.array(offset),
        pa.array(logs.high_watermark[log]),
        pa.array(reads_uncommitted.astype(np.int64)),
    ]
    asked = pa.Table.from_arrays(columns, names=POSITIONS_ASKED.names).cast(POSITIONS_ASKED)
    stable = logs.last_stable[log]
    return Question(
        agent=agent,
        logs=logs,
        asked=asked,
        log=log,
        offset=offset,
        stable=stable,
        reads_uncommitted=reads_uncommitted,
        ends=ends,
        key=key,
        of_row=of_row,
        of=of,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """What one agent is asked: the ends of some logs and then their last stable offsets, or where some commits are read from.

    ``log`` and ``offset``: of each position; ``reads_uncommitted``, ``of``: as in `Wanted`.
    """

    agent: str
    logs: GroupLogs  # of the round in which it is asked
    asked: pa.Table
    log: Longs
    offset: Longs
    stable: Longs  # the last stable offset of its log
    reads_uncommitted: Flags
    ends: Longs  # the logs
    key: Longs  # of the commits, each with the position ``of_row`` that it needs
    of_row: Longs
    of: Longs


def about_ends(logs: GroupLogs, ends: Longs) -> Iterator[Question]:
    """What agents are asked about the ends of some logs."""
    for agent, own in by_agent(logs, ends, ends):
        offset = np.concatenate([logs.high_watermark[own], logs.last_stable[own]])
        yield plain_question(agent, logs, np.tile(own, 2), offset, np.zeros(len(offset), np.bool_), ends=own)


def by_agent(logs: GroupLogs, items: Longs, log: Longs) -> Iterator[tuple[str, Longs]]:
    """The items of each agent, by the logs that they belong to; none of logs that no agent reads."""
    names = sorted(set(logs.agents) - {""})
    numbers = {name: number for number, name in enumerate(names)}
    agent_of = np.array([numbers.get(agent, ABSENT) for agent in logs.agents], np.int64)
    for agent, number in numbers.items():
        own = items[agent_of[log] == number]
        if len(own):
            yield agent, own


def about_commits(logs: GroupLogs, key: Longs, wanted: Wanted, most: Callable[[str], int]) -> Iterator[Question]:
    """What agents are asked about the positions of some commits.

    Args:
        key: of all commits.
        most: the most positions that an agent is asked for.
    """
    for agent, own in by_agent(logs, np.arange(len(wanted)), logs.of_row[wanted.rows]):
        yield _of_commits(agent, logs, key, wanted.take(own), most(agent))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wanted:
    """Positions that commits need, the most important first: the row of each, its offset, and which one that is: `OF_START` and so on."""

    rows: Longs
    offset: Longs
    of: Longs
    reads_uncommitted: Flags  # for a group that reads records of aborted transactions, too

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, items: Longs | Flags) -> Wanted:
        """Some of them."""
        return Wanted(rows=self.rows[items], offset=self.offset[items], of=self.of[items], reads_uncommitted=self.reads_uncommitted[items])


def _of_commits(agent: str, logs: GroupLogs, key: Longs, wanted: Wanted, most: int) -> Question:
    log, packed, of_row = distinct(logs.of_row[wanted.rows], wanted.offset << 1 | wanted.reads_uncommitted)
    offset, reads_uncommitted = packed >> 1, (packed & 1) > 0
    if len(log) > most:
        first_row = np.full(len(log), len(wanted), np.int64)
        np.minimum.at(first_row, of_row, np.arange(len(wanted)))
        chosen = np.zeros(len(log), np.bool_)
        chosen[np.argsort(first_row)[:most]] = True
        kept = chosen[of_row]
        wanted, of_row = wanted.take(kept), (np.cumsum(chosen) - 1)[of_row[kept]]
        log, offset, reads_uncommitted = log[chosen], offset[chosen], reads_uncommitted[chosen]
    return plain_question(agent, logs, log, offset, reads_uncommitted, key=key[wanted.rows], of_row=of_row, of=wanted.of)


def distinct(log: Longs, offset: Longs) -> tuple[Longs, Longs, Longs]:
    """The distinct pairs of log and offset, in two columns, and of each item the index of its pair."""
    order = np.lexsort((offset, log))
    logs, offsets = log[order], offset[order]
    new = np.append(True, (logs[1:] != logs[:-1]) | (offsets[1:] != offsets[:-1]))[: len(order)]
    of_item = np.empty(len(order), np.int64)
    of_item[order] = np.cumsum(new) - 1
    return logs[new], offsets[new], of_item


def read_answer(question: Question, answer: pa.Table) -> Answered:
    """The positions in the order of the question."""
    edition = edition_numbers(answer["edition"])
    reason = np.where(edition == ABSENT, CODES[LagReason.FILLING], _reasons(answer["state"]))
    numbers = {name: answer[name].to_numpy().astype(np.int64) for name in NUMBERS}
    following = numbers["next_offset"]
    decided = (following >= 0) & ((following < question.stable) | (numbers["reads_uncommitted"] > 0))
    return Answered(reason=reason, edition=np.where(reason == KNOWN, edition, ABSENT), decided=decided, numbers=numbers)


def edition_numbers(names: pa.ChunkedArray) -> Longs:
    """A number for each edition, by which it is compared; `ABSENT` for "" (there is no ladder). None is remembered: they come and go."""
    encoded = pc.dictionary_encode(names.combine_chunks())
    of = np.array([hash(name) & _POSITIVE if name else ABSENT for name in encoded.dictionary.to_pylist()], np.int64)
    return of[np.asarray(encoded.indices)] if len(names) else np.empty(0, np.int64)


def _reasons(states: pa.ChunkedArray) -> Codes:
    encoded = pc.dictionary_encode(states.combine_chunks())
    of = np.array([_MEANINGS.get(state.upper(), CODES[LagReason.FILLING]) for state in encoded.dictionary.to_pylist()], np.int8)
    return of[np.asarray(encoded.indices)] if len(states) else np.empty(0, np.int8)


def part(positions: Answered, items: Longs) -> Answered:
    """Some of the positions."""
    numbers = {name: column[items] for name, column in positions.numbers.items()}
    return Answered(reason=positions.reason[items], edition=positions.edition[items], decided=positions.decided[items], numbers=numbers)


class EndMemory:
    """The counts by the codes of logs. Only the thread that polls uses it.

    The counts at the ends of the logs that groups read, kept from round to round: which have to be asked, and what was answered.
    """

    def __init__(self) -> None:
        self._code: Longs = np.empty(0, np.int64)
        self._counted: Codes = np.empty(0, np.int8)
        self._columns: dict[str, Longs] = {name: np.empty(0, np.int64) for name in _COLUMNS}
        self._rates = FadingRates()
        self._round = 0
        self.moved: Flags = np.empty(0, np.bool_)
        """Whether the end of each log is another one than that of the counts."""

    def begin(self, logs: GroupLogs, steady_ms: int) -> None:
        """A round begins, with these logs."""
        self._round += 1
        if not np.array_equal(logs.code, self._code):
            rows, there = carried(self._code, logs.code)
            self._columns = {name: np.where(there, padded(column)[rows], ABSENT) for name, column in self._columns.items()}
            self._counted = np.where(there, np.append(self._counted, KNOWN)[rows], CODES[LagReason.FILLING])
            self._rates.begin(rows, there, steady_ms)
            self._code = logs.code
        self._rates.begin_round(steady_ms)
        at = self._columns
        self.moved = (at["high_watermark"] != logs.high_watermark) | (at["last_stable"] != logs.last_stable)

    def wanted(self, logs: GroupLogs) -> Longs:
        """The logs whose counts have to be asked."""
        due = np.arange(len(logs)) % CHECKED_ROUNDS == self._round % CHECKED_ROUNDS
        needed: Longs = np.flatnonzero((logs.reason == KNOWN) & (self.moved | due | (self._counted != KNOWN)))
        return needed

    def doubt(self, logs: Longs, edition: Longs) -> None:
        """Positions of these logs were answered, of these editions: if a log has another one by now, its counts are out of date."""
        other = logs[(edition != self._columns["edition"][logs]) & (edition != ABSENT)]
        self._columns["high_watermark"][other] = ABSENT

    def rates(self, steady_ms: int) -> Rates:
        """Records a second that have lately been appended to each log; `ABSENT` where that is not known."""
        return self._rates.now(steady_ms)

    def answer(self, items: Longs, logs: GroupLogs, at_end: Answered, at_stable: Answered, steady_ms: int) -> None:
        """Set the counts of some logs: the positions of their high watermarks, and of their last stable offsets."""
        known = (at_end.edition == self._columns["edition"][items]) & (at_end.edition != ABSENT)
        comes = np.zeros(len(logs), np.int64)
        comes[items] = np.where(known, np.maximum(at_end.numbers["data"] - self._columns["data"][items], 0), 0)
        self._rates.passed(comes, steady_ms)
        same = at_end.edition == at_stable.edition
        self._counted[items] = np.where(same, first(at_end.reason, at_stable.reason), CODES[LagReason.FILLING])
        found = {
            "high_watermark": logs.high_watermark[items],
            "last_stable": logs.last_stable[items],
            "edition": at_end.edition,
            "data": at_end.numbers["data"],
            "stable_data": at_stable.numbers["data"],
            "kept": at_stable.numbers["data"] - at_stable.numbers["aborted"],
            "end_kept": at_end.numbers["data"] - at_end.numbers["aborted"],
            "control": at_end.numbers["control"],
            "bytes": at_end.numbers["bytes"],
        }
        for name, values in found.items():
            self._columns[name][items] = values

    def ends(self, logs: GroupLogs) -> Ends:
        """The ends of the logs. Where no answer is as new as the offsets, the reason is that the leader's agent does not answer."""
        at = self._columns
        current = (at["high_watermark"] == logs.high_watermark) & (at["last_stable"] == logs.last_stable)
        stale = np.where(current, KNOWN, CODES[LagReason.FILLING])
        return Ends(
            reason=logs.reason,
            counted=first(self._counted, stale),
            log_start=logs.log_start,
            start_after_crash=logs.start_after_crash,
            log_end=logs.log_end,
            high_watermark=logs.high_watermark,
            last_stable=logs.last_stable,
            open_from=logs.open_from,
            edition=at["edition"],
            data=at["data"],
            stable_data=at["stable_data"],
            kept=at["kept"],
            end_kept=at["end_kept"],
            control=at["control"],
            bytes=at["bytes"],
            damaged=logs.damaged,
        )
