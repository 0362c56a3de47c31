"""The state of a partition, the records of the metadata log that change it, and who led it in earlier leader epochs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any

from streaming.errors import FormatError
from streaming.kafka.formats.wire import Int32, Reader, Uuid, tagged, versions

MOST_EPOCHS = 256
"""The most former leaders of a partition that are kept."""

MOST_TOPICS = 1024
"""The most deleted topics whose leaders are kept, because the remains of their logs are read to the end."""

_Row = tuple[int, ...]

Begun = tuple[tuple[int, int], ...]
"""Leader epochs, ascending, with the times of their records in the metadata log, Unix milliseconds; epoch 0 begins with its partition. Of
an epoch that an unclean election began, `by_unclean` of its time.
"""

BY_UNCLEAN = -2


def _read_new_recovering(reader: Reader) -> bool | None:
    state = reader.int8()
    return None if state == -1 else state > 0


def _read_new_leader(reader: Reader) -> int | None:
    leader = reader.int32()
    return None if leader == -2 else leader


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionChangeRecord:
    """A partition changed; None means "as before". A record with a leader raises the leader epoch, even if the leader is the same."""

    partition: Int32
    topic_id: Uuid
    isr: tuple[Int32, ...] | None = tagged(0, "0+", None)
    leader: Annotated[int | None, _read_new_leader] = tagged(1, "0+", None)
    replicas: tuple[Int32, ...] | None = tagged(2, "0+", None)
    removing_replicas: tuple[Int32, ...] | None = tagged(3, "0+", None)
    adding_replicas: tuple[Int32, ...] | None = tagged(4, "0+", None)
    recovering: Annotated[bool | None, _read_new_recovering] = tagged(5, "0+", None)
    eligible_leader_replicas: tuple[Int32, ...] | None = tagged(6, "2+", None)
    last_known_elr: tuple[Int32, ...] | None = tagged(7, "2+", None)
    directories: tuple[Uuid, ...] | None = tagged(8, "1+", None)


@dataclass(frozen=True, slots=True)
class ClearElrRecord:
    """The eligible leader replicas of a topic were cleared, or of all topics if the name is empty."""

    topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UncleanElection:
    """``leader`` was elected in ``leader_epoch``, although its log may lack acknowledged records.

    ``in_sync`` are the brokers that had everything before. ``leader`` is among them if it was the last one and its broker crashed.
    ``timestamp`` is that of the metadata record, Unix milliseconds.
    """

    topic_id: str
    topic: str
    partition: int
    leader: int
    leader_epoch: int
    in_sync: tuple[int, ...]
    timestamp: int


def is_unclean(before: PartitionState, change: PartitionChangeRecord, after: PartitionState) -> bool:
    """Whether a change is an unclean election: it sets the recovery state (`PartitionChangeBuilder.tryElection`).

    A leader elected from the eligible leader replicas was not in sync either, but has everything, so it does not have to recover. If the
    partition is recovering already, the change sets nothing more; then the replicas in sync before decide. Before `metadata.version` 3.2
    there is no such state.
    """
    if change.leader is None or change.leader < 0 or not after.recovering:
        return False
    return not before.recovering or change.leader not in before.isr + before.eligible_leader_replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """The replicas of a partition, its in-sync replicas, and its leader; `leader` is -1 if there is none.

    `directories` are the directory ids (as in `meta.properties`) of the replicas, in their order, empty before Kafka 3.7. The replicas in
    `removing_replicas` and `adding_replicas` move; `recovering` is set after an unclean election until the leader has recovered.
    `eligible_leader_replicas` may still be elected without loss, `last_known_elr` were eligible until all of them were gone.
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    directories: tuple[str, ...] = ()
    recovering: bool = False
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()

    def directory(self, broker_id: int) -> str | None:
        """The directory of this broker's replica, None if it has none or the cluster does not record it."""
        if not self.directories or broker_id not in self.replicas:
            return None
        return self.directories[self.replicas.index(broker_id)]

    @property
    def assigned_replicas(self) -> tuple[int, ...]:
        """The replicas without those that are being added: they are not missing yet (`OngoingReassignmentState.replicationFactor`)."""
        return tuple(replica for replica in self.replicas if replica not in self.adding_replicas)

    @property
    def under_replicated(self) -> bool:
        """Whether fewer replicas are in sync than there should be (`Partition.isUnderReplicated`)."""
        return len(self.isr) < len(self.assigned_replicas)

    @property
    def electable(self) -> tuple[int, ...]:
        """One of these brokers has to be up for a leader that has lost nothing.

        They are the in-sync and the eligible leader replicas or, without any, the last known eligible ones (`PartitionChangeBuilder`).
        """
        return tuple(dict.fromkeys(self.isr + self.eligible_leader_replicas)) or self.last_known_elr

    @property
    def last_in_sync(self) -> tuple[int, ...]:
        """Brokers that had everything when a replica was last in sync.

        Without in-sync replicas, these are the electable ones and the last leader. Kafka stores that leader when the last replica leaves
        the ISR, and elects it only after all eligible ones are gone too. While a replica is in sync, the stored leader may be a very old
        one and is left out.
        """
        return self.electable if self.isr else tuple(dict.fromkeys(self.electable + self.last_known_elr))

    @property
    def out_of_sync(self) -> tuple[int, ...]:
        """Replicas that should be in sync and are not, without those that are being added."""
        return tuple(replica for replica in self.assigned_replicas if replica not in self.isr)


