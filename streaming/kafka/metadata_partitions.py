"""The state of a partition, and the records of the metadata log that make and change it (`PartitionRegistration`, `PartitionRecord.json`).

Messages, flexible; (n) from version n on::

    PartitionRecord 0-2        partition i32, topic id, replicas, isr, removing, adding replicas: arrays of i32,
                               leader i32, leader_epoch i32, partition_epoch i32,
                               (1) directories: array of uuid; tagged 0 recovery state i8, 1 ELR, 2 last known ELR
    PartitionChangeRecord 0-2  partition i32, topic id; tagged 0 isr, 1 leader i32, 2 replicas, 3 removing, 4 adding replicas,
                               5 recovery state i8, 6 ELR, 7 last known ELR, 8 directories
    ClearElrRecord 0           topic string
"""

from dataclasses import dataclass, replace

from streaming.errors import FormatError
from streaming.kafka.wire import Reader

_NO_LEADER_CHANGE = -2
_NO_RECOVERY_CHANGE = -1
_CHANGED_REPLICAS = {
    0: "isr",
    2: "replicas",
    3: "removing_replicas",
    4: "adding_replicas",
    6: "eligible_leader_replicas",
    7: "last_known_elr",
}
_CHANGED_LEADER, _CHANGED_RECOVERY, _CHANGED_DIRECTORIES = 1, 5, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRecord:
    """A partition was created. `leader` is -1 where there is none; `directories` (in the order of the replicas) are empty before 3.7."""

    topic_id: str
    partition: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    leader: int
    leader_epoch: int
    partition_epoch: int
    directories: tuple[str, ...] = ()
    recovering: bool = False
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionChangeRecord:
    """A partition changed; None is "as before". A leader that is given raises the leader epoch, even the same one."""

    topic_id: str
    partition: int
    isr: tuple[int, ...] | None = None
    leader: int | None = None
    replicas: tuple[int, ...] | None = None
    removing_replicas: tuple[int, ...] | None = None
    adding_replicas: tuple[int, ...] | None = None
    recovering: bool | None = None
    eligible_leader_replicas: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None
    directories: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ClearElrRecord:
    """The eligible leader replicas of a topic were cleared, or with an empty name those of all topics."""

    topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """Where the replicas of a partition are, which of them are in sync, and who leads; `leader` is -1 where nobody does.

    `directories` are the directory ids (as in `meta.properties`) that hold the replicas, in their order, empty before Kafka 3.7. Those in
    `removing_replicas` and `adding_replicas` move; `recovering` is set after an unclean election until the leader has recovered.
    `eligible_leader_replicas` may still be elected without loss, `last_known_elr` were until all of them were gone.
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
        """The directory that holds this broker's replica, None where it has none or the cluster does not say."""
        if not self.directories or broker_id not in self.replicas:
            return None
        return self.directories[self.replicas.index(broker_id)]

    @property
    def assigned_replicas(self) -> tuple[int, ...]:
        """Without those that are being added: they are not missing yet (`OngoingReassignmentState.replicationFactor`)."""
        return tuple(replica for replica in self.replicas if replica not in self.adding_replicas)

    @property
    def under_replicated(self) -> bool:
        """Whether fewer replicas are in sync than there should be (`Partition.isUnderReplicated`)."""
        return len(self.isr) < len(self.assigned_replicas)

    @property
    def electable(self) -> tuple[int, ...]:
        """Brokers of which one has to be there for a leader that lost nothing.

        Those in sync and the eligible leader replicas; where there are none, the last that were known to be (`PartitionChangeBuilder`).
        """
        return tuple(dict.fromkeys(self.isr + self.eligible_leader_replicas)) or self.last_known_elr

    @property
    def last_in_sync(self) -> tuple[int, ...]:
        """Brokers that had everything when somebody was in sync last.

        Besides those that are electable the last leader, which Kafka writes down as the last replica leaves the ISR and does not elect
        before the eligible ones are gone too. While somebody is in sync it may be one of long ago.
        """
        return self.electable if self.isr else tuple(dict.fromkeys(self.electable + self.last_known_elr))

    @property
    def out_of_sync(self) -> tuple[int, ...]:
        """Replicas that should be in sync and are not, without those that are being added."""
        return tuple(replica for replica in self.assigned_replicas if replica not in self.isr)


