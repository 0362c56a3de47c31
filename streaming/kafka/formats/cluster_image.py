"""The state of the cluster from its metadata log: topics, partitions with leaders, brokers, configurations, features (`MetadataImage`).

Every node of a KRaft cluster has that log, `__cluster_metadata-0`, and snapshots of it. On a node that does not lead it, its end may not be
committed yet and may be cut off again. A reader of the file then has to start a new image.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self, TypeVar

import numpy as np

from streaming.errors import FormatError
from streaming.kafka.formats.admin_changes import AdminLog
from streaming.kafka.formats.control import KRaftVoters, LeaderChange, SnapshotFooter, SnapshotHeader, read_control
from streaming.kafka.formats.layout import HEADER_BYTES, LENGTH_AT, PREFIX_BYTES
from streaming.kafka.formats.metadata_partitions import (
    Begun,
    ClearElrRecord,
    FormerLeaders,
    PartitionChangeRecord,
    PartitionRecord,
    PartitionState,
    UncleanElection,
    by_unclean,
    created,
    is_unclean,
    merged,
    without_elr,
)
from streaming.kafka.formats.metadata_records import (
    Boundary,
    BrokerChangeRecord,
    BrokerState,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    changed,
    of_snapshot,
    read_metadata_record,
    registered,
)
from streaming.kafka.formats.properties import ResourceType
from streaming.kafka.formats.records import RecordBatch, read_batch, read_records

IDLE_BYTES = 72
"""The size of such a batch."""

_RECORD = bytes.fromhex("1400000001080114000000")  # length, attributes, deltas, no key, 4 bytes of value (frame 1, kind 20, version 0)
_LENGTH = (IDLE_BYTES - PREFIX_BYTES).to_bytes(4, "big")
# The bytes that are the same in all of them: length; magic; attributes and last offset delta; producer, base sequence, count and the
# record.
_FIXED = np.concatenate([np.arange(8, 12), [16], np.arange(21, 27), np.arange(43, IDLE_BYTES)])
_VALUES = np.frombuffer(_LENGTH + b"\x02" + bytes(6) + b"\xff" * 14 + (1).to_bytes(4, "big") + _RECORD, np.uint8)
_FIRST_COMPARED = 16
_BASE_OFFSET, _LEADER_EPOCH, _MAX_TIMESTAMP = slice(0, 8), slice(12, 16), slice(35, 43)

_GAPS = 3
_OFF_AFTER_MS = 10_000

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

MOST_ELECTIONS = 10_000
"""The most unclean elections that are kept until they are taken."""

_RESOURCE_TYPES = frozenset(ResourceType)


class ClusterImage:
    """The state of the cluster at `next_offset` of the metadata log; an empty image is at its start.

    It only moves forward, and it returns values that do not change later. After a FormatError it may contain a part of the batch that was
    not understood, and must not be used any more. Not for several threads at once.
    """

    def __init__(self) -> None:
        self._next_offset = 0
        self._topics: dict[str, Topic] = {}  # by id
        self._topic_ids: dict[str, str] = {}  # by name
        self._partitions: dict[str, dict[int, PartitionState]] = {}  # by topic id, then number
        self._former = FormerLeaders()
        self._brokers: dict[int, BrokerState] = {}
        self._configs: dict[tuple[int, str], dict[str, str]] = {}  # by resource type and name, then key
        self._changes = self._config_changes = 0
        self._topic_changes: Counter[str] = Counter()
        self._unclean: list[UncleanElection] = []
        self._timestamp = -1  # of the record that is being applied
        self._transaction: list[tuple[int, int, MetadataRecord]] | None = None  # held back until it ends: offset, time, record
        self._written_ms = -1  # when the batch that is being applied was written
        self._pace = IdlePace()
        self._voters: tuple[int, ...] = ()
        self._features: dict[str, int] = {}
        self.admin = AdminLog()
        """What admins did, of what was read."""

    @classmethod
    def from_batches(cls, batches: Iterable[RecordBatch], end_offset: int) -> Self:
        """The image of a snapshot (`.checkpoint`) at its end offset, which is in its file name.

        Raises:
            FormatError: it is not understood, or not complete: a snapshot ends with a footer.
        """
        image, last = cls(), None
        image.admin.quiet = True
        for last in batches:
            image._apply_records(last)
        if last is None or not (last.is_control and any(isinstance(read_control(record), SnapshotFooter) for record in read_records(last))):
            raise FormatError("metadata snapshot is not whole")
        image._brokers = {broker: of_snapshot(state) for broker, state in image._brokers.items()}
        image._former.forget_times()
        image.admin.begin(end_offset)
        image._next_offset = end_offset
        return image

    @property
    def next_offset(self) -> int:
        """The next offset of the metadata log to apply."""
        return self._next_offset

    def apply(self, data: memoryview) -> int:
        """Apply the complete batches at the start of `data`, which begins at a batch of the log.

        Batches below `next_offset` are skipped, so a segment may be given from its start.

        Returns:
            How many bytes were used; the rest is the beginning of a batch that is not complete yet.

        Raises:
            FormatError: it is not understood, or the log has a gap after `next_offset`, so that a newer snapshot is needed.
        """
        position = 0
        while True:
            idle = self._pass_idle(data, position)
            if idle:
                position += idle
                continue
            batch = read_batch(data, position)
            if batch is None:
                return position
            if batch.next_offset > self._next_offset:
                if batch.base_offset > self._next_offset:
                    raise FormatError(f"metadata log goes on at offset {batch.base_offset}, {self._next_offset} is missing", position)
                self._apply_records(batch)
                self._next_offset = batch.next_offset
            position += batch.size

    def _pass_idle(self, data: memoryview, position: int) -> int:
        """The size of the batches at ``position`` that change only the offset."""
        run = idle_run(data, position)
        if not run.batches or run.base_offset > self._next_offset:
            return 0
        if run.base_offset + run.batches > self._next_offset:
            self._next_offset = run.base_offset + run.batches
            self._pace.idle(run.batches, *times_of(data, position, run.batches))
        return run.batches * IDLE_BYTES

    @property
    def idle_interval_ms(self) -> int | None:
        """How often the controller writes while nothing happens; None if that is not known, or if it does not write then."""
        return self._pace.interval_ms

    @property
    def changes(self) -> int:
        """How often anything except configurations has changed. While it stays the same, so does everything about topics and brokers."""
        return self._changes

    @property
    def config_changes(self) -> int:
        """How often a configuration has changed."""
        return self._config_changes

    def topic_changes(self, topic_id: str) -> int:
        """How often a partition of a topic has changed. While it stays the same, so do all of them."""
        return self._topic_changes[topic_id]

    def topics(self) -> tuple[Topic, ...]:
        """All topics."""
        return tuple(self._topics.values())

    def topic_name(self, topic_id: str) -> str | None:
        """The name of the topic with this id, None if there is none (any more)."""
        topic = self._topics.get(topic_id)
        return None if topic is None else topic.name

    def topic_id(self, name: str) -> str | None:
        """The id of the topic that has this name now."""
        return self._topic_ids.get(name)

    def partition_numbers(self, topic_id: str) -> tuple[int, ...]:
        """The partitions of a topic, empty if there is no such topic."""
        return tuple(self._partitions.get(topic_id, ()))

    def partitions_of(self, topic_id: str) -> Mapping[int, PartitionState]:
        """The partitions of a topic with their states, empty if there is no such topic."""
        return self._partitions.get(topic_id, {})

    def partition(self, topic_id: str, partition: int) -> PartitionState | None:
        """Replicas and leader of a partition, None if there is no such partition (any more)."""
        partitions = self._partitions.get(topic_id)
        return None if partitions is None else partitions.get(partition)

    def leader_in(self, topic_id: str, partition: int, epoch: int) -> int | None:
        """The leader of a partition in a leader epoch, -1 if there was none. It works for recently deleted topics as well.

        None if it is not known: the epoch is older than the metadata that was read, or newer, or there is no such partition.
        """
        state = self.partition(topic_id, partition) or self._former.last_state(topic_id, partition)
        return None if state is None else self._former.leader_in(topic_id, partition, state, epoch)

    def epochs_begun(self, topic_id: str, partition: int) -> Begun:
        """When leader epochs of a partition began, as far as that was read."""
        return self._former.begun(topic_id, partition)

    def recall(self, older: ClusterImage) -> None:
        """Add leaders and changes before this image began, from one that began earlier and was advanced at least to that point.

        One that has read nothing adds nothing.
        """
        if older.next_offset:
            self.admin.recall(older.admin)
        for topic_id, partitions in self._partitions.items():
            for number, state in partitions.items():
                earlier = older.partition(topic_id, number)
                if earlier is not None:
                    self._former.recall(topic_id, number, state, older._former, earlier)

    def partitions(self) -> tuple[PartitionState, ...]:
        """All partitions of all topics."""
        return tuple(state for partitions in self._partitions.values() for state in partitions.values())

    def take_unclean_elections(self) -> list[UncleanElection]:
        """The unclean elections that were read since the last call, the newest `MOST_ELECTIONS`."""
        taken, self._unclean = self._unclean, []
        return taken

    def brokers(self) -> tuple[BrokerState, ...]:
        """All registered brokers."""
        return tuple(self._brokers.values())

    @property
    def voters(self) -> tuple[int, ...]:
        """The ids of the quorum's voters (KIP-853); none where their set is static, and in each node's ``quorum-state``."""
        return self._voters

    def broker(self, broker_id: int) -> BrokerState | None:
        """A registered broker, None if there is none (any more)."""
        return self._brokers.get(broker_id)

    def metadata_version(self, broker_id: int) -> int:
        """The highest metadata.version that a broker's registration supports, -1 if it names none or that is not known."""
        broker = self._brokers.get(broker_id)
        return -1 if broker is None else broker.metadata_version

    def topic_configs(self, topic: str) -> tuple[tuple[str, str], ...]:
        """All configurations that a topic itself sets, as names and values."""
        return self._all_configs(ResourceType.TOPIC, topic)

    def broker_configs(self, broker_id: int) -> tuple[tuple[str, str], ...]:
        """All configurations that are set dynamically for one broker, as far as they may be read."""
        return self._all_configs(ResourceType.BROKER, str(broker_id))

    def default_broker_configs(self) -> tuple[tuple[str, str], ...]:
        """All configurations that are set dynamically for all brokers, as far as they may be read."""
        return self._all_configs(ResourceType.BROKER, "")

    def _all_configs(self, resource_type: ResourceType, resource: str) -> tuple[tuple[str, str], ...]:
        return tuple(self._configs.get((resource_type, resource), {}).items())

    def _apply_records(self, batch: RecordBatch) -> None:
        if batch.is_control:  # the quorum's own records
            for control in map(read_control, read_records(batch)):
                if isinstance(control, KRaftVoters):
                    self._voters = tuple(each.voter_id for each in control.voters)
                elif isinstance(control, SnapshotHeader):
                    self.admin.from_ms = control.last_contained_log_timestamp or -1
                elif isinstance(control, LeaderChange):
                    self._pace.elected(batch.max_timestamp)
            return
        self._written_ms = batch.max_timestamp
        self._pace.other(batch.max_timestamp)
        for record in read_records(batch):
            try:
                if record.value is None:
                    raise FormatError("no value")
                parsed = read_metadata_record(record.value)
                if parsed is not None:
                    # apply a record, or hold it back while a metadata transaction is open
                    if isinstance(parsed, Boundary):
                        self._boundary(parsed)
                    elif self._transaction is not None:
                        self._transaction.append((record.offset, record.timestamp, parsed))
                    else:
                        self._change(record.offset, record.timestamp, parsed)
            except FormatError as error:
                raise FormatError(f"metadata record at offset {record.offset}: {error.what}") from error
        self.admin.end_batch()

    def _boundary(self, boundary: Boundary) -> None:
        if (boundary is Boundary.BEGIN) != (self._transaction is None):
            raise FormatError(f"metadata transaction: unexpected {boundary}")
        held = self._transaction or []
        self._transaction = [] if boundary is Boundary.BEGIN else None
        if boundary is Boundary.END:
            for record in held:
                self._change(*record)

    def _change(self, offset: int, timestamp: int, record: MetadataRecord) -> None:
        self._timestamp = timestamp
        self.admin.at(offset, timestamp)
        if isinstance(record, ConfigRecord):
            self._config_changes += 1
        elif not isinstance(record, ProducerIdsRecord):  # ids are given out all the time
            self._changes += 1
        match record:
            case TopicRecord() | RemoveTopicRecord():
                self._change_topic(record)
            case PartitionRecord() | PartitionChangeRecord() | ClearElrRecord():
                self._change_partitions(record)
            case RegisterBrokerRecord() | UnregisterBrokerRecord() | BrokerChangeRecord():
                self._change_broker(record)
            case ConfigRecord():
                self._change_config(record)
            case FeatureLevelRecord(name, level):
                self.admin.feature_changed(name, self._features.get(name, 0), level)
                self._features[name] = level

    def _change_topic(self, record: TopicRecord | RemoveTopicRecord) -> None:
        if isinstance(record, TopicRecord):
            self._topics[record.topic_id] = Topic(record.name, record.topic_id)
            self._topic_ids[record.name] = record.topic_id
            self._partitions[record.topic_id] = {}
            self.admin.topic_created(record.name, record.topic_id)
        else:
            name = _known(self._topics, record.topic_id, "topic").name
            self.admin.topic_deleted(name, record.topic_id, len(self._partitions[record.topic_id]))
            self._former.deleted(record.topic_id, self._partitions.pop(record.topic_id))
            del self._topics[record.topic_id], self._topic_ids[name]
            self._topic_changes.pop(record.topic_id, None)
            self._configs.pop((ResourceType.TOPIC, name), None)

    def _change_partitions(self, record: PartitionRecord | PartitionChangeRecord | ClearElrRecord) -> None:
        match record:
            case PartitionRecord():
                there = _known(self._partitions, record.topic_id, "topic")
                self.admin.partition_created(self._topics[record.topic_id].name, record, len(there))
                there[record.partition] = created(record)
                self._topic_changes[record.topic_id] += 1
                self._former.created(record.topic_id, record.partition, record.leader_epoch, self._timestamp)
            case PartitionChangeRecord():
                self._topic_changes[record.topic_id] += 1
                partitions = _known(self._partitions, record.topic_id, "topic")
                before = _known(partitions, record.partition, "partition")
                after = partitions[record.partition] = merged(before, record)
                unclean = is_unclean(before, record, after)
                at_ms = by_unclean(self._timestamp) if unclean else self._timestamp
                self._former.changed(record.topic_id, record.partition, before, after, at_ms)
                self.admin.partition_changed(self._topics[record.topic_id].name, record.topic_id, record.partition, before, after)
                if unclean:
                    self._note_unclean(record, before, after)
            case ClearElrRecord(name):
                for topic_id in [_known(self._topic_ids, name, "topic")] if name else self._partitions:
                    cleared = {number: without_elr(state) for number, state in self._partitions[topic_id].items()}
                    self._partitions[topic_id] = cleared
                    self._topic_changes[topic_id] += 1

    def _note_unclean(self, record: PartitionChangeRecord, before: PartitionState, after: PartitionState) -> None:
        election = UncleanElection(
            topic_id=record.topic_id,
            topic=self._topics[record.topic_id].name,
            partition=record.partition,
            leader=after.leader,
            leader_epoch=after.leader_epoch,
            in_sync=before.last_in_sync,
            timestamp=self._timestamp,
        )
        self._unclean = [*self._unclean, election][-MOST_ELECTIONS:]

    def _change_broker(self, record: RegisterBrokerRecord | UnregisterBrokerRecord | BrokerChangeRecord) -> None:
        match record:
            case RegisterBrokerRecord():
                if record.broker_id not in self._brokers:
                    self.admin.broker_added(record.broker_id)
                self._brokers[record.broker_id] = registered(record, self._written_ms, self._brokers.get(record.broker_id))
            case UnregisterBrokerRecord(broker_id):
                _known(self._brokers, broker_id, "broker")
                del self._brokers[broker_id]
                self.admin.broker_removed(broker_id)
            case BrokerChangeRecord():
                self._brokers[record.broker_id] = changed(_known(self._brokers, record.broker_id, "broker"), record, self._written_ms)

    def _change_config(self, record: ConfigRecord) -> None:
        self.admin.config_changed(record, self._configs.get((record.resource_type, record.resource), {}).get(record.name))
        if record.hidden or record.resource_type not in _RESOURCE_TYPES:
            return
        values = self._configs.setdefault((record.resource_type, record.resource), {})
        if record.value is None:
            values.pop(record.name, None)
        else:
            values[record.name] = record.value


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that exists."""

    name: str
    topic_id: str


class IdlePace:
    """How often the controller writes idle batches, measured at those that were read last.

    Detects by their bytes the batches that an idle controller writes twice a second. They are most of a metadata log and change
    nothing. A ``NoOpRecord`` alone in its batch takes 72 bytes, which are always the same except offset, leader epoch, CRC and
    timestamps (`QuorumController`). It is written every ``metadata.max.idle.interval.ms``, from Kafka 3.3 on; 0 disables it.

    If the controller writes something else after ten seconds without an idle batch, it writes no idle batches. The time before a
    controller is elected does not count: no controller writes then.
    """

    def __init__(self) -> None:
        self._last_ms = -1
        self._quiet_from_ms = -1
        self._gaps: deque[int] = deque(maxlen=_GAPS)

    @property
    def interval_ms(self) -> int | None:
        """The shortest time between the last ones; None if it is not known, or if none are written."""
        return min(self._gaps) if self._gaps else None

    def idle(self, batches: int, first_ms: int, last_ms: int) -> None:
        """Note that idle batches were read, which the controller wrote from ``first_ms`` to ``last_ms``, Unix milliseconds."""
        if self._last_ms >= 0:
            self._gaps.append(max(0, first_ms - self._last_ms))
        if batches > 1:
            self._gaps.append(max(0, last_ms - first_ms) // (batches - 1))
        self._last_ms = self._quiet_from_ms = last_ms

    def elected(self, at_ms: int) -> None:
        """Note that a controller was elected at ``at_ms``."""
        self._last_ms, self._quiet_from_ms = -1, at_ms

    def other(self, at_ms: int) -> None:
        """Note that a batch of records was read, which the controller wrote at ``at_ms``."""
        if self._quiet_from_ms >= 0 and at_ms - self._quiet_from_ms > _OFF_AFTER_MS:
            self._last_ms = self._quiet_from_ms = -1
            self._gaps.clear()


def idle_run(data: memoryview, position: int) -> IdleRun:
    """The idle batches at ``position``. Their CRCs are not checked, because all bytes that matter are compared."""
    if data[position + LENGTH_AT : position + PREFIX_BYTES] != _LENGTH or data[position + HEADER_BYTES : position + IDLE_BYTES] != _RECORD:
        return IdleRun(0, -1)
    whole, found, compared = (len(data) - position) // IDLE_BYTES, 0, _FIRST_COMPARED
    first = int.from_bytes(data[position : position + 8], "big", signed=True)
    while found < whole:
        begin, count = position + found * IDLE_BYTES, min(compared, whole - found)
        rows = np.frombuffer(data, np.uint8, count * IDLE_BYTES, begin).reshape(count, IDLE_BYTES)
        offsets = np.ascontiguousarray(rows[:, _BASE_OFFSET]).view(">i8")[:, 0]
        same = (rows[:, _FIXED] == _VALUES).all(axis=1) & (offsets == np.arange(first + found, first + found + count))
        idle = count if same.all() else int(np.argmin(same))
        found += idle
        if idle < count:
            break
        compared *= 2  # comparing far more batches than the run has costs more than it saves
    return IdleRun(found, first)


class IdleRun(NamedTuple):
    """A number of idle batches with consecutive offsets from ``base_offset`` on."""

    batches: int
    base_offset: int


def times_of(data: memoryview, position: int, batches: int) -> tuple[int, int]:
    """When the first and the last of a run of idle batches were written, Unix milliseconds."""
    last = position + (batches - 1) * IDLE_BYTES
    return _int(data[position : position + IDLE_BYTES][_MAX_TIMESTAMP]), _int(data[last : last + IDLE_BYTES][_MAX_TIMESTAMP])


def _int(field: memoryview) -> int:
    return int.from_bytes(field, "big", signed=True)


def _known(items: Mapping[_Key, _Value], key: _Key, what: str) -> _Value:
    if key not in items:
        raise FormatError(f"{what} {key} is not known")
    return items[key]
