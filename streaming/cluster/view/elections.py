"""Unclean elections of partitions and topics, over all replicas: each counts on the log that became the leader by it.

These series do not count towards the series limit, because people are woken up for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from streaming.cluster.view.family import Family, family_of, labels
from streaming.cluster.view.value_matrix import FREE, Columns
from streaming.common.arrays import Flags, Longs
from streaming.common.definitions import replica_metrics

MOST_PARTITIONS = 1_000
"""At most so many partitions are exported, those with the latest elections."""


def elected(columns: Columns, names: list[str], exported: Flags) -> tuple[Elected, ...]:
    """All partitions with unclean elections, the latest election first.

    Args:
        names: of topics, by the number in ``columns["topic"]``.
        exported: whether anything of a topic is exported, by the same number.
    """
    found: dict[tuple[str, int], list[int]] = {}
    some = np.flatnonzero((columns["kind"] != FREE) & (columns["unclean_elections"] > 0) & exported[columns["topic"]])
    for item in some.tolist():
        found.setdefault((names[columns["topic"][item]], int(columns["partition"][item])), []).append(item)
    partitions = (_together(topic, partition, columns.select(np.array(items))) for (topic, partition), items in found.items())
    return tuple(sorted(partitions, key=lambda each: (-each.last_ms, each.topic, each.partition)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Elected:
    """A partition with unclean elections: how many, the time of the last and who was in sync before it, what was lost; -1 not known."""

    topic: str
    partition: int
    elections: int
    last_ms: int
    last_in_sync: int
    upper: int
    acknowledged: int


def _together(topic: str, partition: int, logs: Columns) -> Elected:
    return Elected(
        topic=topic,
        partition=partition,
        elections=int(logs["unclean_elections"].sum()),
        last_ms=int(logs["unclean_ms"].max()),
        last_in_sync=int(logs["unclean_from"][logs["unclean_ms"].argmax()]),
        upper=_sum(logs["unclean_lost_upper"]),
        acknowledged=_sum(logs["unclean_lost_acknowledged"]),
    )


def _sum(values: Longs) -> int:
    return int(values[values >= 0].sum()) if (values >= 0).any() else -1


def families(all_elected: tuple[Elected, ...]) -> Iterator[Family]:
    """One family per metric."""
    topics: dict[str, tuple[int, int]] = {}
    for each in all_elected:
        count, last = topics.get(each.topic, (0, -1))
        topics[each.topic] = count + each.elections, max(last, each.last_ms)
    yield family_of(replica_metrics.TOPIC_UNCLEAN_ELECTIONS, [(labels(topic=topic), count) for topic, (count, _) in topics.items()])
    yield family_of(replica_metrics.TOPIC_LAST_UNCLEAN, [(labels(topic=topic), last) for topic, (_, last) in topics.items()])
    shown = [(each, labels(topic=each.topic, partition=str(each.partition))) for each in all_elected[:MOST_PARTITIONS]]
    yield family_of(replica_metrics.UNCLEAN_ELECTIONS, [(where, each.elections) for each, where in shown])
    last_in_sync = [(f"{where},{labels(last_in_sync=_broker(each.last_in_sync))}", each.last_ms) for each, where in shown]
    yield family_of(replica_metrics.LAST_UNCLEAN, last_in_sync)
    bounds = [(each, where, bound) for each, where in shown for bound in ("acknowledged", "upper")]
    lost = [(f"{where},{labels(bound=bound)}", int(getattr(each, bound))) for each, where, bound in bounds]
    yield family_of(replica_metrics.UNCLEAN_LOST, [(where, offsets) for where, offsets in lost if offsets >= 0])


def _broker(broker: int) -> str:
    return "" if broker < 0 else str(broker)