@dataclass(frozen=True, slots=True, kw_only=True)
class UncleanElection:
    """``leader`` was elected in ``leader_epoch`` though its log may lack what was acknowledged.

    ``in_sync`` are the brokers that had everything before, ``leader`` among them if its broker crashed as the last one; ``timestamp`` is
    that of the metadata record, Unix milliseconds.
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

    Who is elected from the eligible leader replicas was not in sync either, and has everything: no recovery is asked of it. Where a
    partition recovers already nothing more is set, and who was in sync tells. Before `metadata.version` 3.2 there is no such state.
    """
    if change.leader is None or change.leader < 0 or not after.recovering:
        return False
    return not before.recovering or change.leader not in before.isr + before.eligible_leader_replicas


def read_partition(reader: Reader, version: int) -> PartitionRecord:
    """A PartitionRecord."""
    partition, topic_id, replicas, isr = reader.int32(), reader.uuid(), reader.int32s(), reader.int32s()
    removing_replicas, adding_replicas = reader.int32s(), reader.int32s()
    leader, leader_epoch, partition_epoch = reader.int32(), reader.int32(), reader.int32()
    directories = reader.uuids() if version >= 1 else ()
    recovering = False
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    for tag, content in reader.tagged_fields():
        if tag == 0:
            recovering = content.int8() > 0
        elif tag == 1:
            eligible_leader_replicas = content.int32s()
        elif tag == 2:
            last_known_elr = content.int32s()
    return PartitionRecord(
        topic_id=topic_id,
        partition=partition,
        replicas=replicas,
        isr=isr,
        removing_replicas=removing_replicas,
        adding_replicas=adding_replicas,
        leader=leader,
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
        directories=directories,
        recovering=recovering,
        eligible_leader_replicas=eligible_leader_replicas,
        last_known_elr=last_known_elr,
    )


def read_partition_change(reader: Reader, _version: int) -> PartitionChangeRecord:
    """A PartitionChangeRecord."""
    partition, topic_id = reader.int32(), reader.uuid()
    replicas: dict[str, tuple[int, ...]] = {}
    leader, recovery = _NO_LEADER_CHANGE, _NO_RECOVERY_CHANGE
    directories: tuple[str, ...] | None = None
    for tag, content in reader.tagged_fields():
        if tag in _CHANGED_REPLICAS:
            replicas[_CHANGED_REPLICAS[tag]] = content.int32s()
        elif tag == _CHANGED_LEADER:
            leader = content.int32()
        elif tag == _CHANGED_RECOVERY:
            recovery = content.int8()
        elif tag == _CHANGED_DIRECTORIES:
            directories = content.uuids()
    return PartitionChangeRecord(
        topic_id=topic_id,
        partition=partition,
        leader=None if leader == _NO_LEADER_CHANGE else leader,
        recovering=None if recovery == _NO_RECOVERY_CHANGE else recovery > 0,
        directories=directories,
        **replicas,
    )


def read_clear_elr(reader: Reader, _version: int) -> ClearElrRecord:
    """A ClearElrRecord."""
    record = ClearElrRecord(reader.string())
    reader.skip_tagged_fields()
    return record


def created(record: PartitionRecord) -> PartitionState:
    """The state of a partition that a record describes whole."""
    return PartitionState(
        replicas=record.replicas,
        isr=record.isr,
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


def merged(state: PartitionState, change: PartitionChangeRecord) -> PartitionState:
    """The state after a change.

    The leader epoch is in no change record: it rises by one with every leader that is given, even the same one
    (`PartitionRegistration.merge`).
    """
    replicas = _either(change.replicas, state.replicas)
    return PartitionState(
        replicas=replicas,
        isr=_either(change.isr, state.isr),
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


def without_elr(state: PartitionState) -> PartitionState:
    """The state without eligible leader replicas; it changes, and its epoch rises, only where there are any (`TopicDelta`)."""
    if not state.eligible_leader_replicas and not state.last_known_elr:
        return state
    return replace(state, partition_epoch=state.partition_epoch + 1, eligible_leader_replicas=(), last_known_elr=())


def _either(changed: tuple[int, ...] | None, before: tuple[int, ...]) -> tuple[int, ...]:
    return before if changed is None else changed


def _directories(directories: tuple[str, ...], replicas: tuple[int, ...]) -> tuple[str, ...]:
    if directories and len(directories) != len(replicas):
        raise FormatError(f"{len(directories)} directories for {len(replicas)} replicas of a partition")
    return directories
