"""What problems are found in: a view of the table, what agents report, consumer groups, and from when on something is a problem."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from streaming.broker.protocol.cluster_messages import MetadataChanges
from streaming.broker.protocol.status_json import Problem
from streaming.broker.protocol.status_messages import BrokerStatus, LogDirStatus, ProcessStatus
from streaming.cluster.verdicts.admin_causes import AdminCauses
from streaming.cluster.verdicts.commands import NO_COMMAND, Command, Commands
from streaming.cluster.verdicts.group_bounds import GroupBounds, bounds_of
from streaming.cluster.verdicts.group_judge import JudgedGroups
from streaming.cluster.verdicts.kinds import ProblemKind
from streaming.cluster.view.broker_status import (
    BrokerPhase,
    admin_changes,
    broker_phases,
    broker_processes,
    each_broker,
    each_log_dir,
    newest,
)
from streaming.cluster.view.disk_forecasts import ByDir
from streaming.cluster.view.family import EVERYTHING, Export
from streaming.cluster.view.host_families import is_checkpointed
from streaming.cluster.view.observer import FAR_LAG_S, AgentStatus, watched_by
from streaming.cluster.view.table import Replica
from streaming.cluster.view.taillag import StartProgress
from streaming.cluster.view.view import View
from streaming.common.settings import Settings
from streaming.common.units import TimeWords
from streaming.kafka.formats.admin_changes import ChangeKind
from streaming.kafka.formats.metadata_records import Phase
from streaming.rules.broker_process import AWAY, ProcessState
from streaming.rules.config_values import ValueSource
from streaming.rules.transaction_verdicts import AbortingClient

TopicPartition = tuple[str, int]

NO_PRODUCER = -1

NOT_WRITING_MS = 60_000
"""A running broker writes its high watermarks every five seconds, and its metadata log twice a second."""

FULL_BYTES, FULL_RATIO = 1 << 20, 0.005
"""Less is free in a log dir that is full: not even a batch of the usual largest size fits. And less than this part of it, as a disk may
be small."""

_MOST_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """From when on something is a problem: the options of these names. Times in milliseconds, 0 for never."""

    overdue_after_ms: int
    ahead_limit_ms: int
    starting_after_ms: int
    scrub_overdue_after_ms: int
    full_within_ms: int
    free_ratio: float
    groups: GroupBounds


def thresholds_of(settings: Settings) -> Thresholds:
    """The thresholds by the settings."""

    def milliseconds(duration: timedelta) -> int:
        return duration // timedelta(milliseconds=1)

    return Thresholds(
        overdue_after_ms=milliseconds(settings.overdue_after),
        ahead_limit_ms=milliseconds(settings.ahead_limit),
        starting_after_ms=milliseconds(settings.starting_after),
        scrub_overdue_after_ms=milliseconds(settings.scrub_overdue_after),
        full_within_ms=milliseconds(settings.full_within),
        free_ratio=settings.free_ratio,
        groups=bounds_of(settings),
    )


@dataclass(frozen=True, kw_only=True, eq=False)  # no slots: what follows from the fields is computed once
class Circumstances:
    """Everything that problems are found in, at one moment. ``lags``: as `streaming.cluster.view.observer.Observer.lags` has them."""

    view: View
    topics: Sequence[str]  # the names of topics, by their numbers in the view
    now_ms: int
    agents: Sequence[AgentStatus] = ()
    lags: Mapping[str, tuple[int | None, float]] = field(default_factory=dict)
    groups: JudgedGroups | None = None  # what consumer groups suffer from, None if nothing is known of any
    thresholds: Thresholds = field(default_factory=lambda: thresholds_of(Settings()))
    commands: Commands = field(default_factory=Commands)
    export: Export = EVERYTHING
    live: bool = True  # false if log dirs were read once, maybe of brokers that are stopped; then nothing is expected to be written
    stale: bool = False  # the agents were asked so long ago that what they reported counts no more
    start: StartProgress | None = None  # how far a job is that starts, None once everything that was on the disks is in the numbers
    aborting: Sequence[AbortingClient] = ()  # clients that abort most of their transactions
    full: ByDir = field(default_factory=dict)  # when log dirs are full
    min_isr: Callable[[int], int] = lambda _: 1  # as for `streaming.cluster.view.observer.Observer.families`
    lasting: bool = False  # what is found is put in sentences that are read later

    @property
    def times(self) -> TimeWords:
        """Words for points in time."""
        return TimeWords(self.now_ms, self.lasting)

    @cached_property
    def up(self) -> list[AgentStatus]:
        """The agents that answer."""
        return [] if self.stale else [each for each in self.agents if each.up]

    @cached_property
    def brokers(self) -> list[BrokerStatus]:
        """What the agents that answer report of brokers."""
        return each_broker(status for each in self.up for status in each.broker_statuses)

    @cached_property
    def log_dirs(self) -> list[LogDirStatus]:
        """What the agents that answer report of log dirs."""
        return each_log_dir(status for each in self.up for status in each.log_dirs)

    @cached_property
    def admin_changes(self) -> MetadataChanges | None:
        """What admins did, by the newest copy of the metadata log; None if none can be read."""
        return changes_of(self.brokers)

    @cached_property
    def causes(self) -> AdminCauses:
        """What of that problems began with."""
        return causes_of(self.admin_changes, self.view, self.topics)

    @cached_property
    def phases(self) -> dict[int, BrokerPhase]:
        """The phase of each broker for which it is known."""
        return {each.broker: each for each in broker_phases(self.brokers, watched_by(self.agents).remembered)}

    @cached_property
    def processes(self) -> dict[int, ProcessStatus]:
        """What is known of the process of each broker."""
        return broker_processes(self.brokers)

    def items_of(self, replica: Replica) -> NDArray[np.intp]:
        """The observed logs of a replica: none if it is not observed, two for a moment if its topic was created again."""
        columns, names = self.view.observed.columns, self.view.observed.names
        hosted = np.flatnonzero((columns["broker"] == replica.broker) & (columns["partition"] == replica.partition))
        return hosted[[names[item] == replica.topic for item in hosted.tolist()]] if len(hosted) else hosted

    def process_state(self, broker: int) -> ProcessState:
        """Whether the process of a broker is there."""
        process = self.processes.get(broker)
        return ProcessState.UNKNOWN if process is None else ProcessState(process.state)

    def runs(self, broker: int) -> bool:
        """Whether nothing shows that a broker does not run."""
        phase = self.phases.get(broker)
        return phase is None or phase.phase is Phase.RUNNING

    @cached_property
    def appended_ms(self) -> dict[int, int]:
        """When each broker's copy of the metadata log last grew, where an idle controller makes it grow all the time."""
        return {each.broker: each.appended_ms for each in self.brokers if each.metadata_offset >= 0 and each.appended_ms >= 0}

    @cached_property
    def checkpointed_ms(self) -> dict[int, int]:
        """When each broker last wrote a checkpoint into any of its log dirs."""
        found: dict[int, int] = {}
        for each in self.log_dirs:
            if each.up and is_checkpointed(each):
                found[each.broker] = max(found.get(each.broker, -1), each.checkpoint_ms)
        return found

    @cached_property
    def not_writing(self) -> frozenset[int]:
        """Brokers that are said to run, and have written neither a checkpoint nor metadata for a minute."""
        return frozenset(
            broker
            for broker, at in self.checkpointed_ms.items()
            if self.live and self._is_old(at) and self._is_old(self.appended_ms.get(broker, -1)) and self.runs(broker)
        )

    @cached_property
    def away(self) -> frozenset[int]:
        """The brokers that a running job sees without a process: no command reaches them. Log dirs that were read once may be a copy."""
        return self._without_process if self.live else frozenset()

    @cached_property
    def idle(self) -> frozenset[int]:
        """The brokers without a process, so nothing is done there.

        Of log dirs that were read once, where the locks do not show that, these are the brokers that wrote no checkpoint for a minute. A
        running job has problems of its own for those.
        """
        if self.live:
            return self.away
        old = {broker for broker, at in self.checkpointed_ms.items() if self._is_old(at)}
        return self._without_process | {broker for broker in old if self.process_state(broker) is ProcessState.UNKNOWN}

    @property
    def _without_process(self) -> frozenset[int]:
        return frozenset(broker for broker, each in self.processes.items() if each.state in AWAY)

    def if_idle(self, broker: int) -> str:
        """What is added to a sentence about what a broker does not do, if it is down."""
        if broker not in self.idle:
            return ""
        down = f"if broker {broker} is down, it" if self.may_be_copy(broker) else f"broker {broker} is down, and"
        return f"; {down} goes on with that when it is started"

    def may_be_copy(self, broker: int) -> bool:
        """Whether log dirs that were read once may be a copy: then the broker runs elsewhere. One that was seen to end has ended here."""
        return not self.live and self.process_state(broker) is not ProcessState.ENDED

    def _is_old(self, at_ms: int) -> bool:
        return self.now_ms - at_ms > NOT_WRITING_MS

    @cached_property
    def not_current(self) -> frozenset[int]:
        """Brokers whose numbers are old, so that nothing is said of their partitions that depends on time."""
        if not self.live:
            return frozenset()
        return self.not_writing | self.late | {broker for broker in self.phases if not self.runs(broker)}

    @cached_property
    def late(self) -> frozenset[int]:
        """Brokers whose disks are not seen as they are: their agents are away, or not read up to now."""
        return frozenset(
            broker
            for agent in self.agents
            if not agent.up or agent.catching_up or self.lags.get(agent.name, (None, 0.0))[1] > FAR_LAG_S
            for broker in agent.brokers
            if self.live
        )

    @cached_property
    def unseen(self) -> frozenset[int]:
        """Brokers with an agent that is away: what was certain of their transactions then stays so until the agent answers again."""
        return frozenset(broker for agent in self.agents if not agent.up for broker in agent.brokers) if self.live else frozenset()


