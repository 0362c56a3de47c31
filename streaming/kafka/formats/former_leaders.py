"""The leaders of partitions in earlier leader epochs, and when each epoch began. Each batch has the epoch in which it was appended.

The leader epoch of a partition rises by one with every leader that the metadata log names. So the leaders of a partition are one sequence
without gaps: the first one known, and those after it (`PartitionRegistration.merge`).
"""

from streaming.kafka.formats.metadata_partitions import PartitionState

MOST_EPOCHS = 256
"""The most former leaders of a partition that are kept."""

MOST_TOPICS = 1024
"""The most deleted topics whose leaders are kept, because the remains of their logs are read to the end."""

_Row = tuple[int, ...]

Begun = tuple[tuple[int, int], ...]
"""Leader epochs, ascending, with the times of their records in the metadata log, Unix milliseconds; epoch 0 begins with its partition."""


class FormerLeaders:
    """For each partition, the leaders of the epochs directly before the present one, oldest first, -1 for no leader."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[int, _Row]] = {}  # by topic id, then partition; most partitions of a quiet cluster have none
        self._begun: dict[str, dict[int, Begun]] = {}
        self._deleted: dict[str, dict[int, PartitionState]] = {}

    def changed(self, topic_id: str, partition: int, before: PartitionState, after: PartitionState, at_ms: int) -> None:
        """Note that a partition may have another leader epoch."""
        if after.leader_epoch != before.leader_epoch:
            rows = self._rows.setdefault(topic_id, {})
            rows[partition] = (*rows.get(partition, ()), before.leader)[-MOST_EPOCHS:]
            self._begin(topic_id, partition, after.leader_epoch, at_ms)

    def created(self, topic_id: str, partition: int, epoch: int, at_ms: int) -> None:
        """Note that a partition was created. One that begins with a later epoch was there before: a cluster has left ZooKeeper."""
        self._rows.get(topic_id, {}).pop(partition, None)
        if epoch == 0:
            self._begin(topic_id, partition, epoch, at_ms)

    def _begin(self, topic_id: str, partition: int, epoch: int, at_ms: int) -> None:
        begun = self._begun.setdefault(topic_id, {})
        begun[partition] = (*begun.get(partition, ()), (epoch, at_ms))[-MOST_EPOCHS:]

    def begun(self, topic_id: str, partition: int) -> Begun:
        """When leader epochs of a partition began, as far as that was read."""
        return self._begun.get(topic_id, {}).get(partition, ())

    def forget_times(self) -> None:
        """What was read so far is a snapshot, which has no times of its own."""
        self._begun.clear()

    def deleted(self, topic_id: str, partitions: dict[int, PartitionState]) -> None:
        """Note that a topic was deleted."""
        self._begun.pop(topic_id, None)
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
        """Add what is known of an older image, in which the partition was in an ``earlier`` state, before what is known."""
        began = older.begun(topic_id, partition)
        if began:
            mine = self.begun(topic_id, partition)
            times = sorted({**dict(began), **dict(mine)}.items())
            self._begun.setdefault(topic_id, {})[partition] = tuple(times[-MOST_EPOCHS:])
        known = self._rows.get(topic_id, {}).get(partition, ())
        leaders = (*older._rows.get(topic_id, {}).get(partition, ()), earlier.leader)
        more = len(leaders) - (earlier.leader_epoch - (state.leader_epoch - len(known)) + 1)  # of them, before the first known epoch
        if 0 < more <= len(leaders):
            self._rows.setdefault(topic_id, {})[partition] = (*leaders[:more], *known)[-MOST_EPOCHS:]
