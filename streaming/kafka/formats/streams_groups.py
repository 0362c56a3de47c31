"""Streams groups as `__consumer_offsets` stores them (`StreamsGroup*Value`, KIP-1071): the group, its members, and its topology.

Keys and values are encoded as those of `consumer_groups`. Streams groups commit offsets as consumer groups do.
"""

from dataclasses import dataclass

from streaming.kafka.formats.consumer_groups import ConsumerGroupKey, ConsumerGroupMemberKey, GroupRecordKind, KeyType, TargetAssignment
from streaming.kafka.formats.message_schema import Int8, Int16, Int32, Int64, SchemaMessage, Uint16, tagged


@dataclass(frozen=True, slots=True)
class KeyValue:
    """A setting or a tag."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class StreamsGroup:
    """A group: its epoch, the hash of its topics' metadata, and the epoch of the topology whose topics were found to exist.

    From Kafka 4.4 on (KIP-1331): the topology epochs whose description a broker's plugin has stored (-2: it is not certain), or refused.
    """

    epoch: Int32
    metadata_hash: Int64
    validated_topology_epoch: Int32 = tagged(0, "0+", -1)
    last_assignment_configs: tuple[KeyValue, ...] | None = tagged(1, "0+", None)
    stored_description_topology_epoch: Int32 = tagged(2, "0+", -1)
    failed_description_topology_epoch: Int32 = tagged(3, "0+", -1)


@dataclass(frozen=True, slots=True)
class StreamsEndpoint:
    """The address at which an instance answers interactive queries."""

    host: str
    port: Uint16


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupMember:
    """A member as it has described itself; several members may belong to one process."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: Int32
    topology_epoch: Int32
    process_id: str
    user_endpoint: StreamsEndpoint | None
    client_tags: tuple[KeyValue, ...]


@dataclass(frozen=True, slots=True)
class Tasks:
    """Tasks of one subtopology; `epochs` one for each partition, for active tasks that are assigned."""

    subtopology_id: str
    partitions: tuple[Int32, ...]
    epochs: tuple[Int32, ...] | None = tagged(0, "0+", None)


@dataclass(frozen=True, slots=True)
class TargetStreamsMember:
    """The tasks that a member is to be assigned."""

    active_tasks: tuple[Tasks, ...]
    standby_tasks: tuple[Tasks, ...]
    warmup_tasks: tuple[Tasks, ...]


@dataclass(frozen=True, slots=True)
class CurrentStreamsMember:
    """The tasks that a member is assigned, and those that it still has to give back; `state` as in streams' `MemberState`, a number."""

    epoch: Int32
    previous_epoch: Int32
    state: Int8
    active_tasks: tuple[Tasks, ...]
    standby_tasks: tuple[Tasks, ...]
    warmup_tasks: tuple[Tasks, ...]
    active_tasks_pending_revocation: tuple[Tasks, ...]
    standby_tasks_pending_revocation: tuple[Tasks, ...]
    warmup_tasks_pending_revocation: tuple[Tasks, ...]


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """A topic that the application makes for itself; 0 partitions or replicas: not prescribed."""

    name: str
    partitions: Int32
    replication_factor: Int16
    topic_configs: tuple[KeyValue, ...]


@dataclass(frozen=True, slots=True)
class CopartitionGroup:
    """Topics of a subtopology that must have as many partitions, by their indexes in it."""

    source_topics: tuple[Int16, ...]
    source_topic_regex: tuple[Int16, ...]
    repartition_source_topics: tuple[Int16, ...]


@dataclass(frozen=True, slots=True)
class Subtopology:
    """A part of a topology: what it reads and writes."""

    subtopology_id: str
    source_topics: tuple[str, ...]
    source_topic_regex: tuple[str, ...]
    state_changelog_topics: tuple[InternalTopic, ...]
    repartition_sink_topics: tuple[str, ...]
    repartition_source_topics: tuple[InternalTopic, ...]
    copartition_groups: tuple[CopartitionGroup, ...]


@dataclass(frozen=True, slots=True)
class Topology:
    """The topology of an application."""

    epoch: Int32
    subtopologies: tuple[Subtopology, ...]


StreamsGroupValue = StreamsGroup | StreamsGroupMember | TargetAssignment | TargetStreamsMember | CurrentStreamsMember | Topology

STREAMS_GROUP_RECORDS: dict[KeyType, GroupRecordKind[StreamsGroupValue]] = {
    KeyType.STREAMS_GROUP_METADATA: (ConsumerGroupKey, SchemaMessage(StreamsGroup, "0")),
    KeyType.STREAMS_GROUP_MEMBER_METADATA: (ConsumerGroupMemberKey, SchemaMessage(StreamsGroupMember, "0")),
    KeyType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA: (ConsumerGroupKey, SchemaMessage(TargetAssignment, "0")),
    KeyType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER: (ConsumerGroupMemberKey, SchemaMessage(TargetStreamsMember, "0")),
    KeyType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT: (ConsumerGroupMemberKey, SchemaMessage(CurrentStreamsMember, "0")),
    KeyType.STREAMS_GROUP_TOPOLOGY: (ConsumerGroupKey, SchemaMessage(Topology, "0")),
}
"""The records by the types of their keys."""
