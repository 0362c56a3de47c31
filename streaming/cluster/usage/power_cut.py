"""What a power cut of the whole site may take, by topic: at most so many bytes are on no disk of any replica."""

from dataclasses import dataclass

import numpy as np

from streaming.cluster.usage.replicas import LogsThere, ReplicaSizes
from streaming.kafka.formats.names import METADATA_TOPIC
from streaming.rules.restart_cost import LogSegments, on_no_disk_bytes


@dataclass(frozen=True, slots=True)
class OnNoDisk:
    """A topic: the most bytes of it that are on no disk, -1 if that is not known of each partition.

    ``partly``: of so many partitions not every replica is observed, or it is not known how many there are; then it may be less.
    """

    size: int
    partly: int


def on_no_disk(replicas: ReplicaSizes, logs: LogsThere) -> dict[str, OnNoDisk]:
    """The topics of some logs. Quorums flush what they write to the metadata log, so nothing is to be found of that."""
    topics = [replicas.topics[item] for item in logs.items.tolist()]
    places = list(zip(topics, replicas.partition[logs.items].tolist(), strict=True))
    numbers = {place: number for number, place in enumerate(dict.fromkeys(places))}
    partition = np.fromiter((numbers[place] for place in places), np.int64, len(places))
    segments = LogSegments(first=logs.logs.first, base=logs.logs.base, size=logs.logs.size)
    most = on_no_disk_bytes(segments, logs.points, logs.logs.log_end, partition, len(numbers)).tolist()
    seen = np.bincount(partition, logs.points.known, minlength=len(numbers))
    wanted = np.full(len(numbers), -1, np.int64)
    np.maximum.at(wanted, partition, logs.assigned)
    partly = ((wanted < 0) | (seen < wanted)).tolist()
    found: dict[str, OnNoDisk] = {}
    for (topic, _), size, part in zip(numbers, most, partly, strict=True):
        if topic == METADATA_TOPIC:
            continue
        before = found.get(topic, OnNoDisk(0, 0))
        found[topic] = OnNoDisk(-1 if min(size, before.size) < 0 else before.size + size, before.partly + part)
    return found
