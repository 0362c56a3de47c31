"""What admins did to a cluster, by the records of its metadata log: topics, partitions, configurations, replicas, features and brokers."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import StrEnum

from streaming.kafka.formats.metadata_partitions import PartitionRecord, PartitionState
from streaming.kafka.formats.metadata_records import ConfigRecord
from streaming.kafka.formats.properties import ResourceType

MOST_CHANGES = 1_000
"""The most changes that are kept, the newest."""

_Key = tuple[object, ...]

_RESOURCE_TYPES = frozenset(ResourceType)


class AdminLog:
    """Makes changes of records. Those of one batch belong together: a topic with its partitions and configurations is one change.

    ``from_offset``, ``from_ms``: nothing is known before; 0 and -1 where nothing was before, and -1 where the time is not known.
    """

    def __init__(self) -> None:
        self.from_offset, self.from_ms = 0, -1
        self.version = 0  # grows with whatever is known
        self.quiet = False  # it is a snapshot that is read: state, and no changes
        self._kept: deque[AdminChange] = deque(maxlen=MOST_CHANGES)
        self._batch: dict[_Key, AdminChange] = {}
        self._moving: dict[str, set[int]] = {}  # by topic id, the partitions of which replicas move
        self._moved: dict[str, int] = {}  # likewise, how many have ended since one began
        self._hidden: set[_Key] = set()  # configurations that are set, and are not read
        self._offset = self._at_ms = -1

    @property
    def changes(self) -> tuple[AdminChange, ...]:
        """The newest changes, the oldest first."""
        return tuple(self._kept)

    def begin(self, offset: int) -> None:
        """Go on behind a snapshot: what it holds was there."""
        self.quiet, self.from_offset = False, offset

    def recall(self, older: AdminLog) -> None:
        """Add what was before this began."""
        before = [each for each in older._kept if each.offset < self.from_offset]
        kept, self._kept = [*before, *self._kept], deque(maxlen=MOST_CHANGES)
        self.from_offset, self.from_ms = older.from_offset, older.from_ms
        self._keep(kept)

    def at(self, offset: int, at_ms: int) -> None:
        """The records that follow are at an offset, and of a time."""
        self._offset, self._at_ms = offset, at_ms

    def end_batch(self) -> None:
        """No other record belongs to those before."""
        if not self._batch:
            return
        for key, created in [each for each in self._batch.items() if each[1].kind == ChangeKind.TOPIC_CREATED]:
            own = [each for each in self._batch.items() if each[1].kind == ChangeKind.CONFIG_CHANGED and each[1].topic == created.topic]
            self._batch[key] = replace(created, now=", ".join(f"{each.name}={each.now}" for _, each in own) or None)
            for config, _ in own:
                del self._batch[config]
        self._keep(self._batch.values())
        self._batch.clear()

    def _keep(self, changes: Collection[AdminChange]) -> None:
        forgets = len(self._kept) + len(changes) > MOST_CHANGES
        self._kept.extend(changes)
        self.version += 1
        if forgets:
            self.from_offset, self.from_ms = self._kept[0].offset, self._kept[0].at_ms

    def topic_created(self, topic: str, topic_id: str) -> None:
        """Its partitions and configurations follow, or came before."""
        self._note((ChangeKind.TOPIC_CREATED, topic_id), ChangeKind.TOPIC_CREATED, topic=topic, topic_id=topic_id)

    def topic_deleted(self, topic: str, topic_id: str, partitions: int) -> None:
        """A topic with so many partitions was deleted."""
        self._moving.pop(topic_id, None)
        self._moved.pop(topic_id, None)
        self._note((ChangeKind.TOPIC_DELETED, topic_id), ChangeKind.TOPIC_DELETED, topic=topic, topic_id=topic_id, count=partitions)

    def partition_created(self, topic: str, record: PartitionRecord, before: int) -> None:
        """It belongs to a topic that is created, or is added to the partitions ``before``."""
        if record.adding_replicas or record.removing_replicas:
            self._moving.setdefault(record.topic_id, set()).add(record.partition)
        if self.quiet:
            return
        created = (ChangeKind.TOPIC_CREATED, record.topic_id)
        if created in self._batch:
            self._batch[created] = replace(self._batch[created], count=self._batch[created].count + 1, replicas=len(record.replicas))
            return
        added = (ChangeKind.PARTITIONS_ADDED, record.topic_id)
        self._note(added, ChangeKind.PARTITIONS_ADDED, topic=topic, topic_id=record.topic_id, before=str(before))
        self._batch[added] = replace(self._batch[added], count=self._batch[added].count + 1, now=str(before + 1))

    def partition_changed(self, topic: str, topic_id: str, partition: int, before: PartitionState, after: PartitionState) -> None:
        """A reassignment begins with replicas that move, and ends with the last partition of its topic of which none does."""
        moved, moves = (sorted(each.adding_replicas) + sorted(each.removing_replicas) for each in (before, after))
        if moves and moves != moved:
            self._moving.setdefault(topic_id, set()).add(partition)
            self._began(topic, topic_id, partition, after)
        elif not moves and (moved or before.replicas != after.replicas):
            moving = self._moving.get(topic_id, set())
            moving.discard(partition)
            self._moved[topic_id] = self._moved.get(topic_id, 0) + 1
            if not moving:
                self._moving.pop(topic_id, None)
                count = self._moved.pop(topic_id)
                one = count == 1
                self._note(
                    (ChangeKind.REASSIGNMENT_ENDED, topic_id, partition),
                    ChangeKind.REASSIGNMENT_ENDED,
                    topic=topic,
                    topic_id=topic_id,
                    partition=partition if one else -1,
                    count=count,
                    before=_ids(before.assigned_replicas) if one else None,
                    now=_ids(after.replicas) if one else None,
                )

    def _began(self, topic: str, topic_id: str, partition: int, after: PartitionState) -> None:
        key = (ChangeKind.REASSIGNMENT_BEGAN, topic_id)
        first = key not in self._batch
        self._note(key, ChangeKind.REASSIGNMENT_BEGAN, topic=topic, topic_id=topic_id, partition=partition)
        known = self._batch[key]
        self._batch[key] = replace(
            known,
            partition=partition if first else -1,
            count=known.count + 1,
            before=_ids({*_read(known.before), *after.removing_replicas}),
            now=_ids({*_read(known.now), *after.adding_replicas}),
        )

    def config_changed(self, record: ConfigRecord, before: str | None) -> None:
        """One of a topic or of brokers: nothing is kept of others. ``before``: None where it was not set, or is hidden."""
        key = (ChangeKind.CONFIG_CHANGED, record.resource_type, record.resource, record.name)
        if record.hidden:
            before = "" if key in self._hidden else None
            (self._hidden.discard if record.value is None else self._hidden.add)(key)
        of_topic = record.resource_type == ResourceType.TOPIC
        known = record.resource_type in _RESOURCE_TYPES and (of_topic or not record.resource or record.resource.isdecimal())
        if not known or (record.value == before and not (record.hidden and record.value == "")):
            return
        self._note(
            key,
            ChangeKind.CONFIG_CHANGED,
            topic=record.resource if of_topic else "",
            broker=int(record.resource) if record.resource and not of_topic else -1,
            name=record.name,
            before=before,
            hidden=record.hidden,
        )
        if key in self._batch:
            self._batch[key] = replace(self._batch[key], now=record.value)

    def feature_changed(self, name: str, before: int, now: int) -> None:
        """Its level; 0 for none."""
        if before != now:
            levels = {"before": str(before) if before else None, "now": str(now) if now else None}
            self._note((ChangeKind.FEATURE_CHANGED, name), ChangeKind.FEATURE_CHANGED, name=name, **levels)

    def broker_added(self, broker: int) -> None:
        """One that was not registered before."""
        self._note((ChangeKind.BROKER_ADDED, broker), ChangeKind.BROKER_ADDED, broker=broker)

    def broker_removed(self, broker: int) -> None:
        """It was unregistered."""
        self._note((ChangeKind.BROKER_REMOVED, broker), ChangeKind.BROKER_REMOVED, broker=broker)

    def _note(self, key: _Key, kind: ChangeKind, **fields: object) -> None:
        if not self.quiet and key not in self._batch:
            self._batch[key] = AdminChange(kind=str(kind), offset=self._offset, at_ms=self._at_ms, **fields)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminChange:
    """One change, at the offset of its first record in the metadata log and the time of that, Unix milliseconds by the controller's clock.

    ``name``: of a configuration, which is that of a topic, of a ``broker``, or of all brokers where neither is named; or of a feature.
    ``before``, ``now``: its values, None where it was not set; ``hidden``: they may be secret, are not read, and "". Of added partitions
    they are how many there were and are; of a reassignment that began the brokers that it removes and adds, of one that ended the
    replicas of the one partition; of a new topic ``now`` is what it sets itself. ``partition``: -1 where there are none or several,
    ``count`` of them. ``replicas``: of a new topic, how many each of its partitions has.
    """

    kind: str
    offset: int
    at_ms: int
    topic: str = ""
    topic_id: str = ""
    partition: int = -1
    count: int = 0
    replicas: int = 0
    broker: int = -1
    name: str = ""
    before: str | None = None
    now: str | None = None
    hidden: bool = False


class ChangeKind(StrEnum):
    """What was changed. Elections and in-sync replicas are not among these: no admin has asked for them."""

    TOPIC_CREATED = "topic_created"
    TOPIC_DELETED = "topic_deleted"
    PARTITIONS_ADDED = "partitions_added"
    CONFIG_CHANGED = "config_changed"
    REASSIGNMENT_BEGAN = "reassignment_began"
    REASSIGNMENT_ENDED = "reassignment_ended"
    FEATURE_CHANGED = "feature_changed"
    BROKER_ADDED = "broker_added"
    BROKER_REMOVED = "broker_removed"


def _ids(brokers: tuple[int, ...] | set[int]) -> str:
    return ",".join(map(str, sorted(brokers) if isinstance(brokers, set) else brokers))


def _read(ids: str | None) -> set[int]:
    return {int(each) for each in (ids or "").split(",") if each}
