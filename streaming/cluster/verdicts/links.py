"""What links a problem to others: facts that its message does not have, by which `streaming.cluster.verdicts.incidents` finds its root."""

from dataclasses import dataclass

from streaming.broker.protocol.status_json import Problem

TopicPartition = tuple[str, int]

NO_PRODUCER = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Facts about one problem.

    ``partitions``: all that it is about. ``producer``: whose transaction it is, or it waits for. ``waits``: all of it waits for open
    transactions. ``weight``: what it holds back; of one transaction the problem with most is the root. ``lacks``: the one broker that
    each of the partitions lacks; of several none is said. ``brokers``: those of an agent. ``reason``: as the label of the alert.
    ``came_late``: all that is lost there had come past the retention of its topic. ``awaited``: the broker whose start lets all of it be
    lost, -1 if it waits for none.
    """

    partitions: frozenset[TopicPartition] = frozenset()
    producer: int = NO_PRODUCER
    waits: bool = False
    weight: int = 0
    lacks: int = -1
    brokers: tuple[int, ...] = ()
    reason: str = ""
    came_late: bool = False
    awaited: int = -1


NO_LINKS = Links()


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedProblem:
    """A problem with what links it to others."""

    problem: Problem
    links: Links = NO_LINKS


def partitions_of(topic: str, partitions: list[int]) -> frozenset[TopicPartition]:
    """Some partitions of a topic."""
    return frozenset((topic, partition) for partition in partitions)
