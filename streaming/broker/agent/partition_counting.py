"""Counts how many partitions of each topic are offline, under min ISR and under-replicated, from a copy of the metadata log.

All partitions of the cluster are counted, on whichever host their brokers are. If a host dies, its agent dies with it, but the copy of
every other broker contains the partitions that it led.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, islice

from streaming.broker.protocol.cluster_messages import AffectedPartition, PartitionCounts, PartitionName, Reassignment, TopicCounts
from streaming.kafka.formats.cluster_image import ClusterImage, Topic
from streaming.kafka.formats.metadata_partitions import PartitionState
from streaming.rules.min_isr import KAFKA_3_7

EXAMPLES = 5
"""The most partitions of a topic that are named for each problem."""

MOST_AFFECTED = 1_000
"""The most partitions that are named in all, the offline ones first. The same limit holds for recovering and for reassigned ones."""


class PartitionProblem(StrEnum):
    """The problem of a partition, the worst first."""

    OFFLINE = "offline"
    UNDER_MIN_ISR = "under_min_isr"
    UNDER_REPLICATED = "under_replicated"


_WORST_FIRST = {problem: rank for rank, problem in enumerate(PartitionProblem)}


@dataclass(frozen=True, slots=True)
class _TopicCount:
    """The counts of a topic, and the values that they were made of. While these values stay the same, so do the counts."""

    made_of: tuple[object, ...]
    counts: TopicCounts
    affected: list[AffectedPartition]
    recovering: list[PartitionName]
    reassignments: list[Reassignment]


class PartitionCounter:
    """Counts the partitions of one image. A topic is counted again only if it has changed.

    Args:
        min_isr: the min.insync.replicas of the topic or of a dynamic configuration, 0 if neither sets it.
    """

    def __init__(self, min_isr: Callable[[str], int]) -> None:
        self._min_isr = min_isr
        self._image: ClusterImage | None = None
        self._topics: dict[str, _TopicCount] = {}  # by id

    def count(self, image: ClusterImage) -> PartitionCounts:
        """Count all topics of the image now, sorted by name."""
        if image is not self._image:
            self._image = image
            self._topics.clear()
        before, self._topics = self._topics, {}
        capped = frozenset(broker.broker_id for broker in image.brokers() if broker.metadata_version >= KAFKA_3_7)
        for topic in sorted(image.topics(), key=lambda topic: topic.name):
            min_isr = self._min_isr(topic.name)
            made_of = image.topic_changes(topic.topic_id), min_isr, capped
            counted = before.get(topic.topic_id)
            if counted is None or counted.made_of != made_of:
                counted = _count(topic, image.partitions_of(topic.topic_id), min_isr, capped, made_of)
            self._topics[topic.topic_id] = counted
        found = self._topics.values()
        affected = sorted(
            chain.from_iterable(each.affected for each in found), key=lambda each: _WORST_FIRST[PartitionProblem(each.problem)]
        )
        return PartitionCounts(
            [each.counts for each in found],
            affected[:MOST_AFFECTED],
            list(islice(chain.from_iterable(each.recovering for each in found), MOST_AFFECTED)),
            list(islice(chain.from_iterable(each.reassignments for each in found), MOST_AFFECTED)),
        )


def name_of(packed: str) -> str:
    """The name of packed counts: a hash of their content."""
    return hashlib.sha256(packed.encode()).hexdigest()[:16]


def under_min_isr(state: PartitionState, min_isr: int, capped: frozenset[int]) -> bool:
    """Whether fewer replicas are in sync than min.insync.replicas requires (`Partition.isUnderMinIsr`).

    Args:
        capped: brokers of Kafka 3.7 and later, which require no more than there are replicas. Without a leader, any such broker is enough.
    """
    return len(state.isr) < (min(min_isr, len(state.replicas)) if _is_capped(state, capped) else min_isr)


def _is_capped(state: PartitionState, capped: frozenset[int]) -> bool:
    return bool(capped) if state.leader < 0 else state.leader in capped


def _count(
    topic: Topic, partitions: Mapping[int, PartitionState], min_isr: int, capped: frozenset[int], made_of: tuple[object, ...]
) -> _TopicCount:
    states = sorted(partitions.items())
    found = {
        PartitionProblem.OFFLINE: [each for each in states if each[1].leader < 0],
        PartitionProblem.UNDER_MIN_ISR: [each for each in states if under_min_isr(each[1], min_isr, capped)],
        PartitionProblem.UNDER_REPLICATED: sorted((each for each in states if each[1].under_replicated), key=lambda each: len(each[1].isr)),
    }
    return _TopicCount(
        made_of,
        TopicCounts(
            topic=topic.name,
            topic_id=topic.topic_id,
            partitions=len(states),
            in_sync={} if min_isr else dict(Counter(_in_sync(state, capped) for _, state in states)),
            **{str(problem): len(some) for problem, some in found.items()},
        ),
        list(_examples(topic.name, found)),
        [PartitionName(topic.name, number) for number, state in states if state.recovering],
        [_reassignment(topic.name, number, state) for number, state in states if state.adding_replicas or state.removing_replicas],
    )


def _in_sync(state: PartitionState, capped: frozenset[int]) -> str:
    return f"{len(state.isr)}/{len(state.replicas) if _is_capped(state, capped) else ''}"


def _reassignment(topic: str, partition: int, state: PartitionState) -> Reassignment:
    adding, removing = sorted(state.adding_replicas), sorted(state.removing_replicas)
    return Reassignment(topic=topic, partition=partition, leader=state.leader, adding=adding, removing=removing)


def _examples(topic: str, partitions: dict[PartitionProblem, list[tuple[int, PartitionState]]]) -> Iterable[AffectedPartition]:
    named: set[int] = set()
    for problem, some in partitions.items():
        for partition, state in list(islice((each for each in some if each[0] not in named), EXAMPLES)):
            named.add(partition)
            yield AffectedPartition(
                topic=topic,
                partition=partition,
                problem=str(problem),
                leader=state.leader,
                in_sync=sorted(state.isr),
                out_of_sync=sorted(state.out_of_sync),
                electable=sorted(state.electable),
            )
