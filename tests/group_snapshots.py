"""Snapshots of consumer groups that consist of what a test says of their partitions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from streaming.broker.protocol.group_json import CUT_OFF, MADE_ANEW, PARTED, RESUMED, GroupPartition, MovedOffset
from streaming.cluster.consumers.commit_history import CommitHistory, Invalid
from streaming.cluster.consumers.commit_times import AppendedNext
from streaming.cluster.consumers.group_counting import PAIR_BITS, Counters, LostLately
from streaming.cluster.consumers.group_lag import ABSENT, KNOWN, REASONS, Lags
from streaming.cluster.consumers.group_logs import GroupLogs
from streaming.cluster.consumers.group_memory import GroupProgress
from streaming.cluster.consumers.group_moves import Amount, FoundMove, Moved
from streaming.cluster.consumers.group_partitions import NOT_COMMITTED
from streaming.cluster.consumers.group_rebalances import RebalanceMemory
from streaming.cluster.consumers.group_snapshot import GroupSnapshot
from streaming.cluster.consumers.group_sums import CommitFacts, LabelMaker, pair_sums
from streaming.cluster.consumers.group_uncommitted import Uncommitted
from streaming.cluster.view.family import EVERYTHING
from streaming.kafka.groups.commit_table import CommitRows
from streaming.kafka.groups.group_rows import GroupFacts, PendingCommit
from streaming.kafka.groups.offset_moves import GroupPresence, MoveKind, OffsetMove


@dataclass(frozen=True, kw_only=True)
class Group:
    """A group: its partitions as a message has them, and what its coordinator knows; None for a group that has only commits."""

    name: str = "billing"
    partitions: Sequence[GroupPartition] = ()
    facts: Mapping[str, object] | None = field(default_factory=dict)


FACTS = {
    "coordinator": 0,
    "effective_offset": 0,
    "type": "Classic",
    "protocol": "consumer",
    "state": "Stable",
    "members": 2,
    "epoch": 4,
    "state_ms": -1,
    "clients": (),
    "hosts": (),
    "topics": (),
}


def _moved(row: int, of: GroupPartition, moved: MovedOffset) -> FoundMove:
    kind = MoveKind(moved.kind)
    move = OffsetMove(
        topic=of.topic,
        topic_id=of.topic_id,
        partition=of.partition,
        before=moved.from_offset,
        offset=moved.to_offset,
        before_ms=moved.from_ms,
        at_ms=moved.at_ms,
        record_offset=0,
        effective_offset=0,
        presence=GroupPresence.LEFT if kind is MoveKind.ADMIN else GroupPresence.THERE,
    )
    return FoundMove(row=row, move=move, kind=kind, amount=Amount(records=max(moved.records, 0), offsets=moved.offsets))


def storming(now_ms: int, generations: int, members: int = 2, ago_ms: int = 0) -> dict[str, object]:
    """What a coordinator knows of a group that has rebalanced so often within a minute."""
    at_ms = now_ms - ago_ms
    return {
        "raised": 100,
        "raised_by_metadata": 0,
        "raised_unfinished": 0,
        "rebalance_ms": at_ms,
        "rebalance_minutes": (at_ms // 60_000, generations, members),
    }


def snapshot_of(*groups: Group, now_ms: int) -> GroupSnapshot:
    """A snapshot of these groups."""
    names = [each.name for each in groups]
    rows = [(names.index(each.name), of) for each in groups for of in each.partitions if of.unknown != NOT_COMMITTED]
    topics = sorted({of.topic for _, of in rows})
    pairs = sorted({(group, of.topic) for group, of in rows})
    rows.sort(key=lambda row: (pairs.index((row[0], row[1].topic)), row[1].partition))
    logs = sorted({(of.topic, of.partition) for _, of in rows})
    parts = [of for _, of in rows]
    share = [(groups[group].facts or {}).get("type") == "Share" for group, _ in rows]

    def column(name: str) -> np.ndarray:
        return np.array([getattr(of, name) for of in parts], np.int64)

    commits = CommitRows(
        key=np.array([pairs.index((group, of.topic)) << PAIR_BITS | of.partition for group, of in rows], np.int64),
        group=np.array([group for group, _ in rows], np.int32),
        topic=np.array([topics.index(of.topic) for of in parts], np.int32),
        topic_id=np.zeros(len(rows), np.int32),
        partition=np.array([of.partition for of in parts], np.int32),
        log=np.zeros(len(rows), np.int32),
        share=np.array(share, np.bool_),
        offset=column("committed"),
        commit_ms=column("commit_ms"),
        expire_ms=np.full(len(rows), -1),
        delivered=np.zeros(len(rows), np.int64),
        leader_epoch=np.full(len(rows), -1),
        former_ms=np.full(len(rows), -1),
        resumed=np.full(len(rows), -1),
        moved_ms=column("commit_ms"),
        presence=np.zeros(len(rows), np.int64),
        done=np.full(len(rows), None, np.object_),
        group_names=tuple(names),
        topic_names=tuple(topics),
        topic_ids=("",),
    )
    lags = Lags(
        reason=np.array([KNOWN if not of.unknown else REASONS.index(of.unknown) for of in parts], np.int8),  # type: ignore[arg-type]
        start=np.maximum(column("committed"), column("log_start")),
        offsets=column("lag_offsets"),
        offsets_there=np.where(column("lag_offsets") >= 0, np.maximum(column("lag_offsets") - column("lost_offsets"), 0), ABSENT),
        read_committed=column("lag_records_read_committed"),
        read_uncommitted=column("lag_records_read_uncommitted"),
        bytes=column("lag_bytes"),
        next_offset=column("next_offset"),
        next_timestamp_ms=column("next_timestamp_ms"),
        next_append_ms=column("next_append_ms"),
        next_batch_bytes=column("next_batch_bytes"),
        next_segment=column("next_segment"),
        next_position=column("next_position"),
        next_earliest_ms=column("next_timestamp_ms"),
        next_latest_ms=column("next_timestamp_ms"),
        beyond=np.array([of.unknown == "beyond_end" for of in parts], np.bool_),
        below=column("lost_offsets") + column("buffered_offsets"),
        deleted_to=np.maximum(column("committed"), column("log_start")),
        held=column("held") > 0,
        reads_uncommitted=np.array([of.reads_uncommitted for of in parts], np.bool_),
    )
    found = CommitFacts(
        lags=lags,
        appended=AppendedNext(earliest_ms=np.where(column("undated") > 0, 0, lags.next_ms), latest_ms=lags.next_ms),
        stopped=column("stopped_since_ms") >= 0,
        perhaps_stopped=(column("undated") > 0) & (column("stopped_since_ms") < 0),
        lost_records=np.where(column("buffered_offsets") > 0, column("buffered_records"), column("lost_records")),
        buffered=column("buffered_offsets") > 0,
        loss_doubtful=np.zeros(len(parts), np.bool_),
        loss_ms=column("loss_ms"),
        loss_pace=_paces(lags, column("loss_ms"), now_ms),
        loss_start_of=column("loss_start_of"),
        loss_at_start=column("loss_start_of") >= 0,
        assumed=column("limits_assumed") > 0,
        holding_ms=np.full(len(parts), -1, np.int64),
        expiration_ms=column("expiration_ms"),
        data_age_ms=np.zeros(len(parts), np.int64),
        invalid=_invalid(parts),
        left_over=np.zeros(len(parts), np.bool_),
    )
    moved = [_moved(row, of, each) for row, of in enumerate(parts) for each in of.moves]
    by_log = {(of.topic, of.partition): of for of in parts}
    group_logs = _logs(logs, by_log, np.array([logs.index((of.topic, of.partition)) for of in parts], np.int64))
    sums = pair_sums(commits, found)
    facts = {each.name: GroupFacts(group=each.name, **FACTS | each.facts) for each in groups if each.facts is not None}  # type: ignore[arg-type]
    return GroupSnapshot(
        at_ms=now_ms,
        moved=Moved(shown=tuple(moved)),
        rows=commits,
        logs=group_logs,
        found=found,
        progress=GroupProgress(
            committed_ms=column("commit_ms"),
            stopped_since_ms=column("stopped_since_ms"),
            stopped_earlier=column("stopped_earlier") > 0,
            perhaps_since_ms=column("stopped_since_ms"),
            unmoved_ms=column("stopped_since_ms"),
            held_since_ms=np.where(lags.held, lags.next_ms, -1),
            lost_ms=np.where((column("lost_offsets") > 0) & (column("lost_records") != 0), now_ms - 60_000, column("lost_lately_ms")),
            losing_since_ms=np.where(
                (column("lost_offsets") > 0) & (column("lost_records") != 0), now_ms - 60_000, column("lost_lately_ms")
            ),
            lost_lately=LostLately(
                records=column("lost_lately_records"), offsets=column("lost_lately_offsets"), last_ms=column("lost_lately_ms")
            ),
            lost_records=column("lost_records"),
            buffered=column("buffered_offsets") > 0,
            rate=np.array([of.consumed_rate for of in parts]),
            lasting_rate=np.array([of.consumed_rate for of in parts]),
            settled_rate=np.array([of.consumed_rate for of in parts]),
        ),
        pairs=sums,
        coordinators=(),
        labels=LabelMaker(EVERYTHING).of(commits, group_logs, sums),
        counters=Counters(**{name: np.zeros(len(pairs), np.int64) for name in Counters.__slots__}),
        groups=facts,
        rebalances=RebalanceMemory(EVERYTHING).update(facts),
        pending=tuple(_pending(groups)),
        uncommitted=_uncommitted(groups),
        unread={},
        not_understood={},
        omitted=0,
        appended_rate=np.array([by_log[log].appended_rate for log in logs]),
    )


def _invalid(parts: Sequence[GroupPartition]) -> Invalid:
    anew, cut, parted, resumed = (np.array([of.history == why for of in parts], np.bool_) for why in (MADE_ANEW, CUT_OFF, PARTED, RESUMED))
    ms, epoch, at, go_on_at = (
        np.array([getattr(of, name) for of in parts], np.int64) for name in ("history_ms", "history_epoch", "history_at", "go_on_at")
    )
    history = CommitHistory(
        made_anew=anew,
        follows_another=resumed,
        resumed=np.where(resumed, at, -1),
        created_ms=np.where(anew | resumed, ms, -1),
        cut_off=cut,
        parted=parted,
        parted_at=np.where(cut | parted, at, -1),
        parted_epoch=epoch,
        parted_ms=np.where(cut | parted, ms, -1),
        unclean=np.array([of.history_unclean for of in parts], np.bool_),
    )
    return Invalid(
        history=history,
        go_on_at=go_on_at,
        passed=np.array([of.passed_records for of in parts], np.int64),
        beyond=np.array([of.unknown == "beyond_end" for of in parts], np.bool_),
    )


def _paces(lags: Lags, loss_ms: np.ndarray, now_ms: int) -> np.ndarray:
    """Of partitions that lose all that is left at once."""
    return np.where(loss_ms >= 0, np.maximum(lags.left, 0) * 1000 / np.maximum(loss_ms - now_ms, 1), -1.0)


def _uncommitted(groups: Sequence[Group]) -> dict[str, list[Uncommitted]]:
    without = {each.name: [of for of in each.partitions if of.unknown == NOT_COMMITTED] for each in groups}
    return {
        name: [Uncommitted(of.topic, of.partition, log_start=of.log_start, high_watermark=of.high_watermark) for of in some]
        for name, some in without.items()
        if some
    }


def _logs(logs: Sequence[tuple[str, int]], by_log: Mapping[tuple[str, int], GroupPartition], of_row: np.ndarray) -> GroupLogs:
    def column(name: str) -> np.ndarray:
        return np.array([getattr(by_log[log], name) for log in logs], np.int64)

    return GroupLogs(
        code=np.arange(len(logs)),
        of_row=of_row,
        topics=[topic for topic, _ in logs],
        topic_ids=[by_log[log].topic_id for log in logs],
        partition=np.array([partition for _, partition in logs], np.int64),
        item=np.full(len(logs), -1),
        broker=column("broker"),
        agents=["a1"] * len(logs),
        reason=np.full(len(logs), KNOWN, np.int8),
        log_start=column("log_start"),
        start_after_crash=np.full(len(logs), -1),
        log_end=column("high_watermark"),
        high_watermark=column("high_watermark"),
        last_stable=column("last_stable_offset"),
        read_ms=np.full(len(logs), -1),
        open_from=np.full(len(logs), -1),
        damaged=np.zeros(len(logs), np.bool_),
        epochs=[b""] * len(logs),
        oldest_ms=np.full(len(logs), -1),
    )


def _pending(groups: Sequence[Group]) -> list[PendingCommit]:
    return [
        PendingCommit(
            group=group.name,
            topic=of.topic,
            topic_id=of.topic_id,
            partition=of.partition,
            coordinator=each.coordinator,
            producer_id=each.producer_id,
            offset=each.offset,
            record_offset=0,
            commit_ms=each.since_ms,
        )
        for group in groups
        for of in group.partitions
        for each in of.pending
    ]
