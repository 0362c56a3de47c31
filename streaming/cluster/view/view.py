"""What a snapshot of the table contains: one log per partition, sums over the logs of a topic and of a broker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.cluster.view.elections import Elected, elected
from streaming.cluster.view.exported import Followers, Logs, Observed, RetentionResults, export, followers, keep, observe
from streaming.cluster.view.family import TEXT
from streaming.cluster.view.late_arrivals import LateArrivals, late_arrivals
from streaming.cluster.view.moves import Move, moves_of
from streaming.cluster.view.table import RECORD_KINDS, Replica, Snapshot
from streaming.cluster.view.topic_skew import TopicSkews, topic_skews
from streaming.cluster.view.value_matrix import DEPARTED, FREE, LOG, Columns
from streaming.common.arrays import Longs
from streaming.common.rows import SKIPPED_COPIES

SHARES = (
    "share_codec_bytes",
    "share_batch_bytes_buckets",
    "share_batch_records_buckets",
    "share_records",
    "share_append_delay_buckets",
    "share_append_delay_ms",
    "share_ahead_batches",
    "share_expired_batches",
    "share_expired_records",
    "share_expired_bytes",
    "judges_expiry",
    "share_transaction_buckets",
    "share_transaction_ms",
    "transactional",
)
"""Columns summed over the logs that are there and those that have departed: what was appended to the topic while they led."""

PER_LOG_COUNTERS = ("corrupt_batches", "truncations", "truncated_bytes", "truncated_committed", "segments_rolled", "segments_deleted")
"""Columns summed over the logs that are there, followers too: each log has its own value."""


def view(snapshot: Snapshot) -> View:
    """Compute what is exported of a snapshot."""
    columns = snapshot.columns
    topic_labels = pa.array(snapshot.topic_labels, TEXT)
    rank = pc.rank(topic_labels, tiebreaker="first").to_numpy().astype(np.int64)
    there = columns.select(np.flatnonzero(columns["kind"] == LOG))
    observed = observe(there, snapshot)
    retention = keep(observed, snapshot)
    names = {name for name, wanted in zip(snapshot.topic_names, snapshot.topic_exported.tolist(), strict=True) if not wanted}
    reassignments = [each for each in snapshot.context.reassignments if each.topic not in names]
    logs = export(observed, retention, snapshot, topic_labels, rank)
    data = snapshot.records[RECORD_KINDS.index("data")][logs.columns["slot"]]
    skews = topic_skews(logs, [observed.names[item] for item in logs.items.tolist()], data, snapshot.context.topic_partitions)
    return View(
        logs=logs,
        followers=followers(observed, topic_labels, rank),
        observed=observed,
        topics=_topics(columns, there, snapshot, topic_labels, rank),
        skews=skews,
        elected=elected(columns, snapshot.topic_names, snapshot.topic_exported),
        retention=retention,
        records=snapshot.records,
        scrubbed=snapshot.scrubbed,
        late=late_arrivals(observed, retention, snapshot.now_ms),
        overdue_after_ms=snapshot.context.overdue_after_ms,
        moves=moves_of(reassignments, observed, snapshot.context.paces, snapshot.now_ms),
        restored=snapshot.restored,
        skipped_bytes=_skipped_bytes(columns, all_replicas=snapshot.all_replicas),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Topics:
    """All topics of each broker, by their number in ``Logs.columns["topic"]``."""

    labels: pa.LargeStringArray
    order: Longs  # of the page, without topics that are not exported, or whose counters are not exported yet
    sums: dict[str, Longs]  # by column: shape (topics,), of a list column (numbers, topics)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class View:
    """What may be exported."""

    logs: Logs
    followers: Followers
    observed: Observed
    topics: Topics
    skews: TopicSkews
    elected: tuple[Elected, ...]
    retention: RetentionResults
    records: Longs  # as `Snapshot.records`
    scrubbed: Mapping[Replica, int]
    late: tuple[LateArrivals, ...]
    overdue_after_ms: int
    moves: tuple[Move, ...]
    restored: bool  # as `Snapshot.restored`
    skipped_bytes: dict[int, dict[str, list[int]]]  # by broker and SKIPPED_COPIES, in the order of `streaming.common.rows.SKIP_REASONS`


def _topics(columns: Columns, there: Columns, snapshot: Snapshot, topic_labels: pa.LargeStringArray, rank: Longs) -> Topics:
    count = len(topic_labels)
    settled = there.select(np.flatnonzero(there["settled"]))
    sharing = np.flatnonzero(((columns["kind"] == LOG) & (columns["settled"] == 1)) | (columns["kind"] == DEPARTED))
    group = columns["topic"][sharing]
    sums = {name: sum_by(group, columns[name][..., sharing], count) for name in SHARES}
    sums |= {name: sum_by(settled["topic"], settled[name], count) for name in PER_LOG_COUNTERS}
    counted = np.flatnonzero(snapshot.topic_counted & snapshot.topic_exported)
    return Topics(labels=topic_labels, order=counted[np.argsort(rank[counted])], sums=sums)


def sum_by(group: Longs, values: Longs, groups: int) -> Longs:
    """Sum ``values``, shape (n,) or (numbers, n), of each group: shape (groups,) or (numbers, groups)."""
    if values.ndim == 2:
        return np.stack([sum_by(group, row, groups) for row in values])
    sums = np.zeros(groups, np.int64)
    np.add.at(sums, group, values)
    return sums


def _skipped_bytes(columns: Columns, *, all_replicas: bool) -> dict[int, dict[str, list[int]]]:
    used = np.flatnonzero(columns["kind"] != FREE)
    brokers, group = np.unique(columns["broker"][used], return_inverse=True)
    everything, follower = (sum_by(group, columns[name][:, used], len(brokers)) for name in ("skipped_bytes", "follower_skipped_bytes"))
    if all_replicas:  # every copy is exported
        follower = np.zeros_like(follower)
    sums = zip(brokers.tolist(), (everything - follower).T.tolist(), follower.T.tolist(), strict=True)
    return {broker: dict(zip(SKIPPED_COPIES, of_copies, strict=True)) for broker, *of_copies in sums}