def created(record: PartitionRecord) -> PartitionState:
    """The state of a partition from a record that describes it completely."""
    return PartitionState(
        replicas=_shared(record.replicas),
        isr=_shared(record.isr),
        leader=record.leader,
        leader_epoch=record.leader_epoch,
        partition_epoch=record.partition_epoch,
        removing_replicas=record.removing_replicas,
        adding_replicas=record.adding_replicas,
        directories=_directories(record.directories, record.replicas),
        recovering=record.recovering,
        eligible_leader_replicas=record.eligible_leader_replicas,
        last_known_elr=record.last_known_elr,
    )


def _read_recovering(reader: Reader) -> bool:
    return reader.int8() > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRecord:
    """A partition was created. `leader` is -1 if there is none; `directories` (in the order of the replicas) are empty before 3.7."""

    partition: Int32
    topic_id: Uuid
    replicas: tuple[Int32, ...]
    isr: tuple[Int32, ...]
    removing_replicas: tuple[Int32, ...]
    adding_replicas: tuple[Int32, ...]
    leader: Int32
    recovering: Annotated[bool, _read_recovering] = tagged(0, "0+", False)
    leader_epoch: Int32
    partition_epoch: Int32
    directories: tuple[Uuid, ...] = versions("1+", ())
    eligible_leader_replicas: tuple[Int32, ...] = tagged(1, "2+", ())
    last_known_elr: tuple[Int32, ...] = tagged(2, "2+", ())


@lru_cache(maxsize=4096)
def _shared(one: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same of those that are equal, because the partitions of a broker have few different ones."""
    return one


def _directories(directories: tuple[str, ...], replicas: tuple[int, ...]) -> tuple[str, ...]:
    if directories and len(directories) != len(replicas):
        raise FormatError(f"{len(directories)} directories for {len(replicas)} replicas of a partition")
    return _shared(directories)


def merged(state: PartitionState, change: PartitionChangeRecord) -> PartitionState:
    """The state after a change.

    No change record contains the leader epoch. It rises by one with every leader in a record, even if it is the same one
    (`PartitionRegistration.merge`).
    """
    replicas = _either(change.replicas, state.replicas)
    return PartitionState(
        replicas=_shared(replicas),
        isr=_shared(_either(change.isr, state.isr)),
        leader=state.leader if change.leader is None else change.leader,
        leader_epoch=state.leader_epoch if change.leader is None else state.leader_epoch + 1,
        partition_epoch=state.partition_epoch + 1,
        removing_replicas=_either(change.removing_replicas, state.removing_replicas),
        adding_replicas=_either(change.adding_replicas, state.adding_replicas),
        directories=_directories(state.directories if change.directories is None else change.directories, replicas),
        recovering=state.recovering if change.recovering is None else change.recovering,
        eligible_leader_replicas=_either(change.eligible_leader_replicas, state.eligible_leader_replicas),
        last_known_elr=_either(change.last_known_elr, state.last_known_elr),
    )


def _either(changed: tuple[int, ...] | None, before: tuple[int, ...]) -> tuple[int, ...]:
    return before if changed is None else changed


def without_elr(state: PartitionState) -> PartitionState:
    """The state without eligible leader replicas. It changes, and its epoch rises, only if there are any (`TopicDelta`)."""
    if not state.eligible_leader_replicas and not state.last_known_elr:
        return state
    return replace(state, partition_epoch=state.partition_epoch + 1, eligible_leader_replicas=(), last_known_elr=())


def by_unclean(at_ms: int) -> int:
    """In place of the time when an epoch began: an unclean election began it then. Below -1, which is "not known"; its own inverse."""
    return BY_UNCLEAN - at_ms


class FormerLeaders:
    """For each partition, the leaders of the epochs directly before the present one, oldest first, -1 for no leader.

    The leaders of partitions in earlier leader epochs, and when each epoch began. Each batch has the epoch in which it was appended.
    The leader epoch of a partition rises by one with every leader that the metadata log names. So the leaders of a partition are one
    sequence without gaps: the first one known, and those after it (`PartitionRegistration.merge`).
    """

    def __init__(self) -> None:
        self._rows: dict[str, dict[int, _Row]] = {}  # by topic id, then partition; most partitions of a quiet cluster have none
        self._begun: dict[str, dict[int, Begun]] = {}
        self._deleted: dict[str, dict[int, PartitionState]] = {}

    def changed(self, topic_id: str, partition: int, before: PartitionState, after: PartitionState, at_ms: int) -> None:
        """Note that a partition may have another leader epoch. ``at_ms``: as in `Begun`."""
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

    def recall(self, topic_id: str, partition: int, state: PartitionState, older: FormerLeaders, earlier: PartitionState) -> None:
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
