"""All brokers and partitions of the cluster, as an agent's copy of the metadata log describes them."""

import base64
import zlib
from dataclasses import dataclass, field
from typing import Annotated, Self

from streaming.broker.protocol.json_message import Message
from streaming.broker.protocol.json_values import Small, Text
from streaming.common.arrow_streams import inflate
from streaming.errors import AgentError
from streaming.kafka.formats.admin_changes import AdminChange
from streaming.kafka.formats.metadata_records import Phase

MOST_COUNTS_BYTES = 64 << 20
"""The most bytes to which what an agent sends so is unpacked: counts of some 100,000 topics."""

PhaseName = Annotated[str, Text(form="|".join(("", *Phase)))]
"""One of `streaming.kafka.formats.metadata_records.Phase`, or "" for none."""

InSync = Annotated[str, Text(form="[0-9]{1,9}/([0-9]{1,9})?")]
"""Two numbers of replicas, or one: "2/3" or "2/"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicCounts(Message):
    """How many partitions a topic has, and how many of them are offline, under min ISR, under-replicated.

    ``in_sync`` is set where neither the topic nor a dynamic configuration sets min.insync.replicas. It counts partitions by their in-sync
    replicas: "2/3" for two of three, or "2/" where the broker ignores how many replicas there are (before Kafka 3.7). ``under_min_isr`` is
    0 then.
    """

    topic: str
    partitions: int
    offline: int = 0
    under_min_isr: int = 0
    under_replicated: int = 0
    in_sync: dict[InSync, int] = field(default_factory=dict)
    topic_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AffectedPartition(Message):
    """A partition that is offline, under min ISR or under-replicated: ``problem`` is the worst of these (`Problem`).

    ``leader``: -1 where there is none. ``electable``: one of these brokers has to be up for a leader that has lost nothing. ``also``: the
    other partitions of the topic of which all of this is true, so that every partition can decide what is wrong, however few are shown.
    """

    topic: str
    partition: Small
    problem: str
    leader: Small
    in_sync: list[Small]
    out_of_sync: list[Small]
    electable: list[Small]
    also: list[Small] = field(default_factory=list)

    @property
    def partitions(self) -> list[int]:
        """All of these partitions, sorted."""
        return sorted((self.partition, *self.also))


@dataclass(frozen=True, slots=True)
class PartitionName(Message):
    """The name of a partition."""

    topic: str
    partition: Small


@dataclass(frozen=True, slots=True, kw_only=True)
class Reassignment(Message):
    """A partition that moves replicas from ``removing`` to ``adding`` brokers; ``leader`` is -1 where there is none."""

    topic: str
    partition: Small
    leader: Small
    adding: list[Small]
    removing: list[Small]


@dataclass(frozen=True, slots=True)
class PackedMessage(Message):
    """A message that is sent within another one, packed as text: thousands of topics in a few kilobytes."""

    def pack(self) -> str:
        """Pack it as text for another message."""
        return base64.b64encode(zlib.compress(self.encode())).decode()

    @classmethod
    def unpack(cls, packed: str) -> Self:
        """Unpack the text of `pack`. Raises AgentError as `decode` does."""
        try:
            return cls.decode(inflate(base64.b64decode(packed), MOST_COUNTS_BYTES))
        except ValueError as error:
            raise AgentError(f"no packed {cls.__name__}: {packed[:200]!r} ({error})") from error


@dataclass(frozen=True, slots=True)
class PartitionCounts(PackedMessage):
    """All topics of a cluster, and all partitions with a problem, the worst ones first.

    ``recovering``: some of the partitions that recover from an unclean election; ``reassignments``: all running reassignments.
    """

    topics: list[TopicCounts]
    affected: list[AffectedPartition]
    recovering: list[PartitionName] = field(default_factory=list)
    reassignments: list[Reassignment] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Led(Message):
    """How many partitions a broker leads."""

    broker: Small
    partitions: int


@dataclass(frozen=True, slots=True)
class Registered(Message):
    """A registered broker, and whether the controller has fenced it off.

    ``phase``: one of `streaming.kafka.formats.metadata_records.Phase`, "" if it is not known; ``since_ms``: the latest possible beginning
    of the phase, Unix milliseconds, -1 if it is not known; ``epoch``: of its registration, -1 if it is not known; ``replicas``: whether any
    partition has a replica on it, None if that is not known; ``server``: where clients reach it, HOST:PORT, "" if that is not known.
    """

    broker: Small
    fenced: bool
    epoch: int = -1
    phase: PhaseName = ""
    since_ms: int = -1
    replicas: bool | None = None
    server: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataChange(AdminChange, Message):
    """A change that the metadata log has of an admin."""


@dataclass(frozen=True, slots=True)
class MetadataChanges(PackedMessage):
    """The newest of these changes, the oldest first. ``from_offset``, ``from_ms``: as in `AdminLog`."""

    rows: list[MetadataChange]
    from_offset: int
    from_ms: int
