"""Decides whether an open transaction will ever end, which ones are listed one by one, and which clients abort most of theirs.

The state of an open transaction is the one that its coordinator has. Two words mark transactions that need attention, and always mean the
same. *Hanging*: no coordinator will ever end it, and it has been silent for ``hanging_after``. *Stuck*: it has been silent for
``stuck_after``, is neither hanging nor overdue, and does not wait for an outer transaction.

The rule for *hanging* is that of Kafka's own tool (`TransactionsCommand.FindHangingTransactionsCommand`), with one exception: nothing is
reported while it cannot be known. While a coordinator's log was not read to its end, it may contain the transaction. While the
transaction's own log was not read to its end, its marker may be there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streaming.common.arrays import Flags, Longs
from streaming.common.rows import StartSource
from streaming.rules.coordinator_state import NO_STATE, ONGOING, PREPARE_ABORT, PREPARE_COMMIT, Coordinators

GRACE_MS = 60_000
"""How long a coordinator may take to end a transaction that has timed out. Also the least silence of one that hangs."""

NEVER_MS = 2**31 - 1
"""The timeout of a transaction that only an outer one ends (`TransactionMetadata.isDistributedTwoPhaseCommitTxn`)."""

PARTITIONS_PER_PRODUCER = 20
"""The most late transactions of one producer that are listed: a stuck transaction is stuck in all of its partitions."""

WINDOW_MS = 1_800_000
"""So far back it is counted."""

LEAST_SEEN = 10
"""Of fewer transactions nothing is said: an abort now and then is what transactions are for."""

MOST_OF_THEM = 0.5

PAUSE_MS = 10_000
"""Two looks are so far apart, at least."""

_MOST_CLIENTS = 10_000
_ENDS = ("CompleteCommit", "CompleteAbort")


class TransactionVerdict(IntEnum):
    """The verdict about an open transaction."""

    OPEN = 0  # its coordinator has it, inside its timeout
    OVERDUE = 1  # its coordinator should have ended it by now
    TWO_PHASE = 2  # it waits for an outer transaction, for as long as that takes
    COMPLETING = 3  # decided, its marker is still to come
    HANGING = 4  # no coordinator will ever end it, and it has been silent for long
    UNKNOWN = 5  # not every log that decides it was read to its end
    UNCLAIMED = 6  # no coordinator has it, and it has not been silent for long

    @property
    def label(self) -> str:
        """The spelling in metrics and tables."""
        return self.name.lower()


def claims_of(transactions: OpenTransactions, coordinators: Coordinators) -> Claims:
    """Find the coordinator's entry for every transaction.

    If all coordinators' logs were read before the data logs, the result is certain: a marker is written before the coordinator marks the
    transaction as complete. Otherwise the caller has to wait until all were read once more (``certain``, ``awaited``).
    """
    item = coordinators.find(transactions.producer_id)
    known = item >= 0
    state = np.full(len(item), NO_STATE, np.int64)
    state[known] = coordinators.state[item[known]]
    may_end = np.where((state == ONGOING) | (state == PREPARE_COMMIT) | (state == PREPARE_ABORT), item, -1)
    covered = coordinators.takes_part(may_end, transactions.partition)
    coordinator_ms, timeout_ms = np.full(len(item), -1, np.int64), np.full(len(item), NEVER_MS, np.int64)
    coordinator_ms[covered], timeout_ms[covered] = coordinators.start_ms[item[covered]], coordinators.timeout_ms[item[covered]]
    has_start = coordinator_ms >= 0
    start_ms = np.where(has_start, coordinator_ms, transactions.start_ms)
    return Claims(
        item=item,
        state=state,
        covered=covered,
        start_ms=start_ms,
        source=np.where(has_start, int(StartSource.COORDINATOR), transactions.source),
        last_ms=transactions.last_ms,
        deadline_ms=np.where(timeout_ms == NEVER_MS, np.iinfo(np.int64).max, start_ms + timeout_ms + GRACE_MS),
        current=coordinators.is_current(item),
        certain=np.full(len(item), coordinators.complete),
        awaited=np.zeros(len(item), np.bool_),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenTransactions:
    """Open transactions of many logs: columns as in `streaming.common.rows.TRANSACTIONS`, and the "topic-partition" of each."""

    partition: list[str]
    producer_id: Longs
    first_offset: Longs
    source: Longs
    start_ms: Longs
    last_ms: Longs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Claims:
    """The coordinators' entries of open transactions, which claim to end them. They are as complete as the logs that were
    read, and do not depend on a clock.

    ``item`` is the coordinator's entry, -1 if none is known; ``state`` its state, -1 none. ``covered``: this entry will end the
    transaction; then ``start_ms`` and ``source`` are the coordinator's. ``deadline_ms`` is when the coordinator should have ended it: a
    timeout and a grace period after its start. ``current``: the entry is from a log that was read to its end. ``certain``: all such logs
    were read to their end, so if there is no entry, that is known. ``awaited``: it is not certain yet, and the next reads of these logs
    will make it so.
    """

    item: Longs
    state: Longs
    covered: Flags
    start_ms: Longs
    source: Longs
    last_ms: Longs
    deadline_ms: Longs
    current: Flags
    certain: Flags
    awaited: Flags

    @property
    def appended_ms(self) -> Longs:
        """When each was last appended to: nothing is appended before its transaction has begun.

        Its last record, and so ``last_ms``, has its producer's timestamp, which may be from days before the transaction.
        """
        appended: Longs = np.where(self.covered, np.maximum(self.last_ms, self.start_ms), self.last_ms)
        return appended


def verdicts(claims: Claims, now_ms: int, hanging_after_ms: int) -> Longs:
    """A `TransactionVerdict` for each transaction at a point in time: the first that holds."""
    ongoing = claims.covered & (claims.state == ONGOING)
    timed_out = ongoing & (now_ms > claims.deadline_ms)
    table = (
        (ongoing & (claims.deadline_ms == np.iinfo(np.int64).max), TransactionVerdict.TWO_PHASE),
        (timed_out & claims.current, TransactionVerdict.OVERDUE),
        (timed_out, TransactionVerdict.UNKNOWN),  # its end may be in a part that was not read
        (ongoing, TransactionVerdict.OPEN),
        (claims.covered, TransactionVerdict.COMPLETING),
        (~claims.certain, TransactionVerdict.UNKNOWN),
        (_silent(claims, now_ms, max(hanging_after_ms, GRACE_MS)), TransactionVerdict.HANGING),
    )
    conditions, each = zip(*table, strict=True)
    judged: Longs = np.select(conditions, each, TransactionVerdict.UNCLAIMED)
    return judged


def _silent(claims: Claims, now_ms: int, after_ms: int) -> Flags:
    """Which transactions have appended nothing for so long."""
    flags: Flags = now_ms - claims.appended_ms > after_ms
    return flags


def stuck(claims: Claims, verdict: Longs, now_ms: int, stuck_after_ms: int) -> Flags:
    """Which transactions are stuck: silent for longer than ``stuck_after_ms``, and not reported by another verdict, now or soon."""
    others = np.isin(verdict, _REPORTED) | (claims.awaited & (verdict == TransactionVerdict.UNKNOWN))
    chosen: Flags = ~others & _silent(claims, now_ms, stuck_after_ms)
    return chosen


_REPORTED = [TransactionVerdict.HANGING, TransactionVerdict.OVERDUE, TransactionVerdict.TWO_PHASE]
"""Verdicts beside which an operator does not need to know that the transaction is stuck, too."""


def select_late(
    claims: Claims, first: Longs, producer_ids: Longs, first_offsets: Longs, *, now_ms: int, late_after_ms: int | None, limit: int
) -> LateTransactions:
    """Select the transactions open for longer than ``late_after_ms``; if that is None, all of them.

    Those with the lowest ``first`` come first, then the oldest. There are at most ``limit``, and a few of each producer.
    """
    young = np.zeros(len(first), np.bool_) if late_after_ms is None else now_ms - claims.start_ms <= late_after_ms
    late = np.flatnonzero(~young)
    late = late[np.lexsort((first_offsets[late], claims.start_ms[late], first[late]))]
    if late_after_ms is None:
        return LateTransactions(late, 0, young)
    chosen = late[_rank(producer_ids[late]) < PARTITIONS_PER_PRODUCER][:limit]
    return LateTransactions(chosen, len(late) - len(chosen), young)


@dataclass(frozen=True, slots=True, eq=False)
class LateTransactions:
    """The transactions to list one by one, the most important first, and how many more there are; ``young``: which are not old enough."""

    items: NDArray[np.intp]
    omitted: int
    young: Flags


def _rank(groups: Longs) -> NDArray[np.intp]:
    """How many items of the same group come before each item."""
    order = np.argsort(groups, kind="stable")
    places = np.arange(len(groups))
    begins = np.append(True, groups[order][1:] != groups[order][:-1])[: len(groups)]
    ranks = np.empty(len(groups), np.intp)
    ranks[order] = places - np.maximum.accumulate(np.where(begins, places, 0)) if len(groups) else places
    return ranks


class AbortingClients:
    """The ends that were seen lately, of clients that have aborted. Only one thread uses it.

    Which clients abort most of their transactions, by what is seen of their coordinators' entries now and then. Between two looks a
    client may end many transactions, of which the entry shows the last one. So shares are of those that were seen. How many there
    were is known where each of them raises the producer's epoch (KIP-890). A client costs memory from the first abort on that is
    seen.
    """

    def __init__(self) -> None:
        self._looked_ms = self._upto_ms = -1
        self._ends: dict[str, list[_End]] = {}
        self._epochs: dict[str, tuple[int, int]] = {}  # producer id and epoch as they were last seen

    def look(self, table: pa.Table, now_ms: int) -> tuple[AbortingClient, ...]:
        """Take the newest entries (`streaming.common.rows.COORDINATOR`) as of ``now_ms``; returns who aborts most, the worst first."""
        if now_ms - self._looked_ms >= PAUSE_MS:
            if self._looked_ms >= 0:
                self._take(table, now_ms)
            self._looked_ms = now_ms
            self._upto_ms = max(self._upto_ms, int(np.max(table["last_update_ms"].to_numpy(), initial=-1)))
        return tuple(sorted(self._found(now_ms), key=lambda each: (-each.aborted, each.transactional_id)))

    def _take(self, table: pa.Table, now_ms: int) -> None:
        new = table.take(np.flatnonzero(table["last_update_ms"].to_numpy() > self._upto_ms))
        columns = (new[name].to_pylist() for name in ("transactional_id", "state", "producer_id", "producer_epoch"))
        for name, state, producer, epoch in zip(*columns, strict=True):
            if state in _ENDS and (name in self._ends or (state == _ENDS[1] and len(self._ends) < _MOST_CLIENTS)):
                before = self._epochs.get(name)
                epochs = epoch - before[1] if before is not None and before[0] == producer and epoch > before[1] else -1
                self._ends.setdefault(name, []).append(_End(now_ms, state == _ENDS[1], epochs))
                self._epochs[name] = producer, epoch
        for name, ends in list(self._ends.items()):
            self._ends[name] = [each for each in ends if now_ms - each.at_ms <= WINDOW_MS]
            if not any(each.aborted for each in self._ends[name]):
                del self._ends[name], self._epochs[name]

    def _found(self, now_ms: int) -> Iterator[AbortingClient]:
        for name, ends in self._ends.items():
            aborted, since_ms = sum(each.aborted for each in ends), ends[0].at_ms
            if len(ends) >= LEAST_SEEN and aborted > MOST_OF_THEM * len(ends):
                epochs, seconds = [each.epochs for each in ends[1:]], (ends[-1].at_ms - since_ms) / 1000
                known = min(epochs) > 0 and now_ms - ends[-1].at_ms <= WINDOW_MS
                yield AbortingClient(name, len(ends), aborted, since_ms, sum(epochs) / seconds if known and seconds else -1.0)


@dataclass(frozen=True, slots=True)
class _End:
    """The end of a transaction that was seen, and how often the producer's epoch had risen since the one before; -1 if not known."""

    at_ms: int
    aborted: bool
    epochs: int


@dataclass(frozen=True, slots=True)
class AbortingClient:
    """A client that has aborted ``aborted`` of the ``seen`` transactions since ``since_ms``; ``per_second`` ended, -1 if not known."""

    transactional_id: str
    seen: int
    aborted: int
    since_ms: int
    per_second: float = -1.0
