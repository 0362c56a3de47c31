"""The partitions of consumer groups as messages: rows of a snapshot, with limits and transactions; and what they come to by group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from streaming.broker.protocol.group_json import (
    CUT_OFF,
    MADE_ANEW,
    PARTED,
    RESUMED,
    GroupPartition,
    GroupSummary,
    HoldingTransaction,
    MovedOffset,
    PendingOffset,
)
from streaming.cluster.consumers.commit_history import Invalid
from streaming.cluster.consumers.group_lag import ABSENT, KNOWN, REASONS
from streaming.cluster.consumers.group_logs import TopicPartition, current_replicas
from streaming.cluster.consumers.group_moves import FoundMove
from streaming.cluster.consumers.group_rebalances import all_lately
from streaming.cluster.consumers.group_snapshot import GroupSnapshot
from streaming.cluster.consumers.losses import losses_of
from streaming.cluster.view.late_arrivals import run_of
from streaming.cluster.view.transaction_columns import Late
from streaming.cluster.view.view import View
from streaming.common.arrays import Longs
from streaming.kafka.formats.names import OFFSETS_TOPIC
from streaming.kafka.groups.group_rows import PendingCommit
from streaming.rules.group_loss import Losses
from streaming.rules.limits import Limits

NOT_COMMITTED = "not_committed"
"""Why there is no lag of a partition of which a group has no offset, or only offsets of open transactions."""

_CLASSIC = "Classic"
_FAR = np.iinfo(np.int64).max

_COUNTS = {
    "partitions": "partitions",
    "known": "known",
    "stopped": "stopped",
    "beyond_end": "beyond",
    "below_start": "below",
}
"""Numbers of partitions: the column here, and that of `PairSums`; likewise those that follow."""

_LOWER_BOUNDS = {
    "lag_offsets": "lag_offsets",
    "lag_records_read_committed": "read_committed",
    "lag_records_read_uncommitted": "read_uncommitted",
    "lag_bytes": "bytes",
}
_LEAST = ("oldest_ms", "oldest_append_ms", "oldest_timestamp_ms", "loss_ms", "loss_start_of", "expiration_ms")


class GroupPartitions:
    """Makes messages from one snapshot; what it looks up is indexed once, and nothing changes it. Thread-safe.

    Args:
        logs: the logs, with their limits and open transactions.
        topics: the names of topics, by their numbers in ``logs``.
    """

    def __init__(self, snapshot: GroupSnapshot, logs: View, topics: Sequence[str]) -> None:
        self.snapshot = snapshot
        self._logs = logs
        self._replicas = current_replicas(logs.observed, {*logs.observed.names})
        self._waits = _Waits(logs, topics)
        named = [*zip(snapshot.logs.topics, snapshot.logs.partition.tolist(), strict=True)]  # one is there twice if named by id, too
        self.agents: dict[TopicPartition, str] = dict(zip(named, snapshot.logs.agents, strict=True))
        """The names of those that read each log."""
        self._pending = pending_by_group(snapshot.pending)
        self._moves: dict[int, list[MovedOffset]] = {}
        for each in snapshot.moved.shown:
            self._moves.setdefault(each.row, []).append(_moved(each))

    def committed(self, rows: Sequence[int]) -> list[GroupPartition]:
        """The partitions of some commits, by their indexes in the snapshot."""
        plain = [_partition(self.snapshot, row, self._waiting(row), self._moves.get(row, [])) for row in rows]
        return [self._waits.added(each) for each in self._limited(plain)]

    def uncommitted(self, group: str) -> list[GroupPartition]:
        """The partitions of which a group has no offset: they are assigned, or there are only offsets of open transactions."""
        waiting = self._pending.get(group, ())
        topic_ids = {(each.topic, each.partition): each.topic_id for each in waiting}
        return [
            self._waits.added(
                GroupPartition(
                    topic=each.topic,
                    partition=each.partition,
                    topic_id=each.topic_id or topic_ids.get((each.topic, each.partition), ""),
                    broker=each.broker,
                    log_start=each.log_start,
                    high_watermark=each.high_watermark,
                    last_stable_offset=each.last_stable,
                    uncommitted_records=each.records,
                    unknown=NOT_COMMITTED if each.reason is None else str(each.reason),
                    pending=_pending_offsets(waiting, each.topic, each.partition),
                )
            )
            for each in self.snapshot.uncommitted.get(group, ())
        ]

    def lost_with(self, partitions: Sequence[GroupPartition]) -> tuple[Longs, Longs]:
        """Up to which offset retention deletes what it deletes together with the next record of each, `ABSENT` for nothing.

        First by the earliest check that does, then by the latest.
        """
        losses, _ = self._losses(partitions)
        return losses.first_end, losses.last_end

    def _waiting(self, row: int) -> Sequence[PendingCommit]:
        return self._pending.get(self.snapshot.rows.group_names[self.snapshot.rows.group[row]], ())

    def _limited(self, partitions: Sequence[GroupPartition]) -> list[GroupPartition]:
        """The partitions; those with a next record with the limits of their logs."""
        losses, items = self._losses(partitions)
        limited = []
        columns = (losses.by_size, losses.silent_ms, losses.latest_ms, items)
        for each, sized, silent_ms, latest_ms, item in zip(partitions, *(column.tolist() for column in columns), strict=True):
            limits = self._limits(item)
            if limits is not None:
                each = replace(each, limits_assumed=limits.assumed, loss_by_size=sized, loss_silent_ms=silent_ms, loss_latest_ms=latest_ms)
                if limits.deletes:
                    each = replace(each, retention_ms=limits.retention_ms, retention_bytes=limits.retention_bytes)
            limited.append(self._with_late(each))
        return limited

    def _limits(self, item: int) -> Limits | None:
        """The limits of a log, None if they are not known."""
        retention = self._logs.retention
        place = int(np.searchsorted(retention.items, item))
        return retention.limits[place] if item >= 0 and place < len(retention.items) and retention.items[place] == item else None

    def _with_late(self, partition: GroupPartition) -> GroupPartition:
        """The partition, with what is known of how late its records came that are next, or lost."""
        item = self._replicas.get((partition.topic, partition.partition))
        run, limits = (None, None) if item is None else (run_of(self._logs.observed, item), self._limits(item))
        if run is None or limits is None or not limits.judges_expiry:
            return partition
        age_ms = run.age_of(partition.next_offset, partition.next_timestamp_ms)
        lost = partition.lost_offsets > 0 and run.is_all(partition.committed, partition.log_start)
        return replace(partition, next_expired_ms=age_ms if age_ms > limits.expires_ms else ABSENT, lost_expired=lost)

    def _losses(self, partitions: Sequence[GroupPartition]) -> tuple[Losses, Longs]:
        """When and how each partition loses its next record, and its log; `ABSENT` for none."""
        snapshot, observed = self.snapshot, self._logs.observed
        some = [at for at, each in enumerate(partitions) if each.next_offset >= 0 and (each.topic, each.partition) in self._replicas]
        logs: list[TopicPartition] = [(partitions[at].topic, partitions[at].partition) for at in some]
        items = np.full(len(partitions), ABSENT, np.int64)
        items[some] = [self._replicas[log] for log in logs]
        offsets = np.array([partitions[at].next_offset for at in some], np.int64)
        losses = losses_of(observed, self._logs.retention, items[some], offsets, snapshot.at_ms)
        return losses.spread(np.array(some, np.int64), len(partitions)), items


class _Waits:
    """The open transactions that hold back records, or a group's own commits."""

    def __init__(self, logs: View, topics: Sequence[str]) -> None:
        self._open = logs.logs.open
        self._item = _judged_logs(logs, topics)

    def added(self, partition: GroupPartition) -> GroupPartition:
        """The partition with what is known of the transactions that it waits for."""
        item = self._item.get((partition.topic, partition.partition))
        if partition.held and item is not None:
            partition = replace(partition, held_by=next(map(_holding, self._open.first_of([item])), None))
        return replace(partition, pending=[self._with_transaction(each) for each in partition.pending]) if partition.pending else partition

    def _with_transaction(self, pending: PendingOffset) -> PendingOffset:
        item = self._item.get((OFFSETS_TOPIC, pending.coordinator))
        late = next(iter(self._open.of([item], [pending.producer_id])), None) if item is not None else None
        if late is None:
            return pending
        return replace(
            pending,
            since_ms=late.first_ms if late.first_ms >= 0 else pending.since_ms,
            start_ms=late.start_ms,
            first_offset=late.first_offset,
            transactional_id=late.transactional_id,
            verdict=late.verdict,
            deadline_ms=late.deadline_ms,
        )


