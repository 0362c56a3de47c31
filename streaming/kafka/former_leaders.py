"""Who led the partitions of a cluster in which leader epoch, before those who lead now: batches carry the epoch they were appended in.

The leader epoch of a partition rises by one with every leader that the metadata log names, so the leaders of a partition are one row
without gaps: the first one known, and those after it (`PartitionRegistration.merge`).
"""

from streaming.kafka.metadata_partitions import PartitionState

MOST_EPOCHS = 256
"""So many former leaders of a partition are remembered."""

MOST_TOPICS = 1024
"""Of so many deleted topics the leaders are remembered: what is left of their logs is read to its end."""

_Row = tuple[int, ...]


class FormerLeaders:
    """The leaders of the epochs right before the present one of each partition, oldest first, -1 where nobody led."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[int, _Row]] = {}  # by topic id, then partition; most partitions of a quiet cluster have none
        self._deleted: dict[str, dict[int, PartitionState]] = {}

    def changed(self, topic_id: str, partition: int, before: PartitionState, after: PartitionState) -> None:
        """A partition has another leader epoch, maybe."""
        if after.leader_epoch != before.leader_epoch:
            rows = self._rows.setdefault(topic_id, {})
            rows[partition] = (*rows.get(partition, ()), before.leader)[-MOST_EPOCHS:]

    def created(self, topic_id: str, partition: int) -> None:
        """A partition begins."""
        self._rows.get(topic_id, {}).pop(partition, None)

    def deleted(self, topic_id: str, partitions: dict[int, PartitionState]) -> None:
        """A topic is no more."""
        self._deleted[topic_id] = partitions
        if len(self._deleted) > MOST_TOPICS:
            oldest = next(iter(self._deleted))
            del self._deleted[oldest]
            self._rows.pop(oldest, None)

    def last_state(self, topic_id: str, partition: int) -> PartitionState | None:
        """How a partition of a deleted topic was left."""
        return self._deleted.get(topic_id, {}).get(partition)

    def leader_in(self, topic_id: str, partition: int, state: PartitionState, epoch: int) -> int | None:
        """The leader in an epoch of a partition that is in ``state`` now; -1 for nobody, None where that is not known."""
        back = state.leader_epoch - epoch
        if back == 0:
            return state.leader
        row = self._rows.get(topic_id, {}).get(partition, ())
        return row[-back] if 0 < back <= len(row) else None

    def recall(self, topic_id: str, partition: int, state: PartitionState, older: "FormerLeaders", earlier: PartitionState) -> None:
        """Put before what is known of a partition what was known when it was in an ``earlier`` state."""
        known = self._rows.get(topic_id, {}).get(partition, ())
        told = (*older._rows.get(topic_id, {}).get(partition, ()), earlier.leader)
        more = len(told) - (earlier.leader_epoch - (state.leader_epoch - len(known)) + 1)  # of them, before the first known epoch
        if 0 < more <= len(told):
            self._rows.setdefault(topic_id, {})[partition] = (*told[:more], *known)[-MOST_EPOCHS:]
