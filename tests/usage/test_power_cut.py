"""What a power cut may take, by topic: what no replica has flushed, and how many partitions are seen in part."""

import numpy as np

from streaming.cluster.usage.disk_answer import OnNoDisk, on_no_disk
from streaming.cluster.usage.reckoning import LogsThere, ReplicaSizes
from streaming.common.rows import SEGMENTS
from streaming.rules.limits import limits_of
from streaming.rules.restart_cost import RecoveryPoints
from streaming.rules.retention_rule import LogFacts, SegmentColumns

Replica = tuple[str, int, int, int, int]
"""Topic, partition, log end offset, recovery point, how many replicas its partition has. Segments begin at 0 and 100, a byte an offset."""


def lost(*replicas: Replica) -> dict[str, OnNoDisk]:
    zeros = np.zeros(len(replicas), np.int64)
    topics, numbers, ends, points, assigned = zip(*replicas, strict=True)
    limits = limits_of("orders", "")
    facts = [
        LogFacts(
            segments=np.array([(0, 100, -1, 0), (100, end - 100, -1, 0)], SEGMENTS),
            log_start_offset=0,
            log_end_offset=end,
            high_watermark=end,
            last_stable_offset=-1,
            cleaner_checkpoint=-1,
            oldest_record_ms=-1,
            limits=limits,
        )
        for end in ends
    ]
    sizes = ReplicaSizes(
        topics=topics,
        partition=np.array(numbers, np.int64),
        directory=zeros,
        taken=zeros,
        apparent=zeros,
        segments=zeros,
        not_live=zeros,
        live=zeros == 0,
        unread=zeros > 0,
    )
    logs = LogsThere(
        items=np.arange(len(replicas)),
        logs=SegmentColumns(facts),
        limits=[limits] * len(replicas),
        first_ms=zeros,
        active_first_ms=zeros,
        watched=zeros - 1.0,
        points=RecoveryPoints(offset=np.array(points, np.int64), position=np.maximum(np.array(points, np.int64) - 100, 0)),
        assigned=np.array(assigned, np.int64),
        away=zeros - 1,
    )
    return on_no_disk(sizes, logs)


def test_what_one_replica_has_flushed_is_on_a_disk() -> None:
    assert lost(("orders", 0, 180, 0, 2), ("orders", 0, 180, 100, 2)) == {"orders": OnNoDisk(80, 0)}


def test_a_replica_that_lags_does_not_stand_for_what_it_lacks() -> None:
    """It has flushed all that it has; the other has 80 more, of a segment that begins at 100."""
    assert lost(("orders", 0, 180, 0, 2), ("orders", 0, 100, 100, 2)) == {"orders": OnNoDisk(80, 0)}


def test_partitions_are_added_and_those_seen_in_part_are_counted() -> None:
    found = lost(("orders", 0, 180, 180, 1), ("orders", 1, 180, 150, 3), ("orders", 2, 160, 100, -1))
    assert found == {"orders": OnNoDisk(90, 2)}


def test_a_partition_whose_recovery_points_nobody_sent_leaves_its_topic_unknown() -> None:
    assert lost(("orders", 0, 180, 100, 1), ("orders", 1, 180, -2, 1), ("bills", 0, 180, 100, 1)) == {
        "orders": OnNoDisk(-1, 1),
        "bills": OnNoDisk(80, 0),
    }