def _judged_logs(logs: View, topics: Sequence[str]) -> dict[TopicPartition, int]:
    """The item of each log among those whose transactions are judged: that of the leader if there are several."""
    named = list(zip([topics[topic] for topic in logs.logs["topic"].tolist()], logs.logs["partition"].tolist(), strict=True))
    leading_last = np.argsort(logs.logs["leader"], kind="stable").tolist()
    return {named[number]: number for number in leading_last}


def _holding(late: Late) -> HoldingTransaction:
    shared = {each.name: getattr(late, each.name) for each in fields(HoldingTransaction) if each.name != "state"}
    return HoldingTransaction(state=late.coordinator_state, **shared)


def pending_by_group(pending: Iterable[PendingCommit]) -> Mapping[str, list[PendingCommit]]:
    """The commits of open transactions, by the names of their groups."""
    groups: dict[str, list[PendingCommit]] = {}
    for each in pending:
        groups.setdefault(each.group, []).append(each)
    return groups


def _moved(one: FoundMove) -> MovedOffset:
    move, amount = one.move, one.amount
    return MovedOffset(
        kind=one.kind,
        from_offset=move.before,
        to_offset=move.offset,
        from_ms=move.before_ms,
        at_ms=move.at_ms,
        records=ABSENT if amount.offsets else amount.records,
        offsets=amount.offsets,
    )


