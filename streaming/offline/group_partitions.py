"""The partitions of groups in a reading of log dirs: each with its lag, what is about to be lost, and what holds it up."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta

import numpy as np

from streaming.agent.batch_check import check_batch
from streaming.agent.cluster_view import ClusterView
from streaming.disk.scanning import window
from streaming.disk.segment_files import list_segments
from streaming.formatting import format_word
from streaming.groups.commit_table import Commits
from streaming.groups.group_facts import PendingCommit
from streaming.groups.group_rows import NOT_UNDERSTOOD
from streaming.kafka.names import OFFSETS_TOPIC
from streaming.ladder.count_log import CountedLog, count_log
from streaming.ladder.positions import Position
from streaming.metrics.group_expiration import expirations, offsets_retention_ms
from streaming.metrics.group_losses import losses_of, with_limits
from streaming.metrics.group_transactions import holding, with_transaction
from streaming.metrics.view import View
from streaming.offline.observed_logs import ObservedLog, TopicPartition
from streaming.offline.partition_lag import PositionOf, offsets_of, stake_offsets, with_lag, with_loss
from streaming.offline.unmoved_offsets import CommitKey
from streaming.protocol.group_json import GroupPartition, NextBatch, PendingOffset

log = logging.getLogger(__name__)

_TRIES = 3

Row = tuple[str, GroupPartition]
"""A group, and one of its partitions."""


class GroupPartitions:
    """For one thread.

    Args:
        logs: those that were read.
        unmoved: of each group, topic and partition an offset, and since when it is committed.
        paced: called with the number of bytes after each read.
        check: whether the next batch of each partition is read and checked.
        stopped_after: for how long a committed offset may stay where it is.
    """

    def __init__(
        self,
        cluster: ClusterView,
        seen: View,
        logs: Mapping[TopicPartition, ObservedLog],
        commits: Commits,
        unmoved: Mapping[CommitKey, tuple[int, int]],
        paced: Callable[[int], None],
        now_ms: int,
        *,
        check: bool,
        stopped_after: timedelta,
    ) -> None:
        self._cluster, self._seen, self._logs, self._commits, self._unmoved = cluster, seen, logs, commits, unmoved
        self._paced, self._now_ms, self._check = paced, now_ms, check
        self._stopped_after_ms = int(stopped_after.total_seconds() * 1000)
        self._buffer = window()
        self._counted: dict[TopicPartition, CountedLog] = {}
        self._delivered: dict[CommitKey, int] = {}  # of share groups
        self.doubts: list[str] = []
        """What could not be read, in sentences."""

    def by_group(self) -> dict[str, list[GroupPartition]]:
        """The partitions of each group."""
        waiting: dict[TopicPartition, list[Row]] = {}
        found: list[Row] = []
        for group, of in self._committed():
            observed = self._logs.get((of.topic, of.partition))
            unknown = of.unknown or self._unknown(of, observed)
            if unknown or observed is None:
                found.append((group, replace(of, unknown=unknown)))
            else:
                known = replace(of, broker=observed.key.broker, topic_id=of.topic_id or observed.key.topic_id)
                waiting.setdefault((of.topic, of.partition), []).append((group, known))
        for pair, rows in waiting.items():
            found += self._measured(self._logs[pair], rows)
        by_group: dict[str, list[GroupPartition]] = {}
        for group, of in self._with_losses(found):
            by_group.setdefault(group, []).append(self._judged(group, of))
        return by_group

    def _committed(self) -> Iterable[Row]:
        """What is committed, and what waits in transactions."""
        rows, pending = self._commits.rows, dict[CommitKey, list[PendingCommit]]()
        expires = expirations(rows, self._commits.groups, offsets_retention_ms(self._seen.observed, self._seen.kept))
        for each in self._commits.pending:
            pending.setdefault((each.group, each.topic, each.partition), []).append(each)
        for number in range(len(rows)):
            group, topic, topic_id = (
                rows.group_names[rows.group[number]],
                rows.topic_names[rows.topic[number]],
                rows.topic_ids[rows.topic_id[number]],
            )
            if rows.share[number]:
                topic = self._cluster.topic_name(topic_id) or topic_id
                self._delivered[group, topic, int(rows.partition[number])] = int(rows.delivered[number])
            offset = int(rows.offset[number])
            observed = self._commits.logs[rows.log[number]].observed
            waits = pending.pop((group, topic, int(rows.partition[number])), [])
            yield (
                group,
                GroupPartition(
                    topic=topic,
                    partition=int(rows.partition[number]),
                    topic_id=topic_id,
                    committed=offset,
                    commit_ms=int(rows.commit_ms[number]),
                    expiration_ms=int(expires[number]),
                    unknown="coordinator_not_observed" if not observed else "not_understood" if offset == NOT_UNDERSTOOD else "",
                    pending=[self._pending(each) for each in waits],
                ),
            )
        for (group, topic, partition), waits in pending.items():
            of = GroupPartition(topic=topic, partition=partition, topic_id=waits[0].topic_id, unknown="not_committed")
            yield group, replace(of, pending=[self._pending(each) for each in waits])

    def _pending(self, of: PendingCommit) -> PendingOffset:
        log = self._logs.get((OFFSETS_TOPIC, of.coordinator))
        late = next((each for each in log.transactions if each.producer_id == of.producer_id), None) if log is not None else None
        pending = PendingOffset(producer_id=of.producer_id, offset=of.offset, coordinator=of.coordinator, since_ms=of.commit_ms)
        return with_transaction(pending, late)

    def _unknown(self, of: GroupPartition, observed: ObservedLog | None) -> str:
        if observed is None:
            return "topic_gone" if self._cluster.partition_count(of.topic) == 0 else "leader_not_observed"
        if of.topic_id and observed.key.topic_id and of.topic_id != observed.key.topic_id:
            return "topic_made_anew"
        return "leader_not_observed" if observed.ends is None else ""

    def _measured(self, observed: ObservedLog, rows: list[Row]) -> list[Row]:
        """The rows of one log, with their lags."""
        ends = observed.ends
        assert ends is not None
        asked = {offset for _, of in rows for offset in offsets_of(of, ends)}
        if not asked:
            return [(group, with_lag(of, ends, _never)) for group, of in rows]
        counted = self._count(observed, min(asked))
        if counted is None:
            return [(group, replace(of, unknown="damaged")) for group, of in rows]
        self._counted[observed.key.topic, observed.key.partition] = counted
        position_of = _positions(counted, asked, ends.high_watermark)
        return [(group, with_lag(of, ends, position_of, self._delivered.get((group, of.topic, of.partition)))) for group, of in rows]

    def _count(self, observed: ObservedLog, begin: int) -> CountedLog | None:
        for left in reversed(range(_TRIES)):
            try:
                return count_log(list_segments(observed.path), begin, self._buffer, self._paced)
            except OSError as error:  # it may have been deleted or compacted meanwhile: the next try lists it anew
                if not left:
                    log.warning("log cannot be counted", extra={"path": str(observed.path), "error": str(error)})
                    self.doubts.append(f"{format_word(str(observed.path))} cannot be counted: {error}")
        return None

    def _with_losses(self, rows: list[Row]) -> list[Row]:
        """The rows, those with a next record with its loss."""
        kept, ends = self._seen.kept, np.full(len(rows), -1)
        items = np.array([-1 if (log := self._logs.get((of.topic, of.partition))) is None else log.item for _, of in rows], np.int64)
        offsets = np.array([of.next_offset for _, of in rows], np.int64)
        chosen = np.flatnonzero((items >= 0) & (offsets >= 0))
        at_ms = np.full(len(rows), -1)
        losses = losses_of(self._seen.observed, kept, items[chosen], offsets[chosen], self._now_ms)
        at_ms[chosen], ends[chosen] = losses.at_ms, losses.end_offset
        for item, log, sized in zip(chosen.tolist(), items[chosen].tolist(), losses.by_size.tolist(), strict=True):
            group, of = rows[item]
            rows[item] = group, with_limits(of, kept, log, by_size=sized)
        by_log: dict[TopicPartition, list[int]] = {}
        for item in np.flatnonzero(at_ms >= 0).tolist():
            by_log.setdefault((rows[item][1].topic, rows[item][1].partition), []).append(item)
        for pair, items_of in by_log.items():
            asked = {offset for item in items_of for offset in stake_offsets(rows[item][1], int(ends[item]))}
            position_of = _positions(self._counted[pair], asked, max(asked))
            for item in items_of:
                group, of = rows[item]
                rows[item] = group, with_loss(of, int(at_ms[item]), int(ends[item]), position_of)
        return rows

    def _judged(self, group: str, of: GroupPartition) -> GroupPartition:
        """The partition with what holds it up."""
        observed = self._logs.get((of.topic, of.partition))
        if of.held and observed is not None:
            of = replace(of, held_by=next((holding(each) for each in observed.transactions), None))
        if self._check and observed is not None:
            of = replace(of, batch=self._next_batch(of, observed))
        stopped_since_ms = self._stopped_since(group, of)
        return of if stopped_since_ms < 0 else replace(of, stopped_since_ms=stopped_since_ms)

    def _next_batch(self, of: GroupPartition, observed: ObservedLog) -> NextBatch | None:
        """The batch of the next record, or where a part of the log that is damaged begins; None if there is none, or it cannot be read."""
        offset = max(of.committed, of.log_start) if of.unknown == "damaged" else of.next_offset
        if offset < 0:
            return None
        try:
            segments = list_segments(observed.path)
            found = check_batch(segments, offset)
        except OSError as error:
            self.doubts.append(f"{format_word(str(observed.path))}: the batch at {offset} cannot be read: {error}")
            return None
        names = [str(segment.path) for segment in segments if segment.base_offset == found.segment]
        return NextBatch(
            sound=found.sound,
            error=found.error,
            size=found.size,
            codec=found.codec,
            records=found.records,
            producer_id=found.producer_id,
            position=found.position,
            segment=found.segment,
            last_offset=found.last_offset,
            file=names[0] if names else "",
        )

    def _stopped_since(self, group: str, of: GroupPartition) -> int:
        """Since when the committed offset has not moved although the next record was readable, -1 if it is not stopped."""
        offset, since_ms = self._unmoved.get((group, of.topic, of.partition), (-1, -1))
        readable_ms = of.next_append_ms if of.next_append_ms >= 0 else of.next_timestamp_ms
        if offset != of.committed or of.held or of.next_offset < 0 or readable_ms < 0:
            return -1
        stopped_ms = max(since_ms, readable_ms)
        return stopped_ms if self._now_ms - stopped_ms >= self._stopped_after_ms else -1


def _positions(counted: CountedLog, offsets: set[int], upto: int) -> PositionOf:
    ordered = sorted(offsets)
    return dict(zip(ordered, counted.positions(ordered, upto), strict=True)).__getitem__


def _never(_: int) -> Position:
    raise AssertionError("no position was asked for")
