"""The open transactions of the exported logs: since when, and with which verdict, as columns and as a list of the late ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from streaming.broker.protocol.history_json import KeptTransaction
from streaming.broker.protocol.status_messages import PendingCommits
from streaming.cluster.view.recalled import Recalled
from streaming.cluster.view.replica_offsets import ABSENT, ReplicaOffsets, of_all
from streaming.cluster.view.value_matrix import Carried, Columns
from streaming.common.arrays import Flags, Longs
from streaming.common.rows import NOT_UNDERSTOOD, StartSource
from streaming.kafka.formats.names import TRANSACTION_TOPIC
from streaming.rules.coordinator_state import NOT_KNOWN, ONGOING, STATES, Coordinators, all_read, count_states, newest
from streaming.rules.transaction_fold import OPEN
from streaming.rules.transaction_verdicts import (
    GRACE_MS,
    NEVER_MS,
    Claims,
    OpenTransactions,
    TransactionVerdict,
    claims_of,
    select_late,
    stuck,
    verdicts,
)

_NO_DEADLINE = np.iinfo(np.int64).max

COLUMNS = (
    "open_transactions",
    "oldest_open_start_ms",
    "oldest_open_last_append_ms",
    "hanging_transactions",
    "stuck_transactions",
    "stalled",
)
"""What `TransactionJudge.judge` computes."""

READ_AFTER_MS = 30_000
"""An agent that has caught up publishes what is on a disk at most so much later.

