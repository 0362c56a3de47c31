"""All partitions of the cluster, counted by topic, from the newest copy of the metadata log among agents that are up.

These series do not count towards the series limit, and no granularity leaves them out, because alerts that page people depend on them.
Topics and groups that are not wanted are left out.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

from prometheus_client import Metric as Samples

from streaming.broker.protocol.cluster_messages import AffectedPartition, PartitionCounts, Reassignment
from streaming.broker.protocol.status_messages import BrokerStatus
from streaming.cluster.view.export import EVERYTHING, Export
from streaming.common.definitions import availability_metrics
from streaming.common.definitions.client_family import client_family
from streaming.errors import AgentError

log = logging.getLogger(__name__)

_COUNTED = {
    availability_metrics.TOPIC_OFFLINE: "offline",
    availability_metrics.TOPIC_UNDER_MIN_ISR: "under_min_isr",
    availability_metrics.TOPIC_UNDER_REPLICATED: "under_replicated",
}


def families(newest: BrokerStatus | None, export: Export = EVERYTHING, min_isr: Callable[[int], int] = lambda _: 1) -> Iterator[Samples]:
    """One family per metric; none if no copy can be read.

    Args:
        newest: the status of the broker with the most advanced copy, among those whose agents count.
        min_isr: returns min.insync.replicas of a broker, if the metadata log sets none.
    """
    counts = None if newest is None else judged_counts(newest.counts, min_isr(newest.broker))
    if counts is None or not export.has_metric(availability_metrics.TOPIC_PARTITIONS):
        return
    topics = [each for each in counts.topics if export.has_topic(each.topic)]
    yield client_family(availability_metrics.TOPIC_PARTITIONS, (([each.topic], each.partitions) for each in topics))
    for metric, name in _COUNTED.items():
        yield client_family(metric, (([each.topic], getattr(each, name)) for each in topics if getattr(each, name)))
    yield client_family(
        availability_metrics.AFFECTED_PARTITION, ((_labels(each), 1) for each in counts.affected if export.has_topic(each.topic))
    )
    recovering = (each for each in counts.recovering if export.has_topic(each.topic))
    yield client_family(availability_metrics.RECOVERING, (([each.topic, str(each.partition)], 1) for each in recovering))


@lru_cache(maxsize=4)
def judged_counts(packed: str, min_isr: int) -> PartitionCounts | None:
    """The counts, with partitions under min ISR also if only a ``server.properties`` sets min.insync.replicas.

    None if there are none, or if they are not understood.
    """
    counts = _unpacked(packed)
    if counts is None:
        return None
    open_topics = {each.topic: each for each in counts.topics if each.in_sync}
    topics = [replace(each, under_min_isr=_under(each.in_sync, min_isr)) if each.in_sync else each for each in counts.topics]
    affected = [_worse(each, min_isr, open_topics[each.topic].in_sync) if each.topic in open_topics else each for each in counts.affected]
    return replace(counts, topics=topics, affected=affected)


def _under(in_sync: Mapping[str, int], min_isr: int) -> int:
    """How many partitions are under min ISR."""
    return sum(count for sizes, count in in_sync.items() if _is_under(sizes, min_isr))


def _is_under(sizes: str, min_isr: int) -> bool:
    in_sync, _, replicas = sizes.partition("/")
    return int(in_sync) < (min(min_isr, int(replicas)) if replicas else min_isr)


def _worse(partition: AffectedPartition, min_isr: int, in_sync: Mapping[str, int]) -> AffectedPartition:
    """The partition. An under-replicated one is under min ISR too, if partitions of its topic with as many replicas in sync are."""
    alike = [sizes for sizes in in_sync if sizes.startswith(f"{len(partition.in_sync)}/")]
    under = partition.problem == "under_replicated" and any(_is_under(sizes, min_isr) for sizes in alike)
    return replace(partition, problem="under_min_isr") if under else partition


def reassignments(newest: BrokerStatus | None) -> list[Reassignment]:
    """The reassignments that are under way."""
    counts = None if newest is None else _unpacked(newest.counts)
    return [] if counts is None else counts.reassignments


def topic_partitions(newest: BrokerStatus | None) -> dict[str, int] | None:
    """How many partitions each topic of the cluster has, None if that is not known."""
    counts = None if newest is None else _unpacked(newest.counts)
    return None if counts is None else {each.topic: each.partitions for each in counts.topics}


def topic_ids(newest: BrokerStatus | None) -> dict[str, str] | None:
    """The id of each topic of the cluster; None if that is not known."""
    counts = None if newest is None else _unpacked(newest.counts)
    return None if counts is None else {each.topic: each.topic_id for each in counts.topics}


@lru_cache(maxsize=4)
def _unpacked(packed: str) -> PartitionCounts | None:
    """The counts; None if there are none, or if they are not understood."""
    if not packed:
        return None
    try:
        return PartitionCounts.unpack(packed)
    except AgentError as error:
        log.error("counts of partitions are not understood: is the agent of another version?", extra={"error": str(error)})
        return None


def _labels(partition: AffectedPartition) -> list[str]:
    brokers = (",".join(map(str, some)) for some in (partition.in_sync, partition.out_of_sync, partition.electable))
    return [partition.topic, str(partition.partition), partition.problem, str(partition.leader), *brokers]
