"""How unevenly the data of each topic lies in its partitions, as one number: that of the largest partition against their mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from streaming.cluster.view.exported import Logs
from streaming.cluster.view.replica_offsets import ABSENT
from streaming.common.arrays import Flags, Longs


def topic_skews(logs: Logs, topics: Sequence[str], records: Longs, partitions: Mapping[str, int] | None) -> TopicSkews:
    """The skews of all topics that are exported.

    Args:
        topics: that of each log.
        records: data records of each log, -1 where they are not counted.
        partitions: how many the cluster has of each topic, None if that is not known.
    """
    shown, names, known = one_of_each(logs), sorted({*topics}), partitions or {}
    items = {name: item for item, name in enumerate(names)}
    topic = np.fromiter((items[topics[log]] for log in shown.tolist()), np.int64, len(shown))
    counts = np.bincount(topic, minlength=len(names))
    whole = counts == np.fromiter((known.get(name, ABSENT) for name in names), np.int64, len(names))

    def skew(values: Longs) -> Longs:
        sums, largest = np.bincount(topic, values, len(names)), np.zeros(len(names), np.int64)
        np.maximum.at(largest, topic, values)
        there = whole & (np.bincount(topic, values < 0, len(names)) == 0) & (sums > 0)
        found: Longs = np.where(there, np.rint(1e6 * largest * counts / np.where(there, sums, 1)), ABSENT).astype(np.int64)
        return found

    return TopicSkews(names=names, whole=whole, size=skew(logs["size_bytes"][shown]), records=skew(records[shown]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TopicSkews:
    """Items are topics, in the order of their names. Skews are millionths, `ABSENT` where they are not known, and of an empty topic."""

    names: list[str]
    whole: Flags  # whether each partition that the cluster has of it is exported
    size: Longs
    records: Longs


def one_of_each(logs: Logs) -> Longs:
    """One exported log of each partition: that of the leader, if all replicas are exported."""
    order = np.lexsort((-logs["leader"], logs.columns["replicas_of"]))
    first = np.ones(len(order), np.bool_)
    first[1:] = np.diff(logs.columns["replicas_of"][order]) != 0
    found: Longs = order[first]
    return found