It checks a quiet log in every fifth poll, and a poll takes seconds if much grows.
"""

READ_WITHIN_MS = 60_000
"""This is long enough for micro-batches: they take seconds."""

_OpenKey = tuple[str, int, int]
"""The log, the producer and the first offset of an open transaction."""

_AppendKey = tuple[str, int, int, int]
"""The same, and when it was last appended to."""

MOST_ASKED = 20
"""The groups of at most so many transactions are requested at once."""


class TransactionJudge:
    """Judges open transactions, and remembers since when no coordinator is known that will end each of them, and what was known of each.

    A transaction that hangs or is stuck stays so, as of when that was seen last, while the logs that decide it are not read: that no agent
    reads them does not end it.

    Args:
        hanging_after_ms: a transaction that no coordinator will end counts as hanging after so long a silence. Any other one counts as
            stalling the last stable offset after being open for so long.
        stuck_after_ms: how long a transaction has to be silent until it counts as stuck.
        late_after_ms: a transaction that is open for longer is listed by itself; None for all open ones, however many these are.
        late_limit: at most so many are listed.
        read_within_ms: what an agent has published has to be processed within so long, or a log may have gone on unseen.
        once: judge only once, when all logs have been read to their ends: there is no earlier judgement to remember. If a transaction was
            silent for long, and is ended exactly between the reads of two logs, it may seem to hang.
    """

    def __init__(
        self,
        *,
        hanging_after_ms: int,
        stuck_after_ms: int,
        late_after_ms: int | None,
        late_limit: int,
        read_within_ms: int = READ_WITHIN_MS,
        once: bool = False,
    ) -> None:
        self.once = once
        self.read_within_ms = read_within_ms
        self._hanging_after_ms = hanging_after_ms
        self._stuck_after_ms = stuck_after_ms
        self._late_after_ms = late_after_ms
        self._late_limit = late_limit
        self._uncovered_since: dict[_AppendKey, int] = {}
        self._reported: dict[_AppendKey, _Seen] = {}
        self._recalled: Recalled[_AppendKey, KeptTransaction] = Recalled()
        self._open: frozenset[_OpenKey] = frozenset()  # in the last judgement
        self._held_to: frozenset[_OpenKey] | None = None

    def hold_to_what_was_open(self) -> None:
        """From now on, it is not known of what was not open in the last judgement that no coordinator will end it.

        Log dirs that are read once are read on after that, and data is read after the coordinators' logs: what has begun since may have
        got its entry since.
        """
        self._held_to = self._open

    def kept(self) -> list[KeptTransaction]:
        """What is remembered, for the next job over the same checkpoint. From any thread."""
        uncovered, reported = self._uncovered_since, self._reported
        known = [_kept(key, uncovered.get(key, ABSENT), reported.get(key, _NEVER_SEEN)) for key in uncovered | reported]
        return [*known, *(each for key, each in self._recalled.left.items() if key not in uncovered and key not in reported)]

    def recall(self, kept: Iterable[KeptTransaction]) -> None:
        """Go on with what a job before has kept; what is read since then counts more."""
        self._recalled = Recalled({(each.log, each.producer_id, each.first_offset, each.last_ms): each for each in kept})

    def judge(
        self, carried: Sequence[Carried], names: Sequence[str], view: CoordinatorView, now_ms: int, *, read_ms: Longs, lag: Longs
    ) -> JudgedTransactions:
        """Judge what is open on some logs; ``names`` are their names, "topic-partition".

        Args:
            read_ms: up to when each log was processed, as in `coordinator_view`.
            lag: how many offsets of each log wait behind its last stable offset.
        """
        owners, found = of_all([each.transactions for each in carried])
        still = found["committed"] == OPEN
        owners, found = owners[still], found[still]
        transactions = OpenTransactions(
            partition=[names[owner] for owner in owners.tolist()],
            producer_id=found["producer_id"],
            first_offset=found["first_offset"],
            source=found["source"].astype(np.int64),
            start_ms=found["start_ms"],
            last_ms=found["last_ms"],
        )
        ids, firsts, lasts = transactions.producer_id, transactions.first_offset, transactions.last_ms

        def key_of(item: int) -> _AppendKey:
            return transactions.partition[item], int(ids[item]), int(firsts[item]), int(lasts[item])

        claims = claims_of(transactions, view.coordinators)
        if self._recalled:
            self._take_recalled(map(key_of, range(len(owners))), now_ms)
        if self.once:
            claims = self._held(transactions, claims)
        claims = self._certain(claims, self._uncovered_ms(key_of, claims, now_ms), np.minimum(read_ms[owners], view.read_ms))
        read = read_ms[owners] >= 0
        verdict, as_of_ms = verdicts(claims, now_ms, self._hanging_after_ms), np.full(len(owners), ABSENT, np.int64)
        seen = self._seen_last(key_of, (verdict == TransactionVerdict.UNKNOWN) | ~read)
        for item, each in seen.items():
            if each.hangs and verdict[item] == TransactionVerdict.UNKNOWN:
                verdict[item], as_of_ms[item] = TransactionVerdict.HANGING, each.at_ms
        stays = stuck(claims, verdict, now_ms, self._stuck_after_ms)
        counted = stays & read
        for item, each in seen.items():
            if each.stuck and stays[item] and not read[item]:
                counted[item], as_of_ms[item] = True, each.at_ms
        self._remember(key_of, verdict, counted, as_of_ms, now_ms)
        late = select_late(
            claims,
            np.select([verdict == TransactionVerdict.HANGING, stays], [0, 1], 2),
            transactions.producer_id,
            transactions.first_offset,
            now_ms=now_ms,
            late_after_ms=self._late_after_ms,
            limit=self._late_limit,
        )
        listed = OpenList(
            owner=owners,
            found=found,
            claims=claims,
            verdict=verdict,
            as_of_ms=as_of_ms,
            stuck=stays,
            young=late.young,
            late_after_ms=ABSENT if self._late_after_ms is None else self._late_after_ms,
            coordinators=view.coordinators,
        )
        of_logs = _columns(len(carried), owners, claims)
        unknown = verdict == TransactionVerdict.UNKNOWN
        of_logs["hanging_transactions"] = _per_log(len(carried), owners, verdict == TransactionVerdict.HANGING, unknown)
        of_logs["stuck_transactions"] = _per_log(len(carried), owners, counted, (unknown & claims.awaited) | ~read)
        since = of_logs["oldest_open_start_ms"]
        stalled = (lag > 0) & (since != ABSENT) & (now_ms - since > self._hanging_after_ms)
        of_logs["stalled"] = np.where((lag < 0) | ((read_ms < 0) & (since != ABSENT)), ABSENT, stalled)
        return JudgedTransactions(columns=of_logs, late=listed.take(late.items), omitted=late.omitted, open=listed)

    def _take_recalled(self, keys: Iterable[_AppendKey], now_ms: int) -> None:
        """Remember what a job before has kept of these transactions."""
        found = self._recalled.take(keys, now_ms)
        since = {key: min(each.uncovered_ms, now_ms) for key, each in found.items() if each.uncovered_ms >= 0}
        seen = {key: _Seen(each.hangs, each.stuck, min(each.at_ms, now_ms)) for key, each in found.items() if each.at_ms >= 0}
        self._uncovered_since, self._reported = self._uncovered_since | since, self._reported | seen

    def _seen_last(self, key_of: Callable[[int], _AppendKey], uncertain: Flags) -> dict[int, _Seen]:
        """What was known of some transactions when it was certain, by their indexes; nothing where logs are read once."""
        some = np.flatnonzero(uncertain).tolist() if self._reported and not self.once else []
        return {item: seen for item in some if (seen := self._reported.get(key_of(item))) is not None}

    def _remember(self, key_of: Callable[[int], _AppendKey], verdict: Longs, stays: Flags, as_of_ms: Longs, now_ms: int) -> None:
        hangs = verdict == TransactionVerdict.HANGING
        needs = np.flatnonzero(hangs | stays).tolist()
        at_ms = np.where(as_of_ms == ABSENT, now_ms, as_of_ms)
        self._reported = {key_of(item): _Seen(bool(hangs[item]), bool(stays[item]), int(at_ms[item])) for item in needs}

    def _uncovered_ms(self, key_of: Callable[[int], _AppendKey], claims: Claims, now_ms: int) -> Longs:
        """Since when no entry is known that will end each transaction; the present time for one that has such an entry."""
        uncovered = np.flatnonzero(~claims.covered).tolist()
        keys = [key_of(item) for item in uncovered]
        self._uncovered_since = {key: self._uncovered_since.get(key, now_ms) for key in keys}
        since = np.full(len(claims.covered), now_ms, np.int64)
        since[uncovered] = [self._uncovered_since[key] for key in keys]
        return since

    def _held(self, transactions: OpenTransactions, claims: Claims) -> Claims:
        """The claims; what has begun since `hold_to_what_was_open` is not certain."""
        keys = list(zip(transactions.partition, transactions.producer_id.tolist(), transactions.first_offset.tolist(), strict=True))
        self._open = frozenset(keys)
        if self._held_to is None:
            return claims
        return replace(claims, certain=claims.certain & np.array([key in self._held_to for key in keys], np.bool_))

    def _certain(self, claims: Claims, uncovered_ms: Longs, read_ms: Longs) -> Claims:
        """Mark the transactions for which it is certain that no coordinator will end them.

        Such a transaction was seen open before the reads of its own log and of all coordinators' logs began, and these found no end of it.
        Otherwise its marker, or its entry, would have been there by then.
        """
        was_read = read_ms >= claims.last_ms if self.once else read_ms - READ_AFTER_MS >= uncovered_ms
        known = claims.certain & (read_ms >= 0)
        return replace(claims, certain=known & was_read, awaited=known & ~was_read)


class _Seen(NamedTuple):
    """What was known of a transaction that needs an operator, and when that was last certain."""

    hangs: bool
    stuck: bool
    at_ms: int


def _kept(key: _AppendKey, uncovered_ms: int, seen: _Seen) -> KeptTransaction:
    log, producer_id, first_offset, last_ms = key
    return KeptTransaction(
        log=log,
        producer_id=producer_id,
        first_offset=first_offset,
        last_ms=last_ms,
        uncovered_ms=uncovered_ms,
        hangs=seen.hangs,
        stuck=seen.stuck,
        at_ms=seen.at_ms,
    )


_NEVER_SEEN = _Seen(hangs=False, stuck=False, at_ms=ABSENT)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CoordinatorView:
    """What the logs of `__transaction_state` contain together.

    ``readable_partitions`` were read to their ends from a current replica, and understood.
    """

    coordinators: Coordinators
    partitions: int | None  # how many there are by the metadata log, None if not known
    readable_partitions: frozenset[int]
    read_ms: int  # everything that was in all of them at that time, by the job's clock, is processed; -1 if not all are readable
    counts: dict[int, tuple[int, ...]]  # by broker, how many entries are in each of `streaming.rules.coordinator_state.STATES`
    overdue: dict[int, int]  # by broker, how many readable entries are Ongoing beyond their timeout


@dataclass(frozen=True, slots=True, kw_only=True)
class Late:
    """One open transaction, times in Unix milliseconds.

    ``groups``: if it hangs in `__consumer_offsets`, the consumer groups whose offsets wait for it, as far as they are known.
    """

    log: int  # the index of its log among the judged logs
    producer_id: int
    producer_epoch: int
    first_offset: int
    start_ms: int  # its coordinator's if that is known
    last_append_ms: int
    transactional_id: str
    coordinator_state: str  # "" if no coordinator knows it
    verdict: str
    stuck: bool  # defined in `streaming.rules.transaction_verdicts`
    first_ms: int = -1  # when its first batch was appended to this log, -1 if that is not known
    deadline_ms: int = -1  # when its timeout has passed, and its coordinator ends it; -1 if it has none, or if that is not known
    as_of_ms: int = -1  # when its verdict was last certain, -1 if it is now
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenList:
    """One item for each open transaction, sorted by log and first offset.

    The open transactions of the exported logs as columns, of which some are made into values, one by one.

    ``found``: its columns as in `streaming.common.rows.TRANSACTIONS`. ``verdict`` and ``stuck``: see
    `streaming.rules.transaction_verdicts`.
    """

    owner: Longs  # the index of its log among the judged logs
    found: Any  # a structured array, whose fields have no types
    claims: Claims
    verdict: Longs
    as_of_ms: Longs  # as in `Late`
    stuck: Flags
    young: Flags  # open for ``late_after_ms`` at most, and so not listed by itself; that is `ABSENT` where all are listed
    late_after_ms: int
    coordinators: Coordinators

    def first_of(self, logs: Collection[int]) -> tuple[Late, ...]:
        """The first transaction of each of these logs, which holds its last stable offset."""
        firsts = self._firsts
        return self.take(firsts[np.isin(self.owner[firsts], [*logs])])

    def young_on(self, log: int) -> int:
        """How many transactions on a log are too young to be listed."""
        return int(np.count_nonzero(self.young & (self.owner == log)))

    def first_since(self) -> dict[int, int]:
        """Since when the first transaction of each log is open, Unix milliseconds, where its coordinator or its verdict shows it.

        Where no coordinator knows it, only its producer's clock tells when it began. It is certain that it has been silent for long if it
        hangs.
        """
        firsts, claims = self._firsts, self.claims
        dated = claims.covered[firsts] & (claims.source[firsts] == StartSource.COORDINATOR)
        hangs = self.verdict[firsts] == TransactionVerdict.HANGING
        since_ms = np.where(dated, claims.start_ms[firsts], np.where(hangs, claims.last_ms[firsts], ABSENT))
        some = np.flatnonzero(since_ms >= 0)
        return dict(zip(self.owner[firsts[some]].tolist(), since_ms[some].tolist(), strict=True))

    @property
    def _firsts(self) -> Longs:
        """The first transaction of each log that has one."""
        return np.flatnonzero(np.append(True, self.owner[1:] != self.owner[:-1])[: len(self.owner)])

    def of(self, logs: Collection[int], producer_ids: Collection[int]) -> tuple[Late, ...]:
        """The transactions of some producers in some logs."""
        return self.take(np.flatnonzero(np.isin(self.owner, [*logs]) & np.isin(self.found["producer_id"], [*producer_ids])))

    def take(self, items: Longs) -> tuple[Late, ...]:
        """Some transactions as values, in the order of ``items``."""
        claims, found, appended_ms = self.claims, self.found, self.claims.appended_ms
        ids = self.coordinators.names(claims.item[items], found["producer_id"][items])
        return tuple(
            Late(
                log=int(self.owner[item]),
                producer_id=int(found["producer_id"][item]),
                producer_epoch=int(found["producer_epoch"][item]),
                first_offset=int(found["first_offset"][item]),
                start_ms=int(claims.start_ms[item]),
                last_append_ms=int(appended_ms[item]),
                transactional_id=transactional_id,
                coordinator_state=STATES[claims.state[item]] if claims.state[item] >= 0 else "",
                verdict=TransactionVerdict(int(self.verdict[item])).label,
                stuck=bool(self.stuck[item]),
                first_ms=int(found["start_ms"][item]),
                deadline_ms=self._deadline_ms(item),
                as_of_ms=int(self.as_of_ms[item]),
            )
            for item, transactional_id in zip(items.tolist(), ids, strict=True)
        )

    def _deadline_ms(self, item: int) -> int:
        claims = self.claims
        if not claims.covered[item] or claims.state[item] != ONGOING or claims.deadline_ms[item] == _NO_DEADLINE:
            return -1
        return int(claims.deadline_ms[item]) - GRACE_MS


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JudgedTransactions:
    """What is exported about transactions at one moment. ``late``: those that are listed one by one; ``open``: all of them."""

    columns: ReplicaOffsets
    late: tuple[Late, ...]
    omitted: int
    open: OpenList


def _columns(count: int, owners: Longs, claims: Claims) -> ReplicaOffsets:
    columns = {name: np.full(count, ABSENT, np.int64) for name in COLUMNS}
    columns["open_transactions"] = np.bincount(owners, minlength=count)
    firsts = np.flatnonzero(np.append(True, owners[1:] != owners[:-1])[: len(owners)])  # in the order of their first offsets
    columns["oldest_open_start_ms"][owners[firsts]] = claims.start_ms[firsts]
    columns["oldest_open_last_append_ms"][owners[firsts]] = claims.last_ms[firsts]
    return columns


def _per_log(count: int, owners: Longs, those: Flags, unclear_items: Flags) -> Longs:
    """How many transactions of each log are in ``those``, at least; `ABSENT` for a log with none for which this is unclear."""
    unclear = np.bincount(owners[unclear_items], minlength=count) > 0
    counts = np.bincount(owners[those], minlength=count)
    return np.where(unclear & (counts == 0), ABSENT, counts)


def coordinator_view(
    logs: Columns,
    carried: Sequence[Carried],
    names: Sequence[str],
    *,
    read_ms: Longs,
    speaks: Flags,
    believed: Flags,
    partitions: int | None,
    clocks_ahead_ms: Mapping[int, int],
    now_ms: int,
) -> CoordinatorView:
    """Combine the observed logs of `__transaction_state`.

    If a partition has readable replicas, only these count: what a deposed leader wrote may never have been valid.

    Args:
        read_ms: up to when each log was processed, by the job's clock; -1 if that is not known, or the log is no current replica.
        speaks: which logs are exported.
        believed: which of them count even if they were not read to their ends from a current replica.
        clocks_ahead_ms: by how much the clocks of coordinators are ahead of the job's, by which their entries are judged.
    """
    own = [item for item, name in enumerate(names) if name == TRANSACTION_TOPIC]
    tables = {item: entries(carried[item]) for item in own}
    whole = (logs["settled"] == 1) & (logs["coordinator_upto"] >= logs["log_end_offset"]) & (read_ms >= 0)
    replicas: dict[int, list[int]] = {}
    for item in own:
        replicas.setdefault(int(logs["partition"][item]), []).append(item)
    found, read, readable_partitions = [], [], set[int]()
    for partition, items in replicas.items():
        # if no entries were published since the job started, they are not known: this does not mean that there are none
        with_entries = [item for item in items if carried[item].coordinator is not None]
        # an entry that is not understood may belong to any transaction
        readable = [item for item in with_entries if whole[item] and NOT_UNDERSTOOD not in tables[item]["state"].to_pylist()]
        chosen = readable or [item for item in items if speaks[item] and believed[item]]
        found.append((newest(tables[item] for item in chosen), bool(readable), _broker(logs, items, speaks)))
        if readable:
            read.append(int(read_ms[readable].max()))
            readable_partitions.add(partition)
    lengths = [len(table) for table, _, _ in found]
    current = np.repeat(np.array([readable for _, readable, _ in found], np.bool_), lengths)
    brokers = np.repeat(np.array([broker for _, _, broker in found], np.int64), lengths)
    complete = all_read(partitions, len(read), 0)
    coordinators = Coordinators.of(
        pa.concat_tables([newest(()), *(table for table, _, _ in found)]),
        complete=complete,
        current=current,
        ahead_ms=np.array([clocks_ahead_ms.get(broker, 0) for broker in brokers.tolist()], np.int64) if clocks_ahead_ms else None,
    )
    overdue = {broker: 0 for _, readable, broker in found if readable}
    for broker in brokers[coordinators.item[_overdue(coordinators, now_ms)]].tolist():
        overdue[broker] += 1
    return CoordinatorView(
        coordinators=coordinators,
        partitions=partitions,
        readable_partitions=frozenset(readable_partitions),
        read_ms=min(read, default=np.iinfo(np.int64).max) if complete else NOT_KNOWN,
        counts=_counts({item: int(logs["broker"][item]) for item in own if speaks[item]}, tables),
        overdue=overdue,
    )


def entries(carried: Carried) -> pa.Table:
    """The entries of one log, the newest of each transactional id: the fold keeps no others."""
    return newest(()) if carried.coordinator is None else pa.Table.from_batches([carried.coordinator])


def _broker(logs: Columns, items: list[int], speaks: Flags) -> int:
    """The broker that is exported for a partition: its coordinator, if the leader is observed."""
    return next((int(logs["broker"][item]) for item in items if speaks[item]), int(logs["broker"][items[0]]))


def _overdue(coordinators: Coordinators, now_ms: int) -> Flags:
    """Which entries their coordinator should have ended by now."""
    timed = coordinators.current & (coordinators.state == ONGOING) & (coordinators.timeout_ms != NEVER_MS) & (coordinators.start_ms >= 0)
    late: Flags = timed & (now_ms > coordinators.start_ms + coordinators.timeout_ms + GRACE_MS)
    return late


def _counts(brokers: dict[int, int], tables: dict[int, pa.Table]) -> dict[int, tuple[int, ...]]:
    counts: dict[int, tuple[int, ...]] = {}
    for item, broker in brokers.items():
        known = counts.get(broker, (0,) * len(STATES))
        counts[broker] = tuple(a + b for a, b in zip(known, count_states(tables[item]), strict=True))
    return counts


def states_of(counts: dict[int, tuple[int, ...]]) -> Iterable[tuple[int, str, int]]:
    """(broker, state, entries) of every broker that is exported for coordinators."""
    for broker in sorted(counts):
        for state, entries in zip(STATES, counts[broker], strict=True):
            yield broker, state, entries


def requests(subjects: Iterable[HangingTransaction]) -> list[PendingCommits]:
    """What agents are sent to request the groups of transactions."""
    return [PendingCommits(**each._asdict()) for each in subjects]


class HangingTransaction(NamedTuple):
    """A transaction on one log."""

    broker: int
    topic: str
    partition: int
    topic_id: str
    producer_id: int
    first_offset: int


def answered(answers: Iterable[PendingCommits]) -> dict[HangingTransaction, tuple[str, ...]]:
    """The groups that agents have found, by transaction; a last "..." says that there may be others."""
    return {_subject(each): (*each.groups, *["..."] * each.more) for each in answers}


def _subject(pending: PendingCommits) -> HangingTransaction:
    return HangingTransaction(pending.broker, pending.topic, pending.partition, pending.topic_id, pending.producer_id, pending.first_offset)


class WaitingGroups:
    """The requested and the known groups. Safe from any thread. A transaction that hangs no more is forgotten."""

    def __init__(self) -> None:
        self._lock = Lock()  # protects what follows
        self._asked: tuple[HangingTransaction, ...] = ()
        self._known: dict[HangingTransaction, tuple[str, ...]] = {}

    def of(self, subjects: Iterable[HangingTransaction]) -> Mapping[HangingTransaction, tuple[str, ...]]:
        """The groups of ``subjects``, which hang now, as far as they are known. The others are requested."""
        there = tuple(subjects)
        with self._lock:
            self._known = {subject: self._known[subject] for subject in there if subject in self._known}
            self._asked = tuple(subject for subject in there if subject not in self._known)[:MOST_ASKED]
            return dict(self._known)

    @property
    def asked(self) -> tuple[HangingTransaction, ...]:
        """The transactions whose groups are requested."""
        with self._lock:
            return self._asked

    def update(self, answers: Mapping[HangingTransaction, tuple[str, ...]]) -> None:
        """Store what agents have found; an empty answer counts too."""
        with self._lock:
            self._known |= answers
            self._asked = tuple(subject for subject in self._asked if subject not in self._known)
