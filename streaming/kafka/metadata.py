"""The cluster as its metadata log tells it: topics, who leads each partition, brokers, features (`MetadataImage`).

Every node of a KRaft cluster holds that log, `__cluster_metadata-0`, and snapshots of it. Its end may not be committed yet and may be cut
off again on a node that does not lead it; whoever follows the file then starts a new image.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Self, TypeVar

from streaming.errors import FormatError
from streaming.kafka.batches import RecordBatch, read_batch, read_batches
from streaming.kafka.metadata_records import (
    Boundary,
    BrokerChangeRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    read_metadata_record,
)
from streaming.kafka.records import read_records

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

_SNAPSHOT_FOOTER = b"\x00\x00\x00\x04"  # key of the control record: version 0, type 4 (ControlRecordType)


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that exists."""

    name: str
    topic_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """Where the replicas of a partition are, which of them are in sync, and who leads; `leader` is -1 where nobody does."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerState:
    """A registered broker. A fenced one serves nothing. `log_dirs` are directory ids, as in `meta.properties`."""

    broker_id: int
    fenced: bool
    log_dirs: tuple[str, ...]


class ClusterImage:
    """The state of the cluster at `next_offset` of the metadata log; an empty one stands at its start.

    It moves forward only, and what it hands out are values that stay as they are. After a FormatError it may hold a part of the batch
    that was not understood and is of no more use. Not for several threads at once.
    """

    def __init__(self) -> None:
        self._next_offset = 0
        self._last_epoch = -1
        self._topics: dict[str, Topic] = {}  # by id
        self._topic_ids: dict[str, str] = {}  # by name
        self._partitions: dict[str, dict[int, PartitionState]] = {}  # by topic id, then number
        self._brokers: dict[int, BrokerState] = {}
        self._features: dict[str, int] = {}
        self._transaction: list[MetadataRecord] | None = None  # held back until the metadata transaction ends

    @classmethod
    def from_snapshot(cls, data: memoryview, end_offset: int) -> Self:
        """The image in a snapshot (`.checkpoint`), whose name tells its end offset. It stands at that offset.

        Raises:
            FormatError: not understood, or not whole: a snapshot ends with a footer.
        """
        batches, consumed = read_batches(data)
        if consumed != len(data) or not batches or not _is_footer(batches[-1]):
            raise FormatError("metadata snapshot is not whole", consumed)
        image = cls()
        for batch in batches:
            image._apply_records(batch)
        image._next_offset = end_offset
        return image

    @property
    def next_offset(self) -> int:
        """The offset of the metadata log that it waits for."""
        return self._next_offset

    @property
    def last_epoch(self) -> int:
        """Leader epoch of the last batch of the log that was applied, -1 before any: tells a log that was cut and written anew."""
        return self._last_epoch

    def apply(self, data: memoryview) -> int:
        """Moves forward over the whole batches at the start of `data`, which begins at a batch of the log.

        Batches below `next_offset` are passed over, so a segment may be given from its start.

        Returns:
            How many bytes were used; the rest is the beginning of a batch that is not all there yet.

        Raises:
            FormatError: not understood, or the log goes on behind `next_offset`, so that a newer snapshot is needed.
        """
        position = 0
        while (batch := read_batch(data, position)) is not None:
            if batch.next_offset > self._next_offset:
                if batch.base_offset > self._next_offset:
                    raise FormatError(f"metadata log goes on at offset {batch.base_offset}, {self._next_offset} is missing", position)
                self._apply_records(batch)
                self._next_offset = batch.next_offset
                self._last_epoch = batch.partition_leader_epoch
            position += batch.size
        return position

    def topics(self) -> tuple[Topic, ...]:
        """All topics."""
        return tuple(self._topics.values())

    def topic_name(self, topic_id: str) -> str | None:
        """Name of the topic with this id, None where there is none (any more)."""
        topic = self._topics.get(topic_id)
        return None if topic is None else topic.name

    def topic_id(self, name: str) -> str | None:
        """Id of the topic that has this name now."""
        return self._topic_ids.get(name)

    def partition_numbers(self, topic_id: str) -> tuple[int, ...]:
        """The partitions of a topic, empty where there is no such topic."""
        return tuple(self._partitions.get(topic_id, ()))

    def partition(self, topic_id: str, partition: int) -> PartitionState | None:
        """Replicas and leader of a partition, None where there is none (any more)."""
        partitions = self._partitions.get(topic_id)
        return None if partitions is None else partitions.get(partition)

    def brokers(self) -> tuple[BrokerState, ...]:
        """All registered brokers."""
        return tuple(self._brokers.values())

    def feature_level(self, name: str) -> int:
        """Level of a feature such as `transaction.version`, 0 where it was never set."""
        return self._features.get(name, 0)

    def _apply_records(self, batch: RecordBatch) -> None:
        if batch.is_control:  # the quorum's own records
            return
        for record in read_records(batch):
            try:
                if record.value is None:
                    raise FormatError("no value")
                parsed = read_metadata_record(record.value)
                if parsed is not None:
                    self._step(parsed)
            except FormatError as error:
                raise FormatError(f"metadata record at offset {record.offset}: {error.what}") from error

    def _step(self, record: MetadataRecord) -> None:
        """Applies a record, or holds it back while a metadata transaction runs."""
        if isinstance(record, Boundary):
            self._boundary(record)
        elif self._transaction is not None:
            self._transaction.append(record)
        else:
            self._change(record)

    def _boundary(self, boundary: Boundary) -> None:
        if (boundary is Boundary.BEGIN) != (self._transaction is None):
            raise FormatError(f"metadata transaction: unexpected {boundary}")
        held = self._transaction or []
        self._transaction = [] if boundary is Boundary.BEGIN else None
        if boundary is Boundary.END:
            for record in held:
                self._change(record)

    def _change(self, record: MetadataRecord) -> None:
        match record:
            case TopicRecord(name, topic_id):
                self._topics[topic_id] = Topic(name, topic_id)
                self._topic_ids[name] = topic_id
                self._partitions[topic_id] = {}
            case RemoveTopicRecord(topic_id):
                topic = _known(self._topics, topic_id, "topic")
                del self._topics[topic_id], self._topic_ids[topic.name], self._partitions[topic_id]
            case PartitionRecord():
                _known(self._partitions, record.topic_id, "topic")[record.partition] = PartitionState(
                    replicas=record.replicas, isr=record.isr, leader=record.leader, leader_epoch=record.leader_epoch
                )
            case PartitionChangeRecord():
                partitions = _known(self._partitions, record.topic_id, "topic")
                partitions[record.partition] = _merged(_known(partitions, record.partition, "partition"), record)
            case RegisterBrokerRecord(broker_id=broker_id, fenced=fenced, log_dirs=log_dirs):
                self._brokers[broker_id] = BrokerState(broker_id=broker_id, fenced=fenced, log_dirs=log_dirs)
            case UnregisterBrokerRecord(broker_id):
                _known(self._brokers, broker_id, "broker")
                del self._brokers[broker_id]
            case BrokerChangeRecord():
                broker = _known(self._brokers, record.broker_id, "broker")
                fenced = broker.fenced if record.fenced is None else record.fenced
                log_dirs = broker.log_dirs if record.log_dirs is None else record.log_dirs
                self._brokers[record.broker_id] = replace(broker, fenced=fenced, log_dirs=log_dirs)
            case FeatureLevelRecord(name, level):
                self._features[name] = level


def _merged(state: PartitionState, change: PartitionChangeRecord) -> PartitionState:
    """The leader epoch is in no change record: it rises by one with every leader that is given (`PartitionRegistration.merge`)."""
    return PartitionState(
        replicas=state.replicas if change.replicas is None else change.replicas,
        isr=state.isr if change.isr is None else change.isr,
        leader=state.leader if change.leader is None else change.leader,
        leader_epoch=state.leader_epoch if change.leader is None else state.leader_epoch + 1,
    )


def _known(known: Mapping[_Key, _Value], key: _Key, what: str) -> _Value:
    if key not in known:
        raise FormatError(f"{what} {key} is not known")
    return known[key]


def _is_footer(batch: RecordBatch) -> bool:
    records: Iterable[bytes | None] = (record.key for record in read_records(batch)) if batch.is_control else ()
    return _SNAPSHOT_FOOTER in records