def _partition(snapshot: GroupSnapshot, row: int, waiting: Sequence[PendingCommit], moves: list[MovedOffset]) -> GroupPartition:
    rows, logs, lags = snapshot.rows, snapshot.logs, snapshot.found.lags
    log, code = int(logs.of_row[row]), int(lags.reason[row])
    topic, partition = logs.topics[log], int(rows.partition[row])
    stopped, lately = bool(snapshot.found.stopped[row]), snapshot.progress.lost_lately
    deleted = int(snapshot.found.lost_records[row]), int(lags.below[row])
    lost, buffered = ((0, 0), deleted) if snapshot.found.buffered[row] else (deleted, (0, 0))
    undated_commit = bool(snapshot.progress.committed_ms[row] == ABSENT)
    return GroupPartition(
        topic=topic,
        partition=partition,
        topic_id=rows.topic_ids[rows.topic_id[row]] or logs.topic_ids[log],
        broker=int(logs.broker[log]),
        committed=max(int(rows.offset[row]), ABSENT),
        commit_ms=int(rows.commit_ms[row]),
        expiration_ms=int(snapshot.found.expiration_ms[row]),
        log_start=int(logs.log_start[log]),
        high_watermark=int(logs.high_watermark[log]),
        last_stable_offset=int(logs.last_stable[log]),
        unknown="" if code == KNOWN else str(REASONS[code]),
        lag_offsets=int(lags.offsets[row]),
        lag_records_read_committed=int(lags.read_committed[row]),
        lag_records_read_uncommitted=int(lags.read_uncommitted[row]),
        lag_bytes=int(lags.bytes[row]),
        next_offset=int(lags.next_offset[row]),
        next_timestamp_ms=int(lags.next_timestamp_ms[row]),
        next_append_ms=int(lags.next_append_ms[row]),
        next_batch_bytes=int(lags.next_batch_bytes[row]),
        next_segment=int(lags.next_segment[row]),
        next_position=int(lags.next_position[row]),
        lost_records=lost[0],
        lost_offsets=lost[1],
        buffered_records=buffered[0],
        buffered_offsets=buffered[1],
        lost_lately_records=int(lately.records[row]),
        lost_lately_offsets=int(lately.offsets[row]),
        lost_lately_ms=int(lately.last_ms[row]),
        loss_ms=int(snapshot.found.loss_ms[row]),
        loss_start_of=int(snapshot.found.loss_start_of[row]),
        limits_assumed=bool(snapshot.found.assumed[row]),
        **_history(snapshot.found.invalid, row),
        stopped_since_ms=int(snapshot.progress.stopped_since_ms[row]) if stopped else ABSENT,
        stopped_earlier=stopped and bool(snapshot.progress.stopped_earlier[row]),
        undated=bool(snapshot.found.appended.undated[row] or (snapshot.found.perhaps_stopped[row] and undated_commit)),
        held=bool(lags.held[row]),
        isolation=snapshot.isolation(rows.group_names[rows.group[row]], reads_uncommitted=bool(lags.reads_uncommitted[row])),
        consumed_rate=float(snapshot.progress.rate[row]),
        appended_rate=float(snapshot.appended_rate[log]),
        pending=_pending_offsets(waiting, topic, partition),
        moves=moves,
    )


