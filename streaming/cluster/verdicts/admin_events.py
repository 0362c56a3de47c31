"""What admins did, in sentences: an event of each change that the metadata log has."""

from datetime import timedelta

from streaming.broker.protocol.cluster_messages import MetadataChange
from streaming.broker.protocol.status_json import ClusterEvent
from streaming.common.units import format_count, format_name, write_duration, write_size
from streaming.kafka.formats.admin_changes import ChangeKind
from streaming.rules.config_values import BY_NAME, MAX_LONG, UNLIMITED

ADMIN_KINDS = frozenset(map(str, ChangeKind))
"""The kinds of events that are made here."""

_UNLIMITED = frozenset({"retention.ms", "retention.bytes", "log.retention.ms", "log.retention.bytes"})
_LONGEST_MS = 1 << 53


def event_of(change: MetadataChange) -> ClusterEvent:
    """The event of a change."""
    return ClusterEvent(
        kind=change.kind,
        at_ms=change.at_ms,
        what=_sentence(change),
        broker=change.broker,
        topic=change.topic,
        topic_id=change.topic_id,
        partition=change.partition,
        config=change.name if change.kind == ChangeKind.CONFIG_CHANGED else "",
        before=change.before or "",
        now=change.now or "",
        offset=change.offset,
    )


def _sentence(change: MetadataChange) -> str:
    topic = format_name(change.topic)
    count = format_count(change.count, "partition")
    match change.kind:
        case ChangeKind.TOPIC_CREATED:
            replicas = format_count(change.replicas, "replica") + (" each" if change.count > 1 else "")
            return f"Topic {topic} was created with {count}, {replicas}" + (f" and {change.now}" if change.now else "")
        case ChangeKind.TOPIC_DELETED:
            return f"Topic {topic} was deleted with {count}"
        case ChangeKind.PARTITIONS_ADDED:
            return f"Topic {topic} got {format_count(change.count, 'more partition')}: {change.now} instead of {change.before}"
        case ChangeKind.CONFIG_CHANGED:
            return _of_config(change)
        case ChangeKind.REASSIGNMENT_BEGAN | ChangeKind.REASSIGNMENT_ENDED:
            return _of_reassignment(change, f"{topic}-{change.partition}" if change.partition >= 0 else f"{count} of {topic}")
        case ChangeKind.FEATURE_CHANGED:
            return f"Feature {format_name(change.name)} went from {_level(change.before)} to {_level(change.now)}"
        case ChangeKind.BROKER_ADDED:
            return f"Broker {change.broker} is new in the cluster"
        case ChangeKind.BROKER_REMOVED:
            return f"Broker {change.broker} was unregistered"
        case _:
            return f"The metadata log has a change of a later segtail: {format_name(change.kind)}"


def _of_config(change: MetadataChange) -> str:
    owner = format_name(change.topic) if change.topic else f"broker {change.broker}" if change.broker >= 0 else "all brokers"
    what = f"{format_name(change.name)} of {owner}"
    if change.hidden:
        return f"{what} was removed" if change.now is None else f"{what} was set; its value may be secret and is not read"
    return f"{what} went from {value_text(change.name, change.before)} to {value_text(change.name, change.now)}"


def value_text(name: str, value: str | None) -> str:
    """The value of a configuration as people write it: ``7d``, ``1GiB``, ``unlimited``, or as it is set."""
    if value is None:
        default = BY_NAME[name].default if name in BY_NAME else ""
        return f"not set (Kafka's default is {value_text(name, default)})" if default else "not set"
    number = int(value) if value.removeprefix("-").isdecimal() and len(value) < 20 else None
    if number == MAX_LONG or (number == UNLIMITED and name in _UNLIMITED):
        return "unlimited"
    if number is not None and 0 <= number < _LONGEST_MS:
        if name.endswith(".ms"):
            return write_duration(timedelta(milliseconds=number))
        if name.endswith(".bytes"):
            return write_size(number)
    return format_name(value)


def _of_reassignment(change: MetadataChange, which: str) -> str:
    if change.kind == ChangeKind.REASSIGNMENT_BEGAN:
        moves = (("adds broker", change.now), ("removes broker", change.before))
        return f"A reassignment of {which} began: it {' and '.join(f'{verb} {some}' for verb, some in moves if some)}"
    if change.partition < 0:
        return f"The reassignment of {which} ended"
    if change.before != change.now:
        return f"The reassignment of {which} ended: its replicas are {change.now}, and were {change.before}"
    return f"The reassignment of {which} was canceled: its replicas are {change.now}, as before"


def _level(level: str | None) -> str:
    return f"level {level}" if level else "none"
