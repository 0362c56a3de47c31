"""Partitions of which a group has no offset but those of open transactions: they have no lag, and yet their consumers wait."""

from collections.abc import Iterable, Mapping, Sequence

from streaming.groups.group_facts import PendingCommit
from streaming.metrics.group_snapshot import GroupSnapshot
from streaming.protocol.group_json import GroupPartition, PendingOffset

NOT_COMMITTED = "not_committed"


def waiting_by_group(pending: Iterable[PendingCommit]) -> Mapping[str, list[PendingCommit]]:
    """The commits of open transactions, by the names of their groups."""
    found: dict[str, list[PendingCommit]] = {}
    for each in pending:
        found.setdefault(each.group, []).append(each)
    return found


def uncommitted(snapshot: GroupSnapshot, group: str, waiting: Sequence[PendingCommit]) -> list[GroupPartition]:
    """The partitions without a committed offset, of the group of which these commits wait."""
    if not waiting:
        return []
    rows, logs = snapshot.rows, snapshot.logs
    committed = {(logs.topics[logs.of_row[row]], int(rows.partition[row])) for row in snapshot.rows_of(group)}
    topic_ids = {(each.topic, each.partition): each.topic_id for each in waiting}
    return [
        GroupPartition(
            topic=topic,
            partition=partition,
            topic_id=topic_ids[topic, partition],
            unknown=NOT_COMMITTED,
            pending=pending_offsets(waiting, topic, partition),
        )
        for topic, partition in sorted(topic_ids.keys() - committed)
    ]


def pending_offsets(waiting: Iterable[PendingCommit], topic: str, partition: int) -> list[PendingOffset]:
    """Those of one partition."""
    return [
        PendingOffset(producer_id=each.producer_id, offset=each.offset, coordinator=each.coordinator, since_ms=each.commit_ms)
        for each in waiting
        if (each.topic, each.partition) == (topic, partition)
    ]
