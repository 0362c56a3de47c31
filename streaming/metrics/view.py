"""What a snapshot of the table says: one log a partition, sums over the logs of a topic and of a broker."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.metrics.columns import DEPARTED, FREE, LOG, Columns, Longs
from streaming.metrics.table import Snapshot
from streaming.rules.leaders import Replicas, assign_roles

SHARES = ("share_codec_bytes", "share_batch_bytes_buckets", "share_batch_records_buckets", "share_records")
"""Columns summed over the logs that are there and those that have left: what was appended to the topic while they led."""

BEFELL = ("corrupt_batches", "truncations", "truncated_bytes")
"""Columns summed over the logs that are there, followers too: each log's own."""

TEXT = pa.large_string()
"""Texts with 64-bit offsets: a page may be larger than 2 GB."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Logs:
    """The exported logs, in the order of the page.

    In ``columns``, ``leader`` is 1 for a log that is known to lead, else 0, and ``leader_epoch`` is its partition's, -1 unknown.
    """

    labels: pa.LargeStringArray
    columns: Columns


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Topics:
    """All topics of each broker, by their number in ``Logs.columns["topic"]``."""

    labels: pa.LargeStringArray
    order: Longs  # of the page, without the topics whose counters are not told yet
    sums: dict[str, Longs]  # by column: shape (topics,), of a list column (numbers, topics)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class View:
    """What may be exported."""

    logs: Logs
    topics: Topics
    skipped_bytes: dict[int, list[int]]  # by broker, in the order of `streaming.rows.SKIP_REASONS`
    observed_logs: int  # replicas that are there, exported or not


def view(snapshot: Snapshot) -> View:
    """Work out what is exported of a snapshot."""
    columns = snapshot.columns
    topic_labels = pa.array(snapshot.topic_labels, TEXT)
    rank = pc.rank(topic_labels, tiebreaker="first").to_numpy().astype(np.int64)
    there = columns.select(np.flatnonzero(columns["kind"] == LOG))
    return View(
        logs=_exported_logs(there, snapshot, topic_labels, rank),
        topics=_topics(columns, there, snapshot, topic_labels, rank),
        skipped_bytes=_skipped_bytes(columns),
        observed_logs=len(there),
    )


def sum_by(group: Longs, values: Longs, groups: int) -> Longs:
    """Sum ``values``, shape (n,) or (numbers, n), of each group: shape (groups,) or (numbers, groups)."""
    if values.ndim == 2:
        return np.stack([sum_by(group, row, groups) for row in values])
    sums = np.zeros(groups, np.int64)
    np.add.at(sums, group, values)
    return sums


def _exported_logs(there: Columns, snapshot: Snapshot, topic_labels: pa.LargeStringArray, rank: Longs) -> Logs:
    roles = assign_roles(
        Replicas(
            partition=there["replicas_of"],
            broker=there["broker"],
            leader=there["leader"],
            leader_epoch=there["leader_epoch"],
            log_epoch=there["log_epoch"],
            end_offset=there["log_end_offset"],
            silent=snapshot.silent[there["agent"]],
        )
    )
    there["leader"][:] = roles.leads
    there["leader_epoch"][:] = roles.leader_epoch
    exported = there if snapshot.all_replicas else there.select(np.flatnonzero(roles.speaks))
    exported = exported.select(_page_order(exported, rank))
    numbers = pc.cast(pa.array(exported["partition"]), TEXT)
    topics = topic_labels.take(pa.array(exported["topic"]))
    labels = pc.binary_join_element_wise(topics, text(',partition="'), numbers, text('"'), text(""))
    return Logs(labels=labels, columns=exported)


def text(value: str) -> pa.Scalar:
    """A text that goes with arrays of texts."""
    return pa.scalar(value, TEXT)


def _page_order(logs: Columns, rank: Longs) -> Longs:
    """By broker and topic, then partition; of two logs with the same labels only one, for a series must not come twice.

    Two there are for a moment: a topic was deleted and made again, and the removal of the old one's log is still on its way. The one
    that grew last is the new one.
    """
    place = rank[logs["topic"]]
    order = np.lexsort((-logs["last_append_ms"], logs["partition"], place))
    place, partition = place[order], logs["partition"][order]
    again = (place[1:] == place[:-1]) & (partition[1:] == partition[:-1])
    return order[np.concatenate(([True], ~again))] if len(order) else order


def _topics(columns: Columns, there: Columns, snapshot: Snapshot, topic_labels: pa.LargeStringArray, rank: Longs) -> Topics:
    count = len(topic_labels)
    settled = there.select(np.flatnonzero(there["settled"]))
    sharing = np.flatnonzero(((columns["kind"] == LOG) & (columns["settled"] == 1)) | (columns["kind"] == DEPARTED))
    group = columns["topic"][sharing]
    sums = {name: sum_by(group, columns[name][..., sharing], count) for name in SHARES}
    sums |= {name: sum_by(settled["topic"], settled[name], count) for name in BEFELL}
    told = np.flatnonzero(snapshot.topic_counted)
    return Topics(labels=topic_labels, order=told[np.argsort(rank[told])], sums=sums)


def _skipped_bytes(columns: Columns) -> dict[int, list[int]]:
    used = np.flatnonzero(columns["kind"] != FREE)
    brokers, group = np.unique(columns["broker"][used], return_inverse=True)
    sums = sum_by(group, columns["skipped_bytes"][:, used], len(brokers))
    return dict(zip(brokers.tolist(), sums.T.tolist(), strict=True))
