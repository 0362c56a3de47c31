"""Which change of an admin a problem began with: the last one of the configuration that decides it, if it made that stricter."""

from collections.abc import Callable, Sequence

from streaming.broker.protocol.cluster_messages import MetadataChange
from streaming.cluster.verdicts.admin_events import event_of
from streaming.common.units import TimeWords
from streaming.kafka.formats.admin_changes import ChangeKind
from streaming.rules.config_values import BY_NAME, UNLIMITED, ValueSource

_BEGAN = "; this began when "


class AdminCauses:
    """Finds causes among the changes that are known, the oldest first.

    Args:
        sets_own: whether a topic has a limit of retention of its own, so that those of brokers do not count for it.
    """

    def __init__(self, changes: Sequence[MetadataChange] = (), sets_own: Callable[[str], bool] = lambda _: False) -> None:
        self._sets_own = sets_own
        self._of_config: dict[str, list[MetadataChange]] = {}
        self._created: dict[str, int] = {}  # by topic, the offset: nothing before is of this one
        self._ends: dict[str, MetadataChange] = {}
        for each in changes:
            if each.kind == ChangeKind.CONFIG_CHANGED:
                self._of_config.setdefault(each.name, []).append(each)
            elif each.kind == ChangeKind.TOPIC_CREATED:
                self._created[each.topic] = each.offset
            elif each.kind == ChangeKind.TOPIC_DELETED:
                self._ends[each.topic] = each

    def of_deletion(self, topic: str, broker: int, times: TimeWords, *, by_size: bool = False, before_ms: int = -1) -> str:
        """What made retention delete earlier, as the end of a sentence: "; this began when ..."; "" if nothing is known to have.

        Args:
            by_size: retention.bytes deletes, and not retention.ms.
            before_ms: when the first of it was deleted, -1 if that is still to come.
        """
        change = self.lowered(topic, broker, times, by_size=by_size, before_ms=before_ms)
        return f"{_BEGAN}{change}" if change else ""

    def lowered(self, topic: str, broker: int, times: TimeWords, *, by_size: bool = False, before_ms: int = -1) -> str:
        """The same as a sentence of its own."""
        change = self.lowering(topic, broker, times.now_ms if before_ms < 0 else before_ms, by_size=by_size)
        return "" if change is None else _said(change, times)

    def lowering(self, topic: str, broker: int, until_ms: int, *, by_size: bool = False) -> MetadataChange | None:
        """The change itself, None if it did not make retention delete earlier."""
        name = "retention.bytes" if by_size else "retention.ms"
        change = self._last(name, topic, broker, until_ms, own=self._sets_own)
        lower = change is not None and _number(name, change, change.now) < _number(name, change, change.before)
        return change if lower else None

    def of_min_isr(self, topic: str, times: TimeWords) -> str:
        """Likewise what made producers need more replicas in sync: a change of the topic, for whether it sets its own is not known."""
        name = "min.insync.replicas"
        change = self._last(name, topic, -1, times.now_ms, own=lambda _: True)
        higher = change is not None and _number(name, change, change.now) > _number(name, change, change.before)
        return f"{_BEGAN}{_said(change, times)}" if change is not None and higher else ""

    def of_end(self, topic: str, times: TimeWords) -> str:
        """Likewise when a topic was deleted."""
        return f"; it was deleted at {times.at(self._ends[topic].at_ms)}" if topic in self._ends else ""

    @property
    def topic_ends(self) -> dict[str, int]:
        """When topics were deleted, Unix milliseconds, by their names; of several of a name the last one."""
        return {topic: each.at_ms for topic, each in self._ends.items()}

    def _last(self, name: str, topic: str, broker: int, until_ms: int, own: Callable[[str], bool]) -> MetadataChange | None:
        """The last change of the level that decides: the topic's, else the broker's, else that of all brokers."""
        first = self._created.get(topic, -1)

        def known(some: str) -> list[MetadataChange]:
            return [each for each in self._of_config.get(some, ()) if each.offset > first and each.at_ms <= until_ms]

        of_topic = [each for each in known(name) if each.topic == topic]
        if of_topic:
            return of_topic[-1]
        of_brokers = (each for synonym, _ in BY_NAME[name].of_broker for each in known(synonym))
        below = [each for each in of_brokers if not each.topic and each.broker in (broker, -1)]
        return None if below and own(topic) else max(below, key=lambda each: (each.broker >= 0, each.offset), default=None)


def _said(change: MetadataChange, times: TimeWords) -> str:
    return f"{event_of(change).what} at {times.at(change.at_ms)}"


def _number(name: str, change: MetadataChange, value: str | None) -> float:
    """A value in the unit of the topic's name, without end where it does not limit. One that is not set counts as Kafka's default."""
    known = BY_NAME[name]
    level = {change.name: value} if value is not None else {}
    found, _ = known.by_topic(level) if change.topic else known.by_broker(level, ValueSource.DYNAMIC)
    number = int(known.default if found is None else found.value)
    return float("inf") if number <= UNLIMITED else number


NO_CAUSES = AdminCauses()


def former_limit(change: MetadataChange, *, by_size: bool) -> float:
    """The limit before a change, in the unit of the topic's configuration, without end where it did not limit."""
    return _number("retention.bytes" if by_size else "retention.ms", change, change.before)
