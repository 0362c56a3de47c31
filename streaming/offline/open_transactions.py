"""The open transactions in log dirs, taken from the view: since when, of which producer, and how to end them."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from streaming.agent.cluster_view import ClusterView
from streaming.disk.availability import LogDirs
from streaming.disk.logdirs import Partition
from streaming.kafka.names import METADATA_TOPIC, TRANSACTION_TOPIC
from streaming.kafka.servers import server_of
from streaming.log_key import LogKey
from streaming.metrics.limiter import LimitsOf
from streaming.metrics.table import Snapshot
from streaming.metrics.view import View
from streaming.offline.doubts import missing_coordinators, refused, unread
from streaming.offline.single_reading import SingleReading
from streaming.rules.verdicts import Verdict
from streaming.settings import Settings
from streaming.verdicts.commands import Commands
from streaming.watcher.cursors import log_id
from streaming.watcher.scope import Scope
from streaming.watcher.tail import Tail

log = logging.getLogger(__name__)

_UNENDED = (Verdict.HANGING.label, Verdict.UNCLAIMED.label)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    """One open transaction; times in Unix milliseconds.

    ``holds_offsets``: what readers of committed data do not see because of it, None if another transaction before it holds them back, or if
    that is not known.

    ``transactional_id`` and ``coordinator_state`` are None if no coordinator knows its producer. ``verdict`` is a label of
    `streaming.rules.verdicts.Verdict`, ``stuck`` as defined there. Only a hanging transaction has an ``abort_command``. ``groups``: if it
    hangs in `__consumer_offsets`, the consumer groups whose offsets wait for it.
    """

    broker: int
    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    first_offset: int
    start_ms: int
    last_ms: int
    holds_offsets: int | None
    transactional_id: str | None
    coordinator_state: str | None
    verdict: str
    stuck: bool
    abort_command: str | None
    groups: tuple[str, ...] = ()

    @property
    def hangs(self) -> bool:
        """Whether it is hanging: no coordinator will ever end it."""
        return self.verdict == Verdict.HANGING.label


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """All open transactions, the worst first, and the number of ``partitions`` that were read.

    ``doubts``: what was not understood or not readable, and why a transaction may be hanging that cannot be judged here; in sentences.
    """

    transactions: tuple[OpenTransaction, ...]
    partitions: int
    doubts: tuple[str, ...]

    @property
    def doubtful(self) -> bool:
        """Whether there may be more open transactions, or more hanging ones."""
        return bool(self.doubts)

    @property
    def hanging(self) -> tuple[OpenTransaction, ...]:
        """The hanging transactions: no coordinator will ever end them."""
        return tuple(one for one in self.transactions if one.hangs)


def find_open(
    log_dirs: LogDirs, topic: str | None, settings: Settings, now_ms: int, progress: Callable[[int], None] = lambda _: None
) -> Answer:
    """Find the open transactions of all topics, or of one, as of ``now_ms``, Unix milliseconds. Files that cannot be read are logged.

    Args:
        progress: called with the number of bytes that were read, again and again.

    Raises:
        UsageError: a ``server.properties`` cannot be read, or a given configuration is not valid.
    """
    listed: set[Path] = set()

    def scope(cluster: ClusterView, _: LimitsOf) -> Scope:
        return Scope(wants=_wants(cluster, topic, listed), once=True)

    with SingleReading(log_dirs, settings, scope, now_ms, progress=progress) as reading:
        seen, snapshot = see_twice(reading)
        found = list(_transactions(reading, seen, snapshot, topic))

        def counts(of: str, _: int) -> bool:
            return topic in (None, of)

        tails = [tail for tail in _speaking(reading, seen, snapshot) if tail is not None]
        doubts = [*unread(reading.agent, counts, tails, listed), *refused(reading.agent, counts)]
        if any(one.verdict == Verdict.UNKNOWN.label and now_ms - one.last_ms > _hanging_after_ms(settings) for one in found):
            doubts.append(missing_coordinators(seen.observed.coordinators))
        return Answer(
            transactions=tuple(sorted(found, key=_worst_first)),
            partitions=sum(topic in (None, name) for name in _names(seen, snapshot)),
            doubts=tuple(doubts),
        )


def see_twice(reading: SingleReading) -> tuple[View, Snapshot]:
    """The view; if transactions in it seem to be nobody's, that of after another reading of their logs."""
    seen, snapshot = reading.see()
    unended = {late.log for late in seen.logs.late if late.verdict in _UNENDED}
    if unended:
        reading.data_again(_directories(reading, seen, snapshot, unended))
        seen, snapshot = reading.see()
    return seen, snapshot


def _wants(cluster: ClusterView, topic: str | None, listed: set[Path]) -> Callable[[Partition], bool]:
    """Selects the logs of the topic and of the coordinators.

    A log is left out if its topic is deleted, or if it has moved to another broker: its broker deletes it at the next start.
    """

    def wants(partition: Partition) -> bool:
        if partition.topic == METADATA_TOPIC or not (topic in (None, partition.topic) or partition.topic == TRANSACTION_TOPIC):
            return False
        state = cluster.partition(log_id(partition))
        if cluster.known and (state is None or partition.log_dir.broker not in state.replicas):
            return False
        listed.add(partition.path)
        return True

    return wants


def _transactions(reading: SingleReading, seen: View, snapshot: Snapshot, topic: str | None) -> Iterator[OpenTransaction]:
    logs, names = seen.logs, _names(seen, snapshot)
    for late in logs.late:
        if topic not in (None, names[late.log]):
            continue
        partition, leader = int(logs["partition"][late.log]), int(logs["leader_id"][late.log])
        hangs = late.verdict == Verdict.HANGING.label
        commands = Commands(server=server_of(reading.agent.cluster.broker(leader)))
        yield OpenTransaction(
            broker=int(logs["broker"][late.log]),
            topic=names[late.log],
            partition=partition,
            producer_id=late.producer_id,
            producer_epoch=late.producer_epoch,
            first_offset=late.first_offset,
            start_ms=late.start_ms,
            last_ms=late.last_ms,
            holds_offsets=None if (held := logs.held_by(late)) < 0 else held,
            transactional_id=late.transactional_id or None,
            coordinator_state=late.state or None,
            verdict=late.verdict,
            stuck=late.stuck,
            abort_command=commands.abort(names[late.log], partition, late.first_offset).line or None if hangs else None,
            groups=late.groups,
        )


def _worst_first(one: OpenTransaction) -> tuple[object, ...]:
    return not one.hangs, one.start_ms, one.topic, one.partition, one.first_offset


def _hanging_after_ms(settings: Settings) -> float:
    return settings.hanging_after.total_seconds() * 1000


def _names(seen: View, snapshot: Snapshot) -> list[str]:
    return [snapshot.topic_names[topic] for topic in seen.logs.columns["topic"].tolist()]


def _speaking(reading: SingleReading, seen: View, snapshot: Snapshot) -> list[Tail | None]:
    """The tails of the logs that are exported, in their order."""
    tails = {tail.cursor.log: tail for tail in reading.agent.watcher.tails()}
    columns = seen.logs.columns
    keys = zip(columns["broker"].tolist(), _names(seen, snapshot), columns["partition"].tolist(), seen.logs.topic_ids, strict=True)
    return [tails.get(LogKey(*key)) for key in keys]


def _directories(reading: SingleReading, seen: View, snapshot: Snapshot, items: set[int]) -> Sequence[Path]:
    tails = _speaking(reading, seen, snapshot)
    return [tail.partition.path for item in items if (tail := tails[item]) is not None]