def _history(invalid: Invalid, row: int) -> dict[str, Any]:
    """The fields that say why a commit is not valid."""
    go_on_at, history = int(invalid.go_on_at[row]), invalid.history
    if go_on_at < 0:
        return {}
    found = {"go_on_at": go_on_at, "passed_records": int(invalid.passed[row])}
    anew = history.made_anew[row] or (history.follows_another[row] and invalid.beyond[row])
    if anew or (history.resumed[row] >= 0 and not history.parted[row]):
        kind = MADE_ANEW if anew else RESUMED
        return {**found, "history": kind, "history_ms": int(history.created_ms[row]), "history_at": int(history.resumed[row])}
    if history.parted_at[row] < 0:
        return found
    return {
        **found,
        "history": CUT_OFF if history.cut_off[row] else PARTED,
        "history_epoch": int(history.parted_epoch[row]),
        "history_ms": int(history.parted_ms[row]),
        "history_at": int(history.parted_at[row]),
        "history_unclean": bool(history.unclean[row]),
    }


def _pending_offsets(waiting: Iterable[PendingCommit], topic: str, partition: int) -> list[PendingOffset]:
    return [
        PendingOffset(producer_id=each.producer_id, offset=each.offset, coordinator=each.coordinator, since_ms=each.commit_ms)
        for each in waiting
        if (each.topic, each.partition) == (topic, partition)
    ]


def open_since(logs: View, topics: Sequence[str]) -> dict[TopicPartition, int]:
    """Since when the first open transaction of each log is open, Unix milliseconds, where that is certain."""
    since_ms = logs.logs.open.first_since()
    return {log: since_ms[item] for log, item in _judged_logs(logs, topics).items() if item in since_ms}