def changes_of(brokers: Iterable[BrokerStatus]) -> MetadataChanges | None:
    """What admins did, by the newest copy of the metadata log; None if none can be read."""
    latest = newest(each for each in brokers if each.changes)
    return None if latest is None else admin_changes(latest.changes)


def causes_of(known: MetadataChanges | None, view: View, topics: Sequence[str]) -> AdminCauses:
    """What of these changes problems began with. ``topics``: as in `Circumstances`."""

    @cache
    def own() -> frozenset[str]:
        numbers = zip(view.logs.columns["topic"].tolist(), view.logs.limits, strict=True)
        return frozenset(topics[topic] for topic, limits in numbers if limits is not None and limits.source is ValueSource.TOPIC)

    return AdminCauses(() if known is None else known.rows, lambda topic: topic in own())


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Facts about one problem."""

    partitions: frozenset[TopicPartition] = frozenset()  # all that it is about
    producer: int = NO_PRODUCER  # whose transaction it is, or it waits for
    waits: bool = False  # all of it waits for open transactions
    weight: int = 0  # what it holds back; of one transaction the problem with most is the root
    lacks: int = -1  # the one broker that each of the partitions lacks; of several none is said
    brokers: tuple[int, ...] = ()  # those of an agent
    reason: str = ""  # as the label of the alert
    came_late: bool = False  # all that is lost there had come past the retention of its topic
    awaited: int = -1  # the broker whose start lets all of it be lost, -1 if it waits for none


NO_LINKS = Links()


def found(
    kind: ProblemKind,
    detail: str = "",
    *,
    severity: str = "",
    summary: str = "",
    broker: int = -1,
    topic: str = "",
    partition: int = -1,
    group: str = "",
    log_dir: str = "",
    agent: str = "",
    since_ms: int = -1,
    deadline_ms: int = -1,
    holds_back: str = "",
    command: Command = NO_COMMAND,
    links: Links = NO_LINKS,
    **labels: object,
) -> LinkedProblem:
    """A problem of a kind; ``detail`` follows its summary, and ``labels`` are those of the summary that no field has.

    Args:
        severity: "" for that of the kind.
        summary: of what no alert reports yet, or what it says in its description; "" for that of the kind.
    """
    about = summary or kind.about(broker=broker, topic=topic, group=group, log_dir=log_dir, agent=agent, **labels)
    problem = Problem(
        kind=kind.name,
        severity=severity or kind.severity,
        what=f"{about}: {detail}" if detail else about,
        summary=about,
        broker=broker,
        topic=topic,
        partition=partition,
        group=group,
        log_dir=log_dir,
        agent=agent,
        since_ms=since_ms,
        deadline_ms=deadline_ms,
        holds_back=holds_back or kind.costs,
        command=command.line,
        no_command=command.reason,
        runbook=kind.alert,
    )
    return LinkedProblem(problem=problem, links=links)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedProblem:
    """A problem with what links it to others."""

    problem: Problem
    links: Links = NO_LINKS


def partitions_of(topic: str, partitions: list[int]) -> frozenset[TopicPartition]:
    """Some partitions of a topic."""
    return frozenset((topic, partition) for partition in partitions)


def is_full(log_dir: LogDirStatus) -> bool:
    """Whether a log dir has no room left."""
    return log_dir.capacity > 0 and 0 <= log_dir.free < min(FULL_BYTES, FULL_RATIO * log_dir.capacity)


def deletions_of(brokers: Iterable[BrokerStatus]) -> dict[str, int]:
    """When topics were deleted, Unix milliseconds, by their ids, as far as the newest copy of the metadata log has it."""
    known = changes_of(brokers)
    return {} if known is None else {each.topic_id: each.at_ms for each in known.rows if each.kind == ChangeKind.TOPIC_DELETED}


def partitions_named(partitions: Sequence[int]) -> str:
    """Partitions of one topic: ``partition 3``, ``partitions 0, 1, 2, 3, 4 and 7 more``."""
    some = ", ".join(map(str, partitions[:_MOST_NAMED]))
    more = f" and {len(partitions) - _MOST_NAMED:,} more" if len(partitions) > _MOST_NAMED else ""
    return f"partition{'' if len(partitions) == 1 else 's'} {some}{more}"


def only(partitions: Sequence[int]) -> int:
    """The partition if it is one alone, else -1."""
    return partitions[0] if len(partitions) == 1 else -1
