"""The leaders of partitions in earlier leader epochs. They are needed because each batch has the epoch in which it was appended.

The leader epoch of a partition rises by one with every leader that the metadata log names. So the leaders of a partition are one sequence
without gaps: the first one known, and those after it (`PartitionRegistration.merge`).
"""

from streaming.kafka.formats.metadata_partitions import PartitionState

MOST_EPOCHS = 256
"""The most former leaders of a partition that are kept."""

MOST_TOPICS = 1024
"""The most deleted topics whose leaders are kept, because the remains of their logs are read to the end."""

_Row = tuple[int, ...]


class FormerLeaders:
    """For each partition, the leaders of the epochs directly before the present one, oldest first, -1 for no leader."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[int, _Row]] = {}  # by topic id, then partition; most partitions of a quiet cluster have none
        self._deleted: dict[str, dict[int, PartitionState]] = {}

    def changed(self, topic_id: str, partition: int, before: PartitionState, after: PartitionState) -> None:
        """Note that a partition may have another leader epoch."""
        if after.leader_epoch != before.leader_epoch:
            rows = self._rows.setdefault(topic_id, {})
            rows[partition] = (*rows.get(partition, ()), before.leader)[-MOST_EPOCHS:]

    def created(self, topic_id: str, partition: int) -> None:
        """Note that a partition was created."""
        self._rows.get(topic_id, {}).pop(partition, None)

    def deleted(self, topic_id: str, partitions: dict[int, PartitionState]) -> None:
        """Note that a topic was deleted."""
        self._deleted[topic_id] = partitions
        if len(self._deleted) > MOST_TOPICS:
            oldest = next(iter(self._deleted))
            del self._deleted[oldest]
            self._rows.pop(oldest, None)

    def last_state(self, topic_id: str, partition: int) -> PartitionState | None:
        """The last state of a partition of a deleted topic."""
        return self._deleted.get(topic_id, {}).get(partition)

    def leader_in(self, topic_id: str, partition: int, state: PartitionState, epoch: int) -> int | None:
        """The leader in an epoch of a partition that is in ``state`` now; -1 for none, None if it is not known."""
        back = state.leader_epoch - epoch
        if back == 0:
            return state.leader
        row = self._rows.get(topic_id, {}).get(partition, ())
        return row[-back] if 0 < back <= len(row) else None

    def recall(self, topic_id: str, partition: int, state: PartitionState, older: "FormerLeaders", earlier: PartitionState) -> None:
        """Add the leaders from an older image, in which the partition was in an ``earlier`` state, before the known ones."""
        known = self._rows.get(topic_id, {}).get(partition, ())
        leaders = (*older._rows.get(topic_id, {}).get(partition, ()), earlier.leader)
        more = len(leaders) - (earlier.leader_epoch - (state.leader_epoch - len(known)) + 1)  # of them, before the first known epoch
        if 0 < more <= len(leaders):
            self._rows.setdefault(topic_id, {})[partition] = (*leaders[:more], *known)[-MOST_EPOCHS:]
