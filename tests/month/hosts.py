"""The brokers and agents of a month, and what their statuses say at any time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from streaming.broker.protocol.cluster_messages import AffectedPartition, PartitionCounts, Registered, TopicCounts
from streaming.cluster.view.observer import AgentStatus
from streaming.kafka.formats.metadata_brokers import Phase
from tests.month.streams import START, unix_ms
from tests.view.test_host_families import broker, log_dir

CAPACITY = 2_000_000_000_000


@dataclass(slots=True, kw_only=True)
class Host:
    """A broker with its agent. ``fills``: bytes a second by which its log dir grows; retention keeps it as it is else."""

    number: int
    phase: Phase = Phase.RUNNING
    since_s: float = -90 * 86_400.0
    agent_up: bool = True
    free: float = 0.5 * CAPACITY
    fills: float = 0.0
    reported: AgentStatus | None = None  # by its agent, as long as that was up
    _last_s: float = 0.0

    @property
    def log_dir(self) -> str:
        return "/data" if self.number == 1 else f"/data{self.number}"

    def change(self, phase: Phase, now_s: float) -> None:
        self.phase, self.since_s = phase, now_s

    def step(self, now_s: float) -> None:
        self.free = max(self.free - self.fills * (now_s - self._last_s), 0.0)
        self._last_s = now_s

    def full_s(self, now_s: float) -> float | None:
        """When its log dir is full, in seconds of the month."""
        return now_s + self.free / self.fills if self.fills > 0 else None


@dataclass(slots=True, kw_only=True)
class Hosts:
    """All of them. ``replicated``: the topics of which each broker has a replica."""

    replicated: Sequence[str]
    each: list[Host] = field(default_factory=lambda: [Host(number=number) for number in (1, 2, 3)])

    def host(self, number: int) -> Host:
        return self.each[number - 1]

    def statuses(self, now_s: float) -> list[AgentStatus]:
        """What the agents say of themselves, of their brokers, and of the cluster."""
        for host in self.each:
            host.step(now_s)
        registered = [
            Registered(
                broker=host.number,
                fenced=host.phase is not Phase.RUNNING,
                epoch=5,
                phase=host.phase,
                since_ms=unix_ms(host.since_s),
                replicas=True,
            )
            for host in self.each
        ]
        counts = self._counts()
        for host in self.each:
            if host.agent_up or host.reported is None:
                host.reported = self._status(host, registered, counts, now_s)
        return [replace(host.reported, up=host.agent_up) for host in self.each if host.reported is not None]

    def full(self, now_s: float) -> Mapping[tuple[int, str], float]:
        """When log dirs are full, in Unix seconds, as `Observer.families` asks for it."""
        times = {(host.number, host.log_dir): host.full_s(now_s) for host in self.each if host.agent_up}
        return {place: START + at_s for place, at_s in times.items() if at_s is not None}

    def _status(self, host: Host, registered: list[Registered], counts: str, now_s: float) -> AgentStatus:
        lives = host.phase in (Phase.RUNNING, Phase.STARTING)
        own = broker(
            host.number,
            metadata_offset=1_000 + round(now_s),
            appended_ms=unix_ms(now_s) - 500 if lives else unix_ms(host.since_s),
            registered=registered,
            counts=counts,
            snapshot=True,
            transaction_partitions=1,
            expected=True,
            clean=host.phase is Phase.STOPPING,
        )
        place = log_dir(
            host.log_dir,
            host.number,
            checkpoint_ms=unix_ms(now_s) - 2_000 if lives else unix_ms(host.since_s),
            free=round(host.free),
            capacity=CAPACITY,
            hosts=True,
        )
        return AgentStatus(
            name=f"a{host.number}",
            up=True,
            brokers=(host.number,),
            metadata_brokers=frozenset({host.number}),
            broker_statuses=(own,),
            log_dirs=(place,),
        )

    def _counts(self) -> str:
        """The partitions that lack a replica."""
        away = [host.number for host in self.each if host.phase is not Phase.RUNNING]
        in_sync = [host.number for host in self.each if host.number not in away]
        topics = [TopicCounts(topic=topic, partitions=1, under_replicated=1 if away else 0) for topic in self.replicated]
        affected = [
            AffectedPartition(
                topic=topic,
                partition=0,
                problem="under_replicated",
                leader=in_sync[0] if in_sync else -1,
                in_sync=in_sync,
                out_of_sync=away,
                electable=in_sync,
            )
            for topic in self.replicated
            if away
        ]
        return PartitionCounts(topics=topics, affected=affected).pack()