def group_totals(snapshot: GroupSnapshot, is_exported: Callable[[str], bool]) -> GroupTotals:
    """The totals of all groups that are exported.

    What the partitions of each consumer group come to, as columns: one item for each group, in the order of their names.
    """
    rows, sums = snapshot.rows, snapshot.pairs
    waiting = pending_by_group(snapshot.pending)
    of_pair = rows.group[sums.first].astype(np.int64)
    numbers = {rows.group_names[number]: number for number in np.unique(of_pair).tolist()}
    names = sorted(filter(is_exported, snapshot.groups.keys() | numbers.keys() | waiting.keys()))
    number = np.array([numbers.get(name, ABSENT) for name in names], np.int64)
    count = len(rows.group_names)

    def total(values: Longs) -> Longs:
        found = np.zeros(count + 1, np.int64)  # the last item is of groups without an offset
        np.add.at(found, of_pair, values)
        return found[number]

    def lower_bound(values: Longs) -> Longs:
        known = values >= 0
        return np.where(total(known.astype(np.int64)) > 0, total(np.where(known, values, 0)), ABSENT)

    def best(function: np.ufunc, values: Longs, none: int) -> Longs:
        found = np.full(count + 1, none, np.int64)
        function.at(found, of_pair, np.where(values >= 0, values, none))
        return np.where(found == none, ABSENT, found)[number]

    columns = {name: total(getattr(sums, column)) for name, column in _COUNTS.items()}
    columns |= {name: lower_bound(getattr(sums, column)) for name, column in _LOWER_BOUNDS.items()}
    columns |= {name: best(np.minimum, getattr(sums, name), _FAR) for name in _LEAST}
    unread = [[each.records for each in snapshot.uncommitted.get(name, ())] for name in names]
    without = np.array([len(each) for each in unread], np.int64)
    facts = [snapshot.groups.get(name) for name in names]
    pending = {name: [each.commit_ms for each in those if each.commit_ms >= 0] for name, those in waiting.items()}
    columns["unknown"] = columns["partitions"] - columns.pop("known") + without
    columns["partitions"] = columns["partitions"] + without
    columns |= {
        "uncommitted": without,
        "uncommitted_records": np.array([_known_sum(each) for each in unread], np.int64),
        "pending": np.array([len(waiting.get(name, ())) for name in names], np.int64),
        "oldest_pending_ms": np.array([min(pending.get(name, ()), default=ABSENT) for name in names], np.int64),
        "limits_assumed": total(sums.assumed),
        "reads_uncommitted": total(sums.reads_uncommitted),
        "last_commit_ms": best(np.maximum, sums.last_commit_ms, ABSENT),
    }
    for name in ("members", "epoch", "state_ms", "interval_ms"):
        columns[name] = np.array([ABSENT if each is None else max(getattr(each, name), ABSENT) for each in facts], np.int64)
    columns |= _rebalances(snapshot, names)
    return GroupTotals(snapshot=snapshot, names=names, number=number, columns=columns)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupTotals:
    """``columns``: the fields of `GroupSummary` that are numbers, but for ``held``, which is judged; besides, of how many partitions
    ``limits_assumed`` and ``reads_uncommitted`` are so.
    """

    snapshot: GroupSnapshot
    names: list[str]  # of the groups
    number: Longs  # that of each in `CommitRows.group_names`, `ABSENT` for one without a committed offset
    columns: Mapping[str, Longs]

    @property
    def lag(self) -> Longs:
        """What is left of each group, as `GroupSummary.lag`."""
        at = self.columns
        records = np.where(at["reads_uncommitted"] > 0, at["lag_records_read_uncommitted"], at["lag_records_read_committed"])
        return np.where(records >= 0, records, at["lag_offsets"])

    @property
    def types(self) -> list[str]:
        """The type of each group; one that has only commits is a classic one, as for Kafka's tools."""
        return [_CLASSIC if facts is None else facts.type for facts in map(self.snapshot.groups.get, self.names)]

    @property
    def states(self) -> list[str]:
        """The state of each group, "" where nothing is known of it."""
        return ["" if facts is None else facts.state for facts in map(self.snapshot.groups.get, self.names)]

    def summary(self, item: int) -> GroupSummary:
        """One group."""
        facts = self.snapshot.groups.get(self.names[item])
        numbers = {name: int(column[item]) for name, column in self.columns.items()}
        reads_uncommitted = numbers.pop("reads_uncommitted") > 0
        return GroupSummary(
            group=self.names[item],
            type=_CLASSIC if facts is None else facts.type,
            protocol="" if facts is None else facts.protocol,
            state="" if facts is None else facts.state,
            isolation=self.snapshot.isolation(self.names[item], reads_uncommitted=reads_uncommitted),
            limits_assumed=numbers.pop("limits_assumed") > 0,
            **numbers,  # type: ignore[arg-type]  # every column has the name of a number
        )


def _known_sum(numbers: list[int]) -> int:
    """The sum of those that are known, `ABSENT` if none is."""
    known = [each for each in numbers if each >= 0]
    return sum(known) if known else ABSENT


def _rebalances(snapshot: GroupSnapshot, names: list[str]) -> dict[str, Longs]:
    """When groups last rebalanced, and how often of late."""
    found, of_late = snapshot.rebalances, all_lately(snapshot.rebalances, snapshot.groups, snapshot.at_ms)
    last_ms = dict(zip(found.names, found.last_by(snapshot.at_ms).tolist(), strict=True))
    counts = dict.fromkeys(found.names, 0) | {name: each.generations for name, each in of_late.items()}
    return {
        "last_rebalance_ms": np.array([last_ms.get(name, ABSENT) for name in names], np.int64),
        "rebalances_lately": np.array([counts.get(name, ABSENT) for name in names], np.int64),
    }
