"""The observer's own state: what the job knows of its agents and its query, as metric families."""

from __future__ import annotations

import logging
from collections import Counter as Counts
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Literal

from streaming.broker.protocol.status_messages import BlockedFile, BrokerStatus, LogDirStatus, ScrubStatus, UnreadableLog, UnreadableLogs
from streaming.cluster.view.broker_status import each_broker, each_log_dir, each_scrub, newest, server_of_cluster
from streaming.cluster.view.broker_status import families as partition_families
from streaming.cluster.view.family import EVERYTHING, Export
from streaming.cluster.view.host_families import Watched, scrub_families
from streaming.cluster.view.host_families import families as health_families
from streaming.cluster.view.taillag import ReadAgent, StartMeter, StartProgress, TailLag
from streaming.common.definitions import broker_metrics, observer_metrics
from streaming.common.definitions.client_family import client_family
from streaming.common.definitions.metric import Metric
from streaming.common.log_key import LogKey, key_of
from streaming.common.pace import Pace, PaceReason
from streaming.common.rows import SKIP_REASONS, SKIPPED_COPIES
from streaming.common.settings import Settings
from streaming.common.web.places import ServerCounts

if TYPE_CHECKING:
    from prometheus_client import Counter, Gauge, Histogram
    from prometheus_client import Metric as Samples


log = logging.getLogger(__name__)

SECONDS = (
    "hanging_after",
    "late_after",
    "stuck_after",
    "group_late_after",
    "group_stopped_after",
    "group_loss_within",
    "group_held_after",
    "overdue_after",
    "ahead_limit",
    "full_within",
    "starting_after",
    "scrub_overdue_after",
    "stale_after",
)
RATIOS = ("free_ratio",)

FAR_LAG_S = 30.0
"""A tail lag of more than this is no ordinary pause: the rates of such a time show a backlog, and what is judged by time may have ended."""

STALE_SECONDS = 30.0
"""If agents have not been polled for so long, their status may have changed: nothing is exported about their brokers."""

_BATCH_BOUNDS_S = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_AGE_BOUNDS_S = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 15.0, 30.0, 60.0)


class Observer:
    """The job updates it, scrapes read it; safe from any thread.

    Args:
        started: when the process began, Unix seconds; None to export no start time.
        pace: returns how often the query checks for work at present; None if it does so once and ends.
        monotonic: seconds of a monotonic clock, for how long something lasts; None if ``now`` is such a clock.
    """

    def __init__(
        self,
        *,
        query: str,
        versions: Versions,
        thresholds: Iterable[Threshold],
        started: float | None = None,
        pace: Callable[[], Pace | None] = lambda: Pace(0.0, PaceReason.FIXED),
        monotonic: Callable[[], float] | None = None,
    ) -> None:
        self._monotonic = monotonic
        self._server_counts: Callable[[], ServerCounts] | None = None
        self.page_url = ""
        """Where people reach the job's page, "" if no one can."""
        self._lock = Lock()  # protects the eight below
        self._shards = 0
        self._leaves_out = False
        self._unlabelled: tuple[str, ...] = ()
        self._agents: dict[str, AgentStatus] = {}
        self._known_at: float | None = None
        self._lags: dict[str, TailLag] = {}
        self._start = StartMeter()
        self._querying = False
        self.started = started
        """When the process began, Unix seconds; None if that does not matter."""
        self._query = query
        self._pace = pace
        from prometheus_client import CollectorRegistry

        self._registry = CollectorRegistry()
        self._gauge(observer_metrics.BUILD_INFO).labels(versions.segtail, versions.spark, versions.python).set(1)
        if started is not None:
            self._gauge(observer_metrics.STARTED).set(started)
        self._last_check = self._gauge(observer_metrics.LAST_LOOK)
        self._batches = self._histogram(observer_metrics.BATCH_DURATION, _BATCH_BOUNDS_S).labels(query)
        self._ages = self._histogram(observer_metrics.SCRAPE_AGE, _AGE_BOUNDS_S).labels(query)
        self._restarts = self._counter(observer_metrics.RESTARTS).labels(query)
        dropped = self._counter(observer_metrics.SERIES_DROPPED)
        self._partition_series_dropped = dropped.labels("partition_series")
        self._topic_series_dropped = dropped.labels("topic_series")
        self._label_series_dropped = dropped.labels("label_bytes")
        gauges = {
            "seconds": self._gauge(observer_metrics.THRESHOLD_SECONDS),
            "ratio": self._gauge(observer_metrics.THRESHOLD_RATIO),
        }
        for threshold in thresholds:
            gauges[threshold.unit].labels(threshold.name).set(threshold.value)

    def know(self, statuses: Iterable[AgentStatus], at: float | None = None) -> None:
        """All agents were polled ``at`` (seconds of the clock ``monotonic``): there are these and no others."""
        with self._lock:
            self._agents = {status.name: status for status in statuses}
            self._known_at = at

    def sharded(self, shards: int) -> None:
        """The job's state has so many shards."""
        with self._lock:
            self._shards = shards

    def serves(self, counts: Callable[[], ServerCounts], page_url: str) -> None:
        """What the job's HTTP server has refused, and where people reach its page."""
        self._server_counts = counts
        self.page_url = page_url

    def published(self, agent: str, journal: str, total: int, at: float) -> None:
        """An agent reported at ``at`` (seconds of the clock ``monotonic``) how many bytes of log its journal holds from its beginning."""
        with self._lock:
            self._lags.setdefault(agent, TailLag()).published(journal, total, at)
            self._start.met(agent, total)

    def begins(self, agent: str) -> None:
        """None of the agent's bytes are in the metrics, because the job is new."""
        with self._lock:
            self._lags.setdefault(agent, TailLag()).begins()

    def processed(self, agent: str, journal: str, total: int) -> None:
        """``total`` of the agent's bytes are in the metrics now."""
        with self._lock:
            self._lags.setdefault(agent, TailLag()).processed(journal, total)

    def queries(self) -> None:
        """Spark is there, and its query runs."""
        with self._lock:
            self._querying = True

    def start_progress(self, now: float) -> StartProgress:
        """How far a job that starts is, at ``now`` in Unix seconds."""
        with self._lock:
            up = [ReadAgent(unread_bytes=each.unread_bytes, catching_up=each.catching_up) for each in self._agents.values() if each.up]
            totals = {name: lag.totals for name, lag in self._lags.items()}
            self._start.note(up, totals, self._steady(now), querying=self._querying)
            return self._start.progress

    @property
    def server(self) -> str:
        """Where clients reach the cluster, HOST:PORT; "" if that is not known."""
        return server_of_cluster(status for each in self.agents if each.up for status in each.broker_statuses)

    def reading(self) -> dict[str, float]:
        """For each agent that is up and has caught up with its disks: the time of its last answer that is completely in the metrics, in
        seconds of the clock ``monotonic``.
        """
        with self._lock:
            whole = {name: lag.whole_at for name, lag in self._lags.items()}
            current = [name for name, status in self._agents.items() if status.up and not status.catching_up]
        return {name: at for name in current if (at := whole.get(name)) is not None}

    def checked(self, at: float) -> None:
        """The query checked for work at ``at``, in Unix seconds."""
        self._last_check.labels(self._query).set(at)

    def batch_took(self, seconds: float) -> None:
        """A micro-batch is through."""
        self._batches.observe(seconds)

    def scraped(self, age: float) -> None:
        """A page is requested; its newest data is ``age`` seconds old."""
        self._ages.observe(age)

    def restarted(self) -> None:
        """The query had failed and was started again."""
        self._restarts.inc()

    def dropped(self, *, partition_series: int, topic_series: int, largest_topic: str = "") -> None:
        """A page was made without so many series. It is logged when this begins, with the largest topic, and when it ends."""
        left_out = partition_series + topic_series > 0
        with self._lock:
            begins_or_ends, self._leaves_out = left_out != self._leaves_out, left_out
        if begins_or_ends and left_out:
            log.warning(
                "more series than series_limit: topic sums replace partitions",
                extra={"partition_series": partition_series, "topic_series": topic_series, "largest_topic": largest_topic},
            )
        elif begins_or_ends:
            log.info("no more series than series_limit: every one is exported again")
        self._partition_series_dropped.inc(partition_series)
        self._topic_series_dropped.inc(topic_series)

    def unlabelled(self, series: int, metrics: tuple[str, ...]) -> None:
        """A page was made without so many series of these metrics, because of the bytes of their labels. Logged when these change."""
        with self._lock:
            changed, self._unlabelled = metrics != self._unlabelled, metrics
        if changed and metrics:
            log.warning(
                "more bytes of labels than label_limit: whole metrics are left out", extra={"metrics": ",".join(metrics), "series": series}
            )
        elif changed:
            log.info("no more bytes of labels than label_limit: every metric is exported again")
        self._label_series_dropped.inc(series)

    def lags(self, now: float) -> dict[str, tuple[int | None, float]]:
        """By agent, how far the metrics are behind what it has published: bytes (None if that is not known), and seconds."""
        steady = self._steady(now)
        with self._lock:
            return {name: (lag.size if lag.known else None, lag.seconds(steady)) for name, lag in self._lags.items()}

    def is_stale(self, now: float) -> bool:
        """Whether the agents were polled so long ago that their statuses count no more."""
        with self._lock:
            return self._known_at is not None and self._steady(now) - self._known_at > STALE_SECONDS

    def _steady(self, now: float) -> float:
        return now if self._monotonic is None else self._monotonic()

    @property
    def agents(self) -> tuple[AgentStatus, ...]:
        """The last status of each agent, by name."""
        with self._lock:
            return tuple(self._agents[name] for name in sorted(self._agents))

    def families(
        self,
        skipped_bytes: Mapping[int, Mapping[str, Sequence[int]]] | None,
        now: float,
        export: Export = EVERYTHING,
        min_isr: Callable[[int], int] = lambda _: 1,
        full: Callable[[Sequence[AgentStatus]], Mapping[tuple[int, str], float]] = lambda _: {},
        others: Iterable[Samples] = (),
    ) -> Families:
        """All families with a sample.

        Args:
            skipped_bytes: of each broker and SKIPPED_COPIES, by `streaming.common.rows.SKIP_REASONS`; another broker has skipped none.
                None while what a run before has skipped is not known yet.
            now: Unix seconds.
            export: which topics are exported.
            min_isr: returns min.insync.replicas of a broker, if the metadata log sets none.
            full: returns when the log dirs of agents that are up are full, by broker and path.
            others: families that other modules make.
        """
        agents = self.agents
        up = [] if self.is_stale(now) else [each for each in agents if each.up]
        brokers = each_broker(status for each in up for status in each.broker_statuses)
        health = health_families(
            brokers,
            each_log_dir(status for each in up for status in each.log_dirs),
            watched_by(agents),
            [file for each in up for file in each.blocked],
            full(up),
        )
        families = [
            *health,
            *scrub_families(each_scrub(status for each in up for status in each.scrubs)),
            *partition_families(newest(each for each in brokers if each.counts), export, min_isr),
            *self._agent_families(now),
            *self._server_families(),
            *(() if skipped_bytes is None else (self._skipped_family(skipped_bytes),)),
            *others,
            *map(_without_created, self._registry.collect()),
        ]
        return Families([family for family in families if family.samples])

    def _agent_families(self, now: float) -> Iterable[Samples]:
        agents, pace, lags = self.agents, self._pace(), self.lags(now)
        with self._lock:
            shards = self._shards
        # An agent that was never reached has reported no broker, but must be exported as down: an empty label means no label.
        up = (((broker, each.name), each.up) for each in agents for broker in each.brokers or ("",))
        info = (((broker, each.cluster_id, each.name), True) for each in agents for broker in each.brokers)
        without = {(each.name, status.broker) for each in agents for status in each.broker_statuses if not status.expected}
        # What an agent that is down has reported last counts where no other one answers for its broker.
        answering = {broker for each in agents if each.up for broker in each.brokers}
        counting = [(each, broker) for each in agents for broker in each.brokers if each.up or broker not in answering]
        readable = (
            ((broker,), broker in each.metadata_brokers)
            for each, broker in counting
            if broker in each.metadata_brokers or (each.name, broker) not in without
        )
        behind = [((broker,), *lags[each.name]) for each, broker in counting if each.name in lags]
        far = FAR_LAG_S + (pace.seconds if pace else 0.0)
        catching_up = (((broker,), each.catching_up or lags.get(each.name, (None, 0.0))[1] > far) for each, broker in counting)
        yield client_family(broker_metrics.BROKER_INFO, info)
        if not self.is_stale(now):
            yield client_family(broker_metrics.METADATA_READABLE, readable)
            yield client_family(broker_metrics.UNREADABLE_LOGS, _unreadable(agents))
        yield client_family(observer_metrics.AGENT_UP, up)
        doubts = (((each.name, kind), count) for each in agents for kind, count in each.doubts)
        yield client_family(observer_metrics.AGENT_DOUBTS, doubts)
        yield client_family(observer_metrics.AGENT_PROBLEM, (((each.name, problem), True) for each in agents for problem in each.problems))
        clocks = (((each.name,), each.clock_ahead_seconds) for each in agents if each.up and each.clock_ahead_seconds is not None)
        yield client_family(observer_metrics.AGENT_CLOCK_AHEAD, clocks)
        if shards:
            yield client_family(observer_metrics.LOGS_PER_SHARD, [((self._query,), sum(each.logs for each in agents) / shards)])
        yield client_family(observer_metrics.CATCHING_UP, catching_up)
        yield client_family(observer_metrics.TAIL_LAG_BYTES, ((of, size) for of, size, _ in behind if size is not None))
        yield client_family(observer_metrics.TAIL_LAG_SECONDS, ((of, seconds) for of, _, seconds in behind))
        yield client_family(observer_metrics.PAGE_INFO, [((self.page_url,), True)] if self.page_url else [])
        server = self.server
        yield client_family(observer_metrics.BOOTSTRAP_INFO, [((server,), True)] if server else [])
        yield client_family(observer_metrics.PACE, [((self._query, pace.reason), pace.seconds)] if pace else [])

    def _server_families(self) -> Iterable[Samples]:
        if self._server_counts is not None:
            counts = self._server_counts()
            yield client_family(observer_metrics.WEB_FAILURES, [((), counts.failures)])
            yield client_family(observer_metrics.HTTP_CUTS, [((), counts.cuts)])
            yield client_family(observer_metrics.HTTP_REFUSALS, [((), counts.refusals)])
            yield client_family(observer_metrics.WRONG_PASSWORDS, [((), counts.wrong)])

    def _skipped_family(self, skipped_bytes: Mapping[int, Mapping[str, Sequence[int]]]) -> Samples:
        brokers = {broker for each in self.agents for broker in each.brokers} | skipped_bytes.keys()
        none = dict.fromkeys(SKIPPED_COPIES, [0] * len(SKIP_REASONS))
        rows = (
            ((broker, reason, copy), size)
            for broker in sorted(brokers)
            for copy, sizes in skipped_bytes.get(broker, none).items()
            for reason, size in zip(SKIP_REASONS, sizes, strict=True)
        )
        return client_family(observer_metrics.SKIPPED_BYTES, rows)

    def _gauge(self, metric: Metric) -> Gauge:
        from prometheus_client import Gauge

        return Gauge(metric.name, metric.help, metric.labels, registry=self._registry)

    def _counter(self, metric: Metric) -> Counter:
        from prometheus_client import Counter

        return Counter(metric.name, metric.help, metric.labels, registry=self._registry)

    def _histogram(self, metric: Metric, bounds: Sequence[float]) -> Histogram:
        from prometheus_client import Histogram

        return Histogram(metric.name, metric.help, metric.labels, registry=self._registry, buckets=bounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """The versions that run."""

    segtail: str
    spark: str
    python: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """A limit of the configuration that alert rules need."""

    name: str
    unit: Literal["seconds", "ratio"]
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStatus:
    """The result of the last poll of an agent; for an agent never reached, its name and ``up=False``.

    ``unreadable`` has the logs that it cannot read, ``unreadable_logs`` the first ones with the reason. ``directories`` names its log dirs
    as "broker:directory.id", which is the same name from every agent. ``unread_bytes`` of logs it has not read, -1 not known.
    """

    name: str
    up: bool
    brokers: tuple[int, ...] = ()
    cluster_id: str = ""
    catching_up: bool = False  # reported by the agent: its first scan still reads what was on disk before
    metadata_brokers: frozenset[int] = frozenset()  # those of ``brokers`` whose own copy of the metadata log could be read
    address: str = ""
    problems: tuple[str, ...] = ()  # words for what keeps it away or needs an operator's care
    clock_ahead_seconds: float | None = None  # how far its clock is ahead of the job's
    log_dirs: tuple[LogDirStatus, ...] = ()
    broker_statuses: tuple[BrokerStatus, ...] = ()
    doubts: tuple[tuple[str, int], ...] = ()
    blocked: tuple[BlockedFile, ...] = ()  # the files in which calls wait
    unreadable: tuple[UnreadableLogs, ...] = ()
    unreadable_logs: tuple[UnreadableLog, ...] = ()
    logs: int = 0  # how many logs it watches
    directories: tuple[str, ...] = ()
    scrubs: tuple[ScrubStatus, ...] = ()  # the scrubs of its log dirs
    explanation: str = ""  # a sentence about what keeps it away, "" if there is none
    unread_bytes: int = -1
    started_ms: int = -1  # when its process began, Unix milliseconds of its own clock, -1 not known

    @property
    def unreadable_keys(self) -> set[LogKey]:
        """All logs that it cannot read, told with a reason or not."""
        topics = ((of.broker, each) for of in self.unreadable for each in of.topics)
        every = (LogKey(broker, each.topic, partition, each.topic_id) for broker, each in topics for partition in each.partitions)
        return {*every, *map(key_of, self.unreadable_logs)}


def thresholds(settings: Settings) -> Iterator[Threshold]:
    """Every option that a rule or a dashboard may need, in base units, by the option's own name."""
    for name in SECONDS:
        yield Threshold(name=name, unit="seconds", value=getattr(settings, name).total_seconds())
    yield Threshold(name="trigger", unit="seconds", value=settings.longest_pause.total_seconds())
    for name in RATIOS:
        yield Threshold(name=name, unit="ratio", value=getattr(settings, name))


class Families:
    """Metric families as `prometheus_client` writes them out."""

    def __init__(self, families: Sequence[Samples]) -> None:
        self._families = families

    def collect(self) -> Iterable[Samples]:
        return self._families


def watched_by(agents: Iterable[AgentStatus]) -> Watched:
    """What agents watch all together."""
    directories: dict[int, set[str]] = {}
    unnamed = Counts[int]()
    for agent in agents:
        named = [each.partition(":") for each in agent.directories]
        for broker, _, directory in named:
            directories.setdefault(int(broker), set()).add(directory)
        unnamed.update({broker: max(0, count) for broker, count in _unnamed(agent).items()})
    return Watched(
        frozenset(broker for each in agents for broker in each.brokers),
        {broker: frozenset(found) for broker, found in directories.items()},
        unnamed,
        all(each.directories for each in agents),
        each_broker(status for each in agents if not each.up for status in each.broker_statuses),
    )


def _unnamed(agent: AgentStatus) -> Counts[int]:
    """How many log dirs of each broker the agent watches without ever having read their directory id."""
    watched = Counts(each.broker for each in agent.log_dirs)
    watched.subtract(int(each.partition(":")[0]) for each in agent.directories)
    return watched


def _without_created(family: Samples) -> Samples:
    """The family without samples for the creation time of a counter: absolute values of a checkpoint were created in another process."""
    family.samples = [sample for sample in family.samples if not sample.name.endswith("_created")]
    return family


def _unreadable(agents: Iterable[AgentStatus]) -> Iterable[tuple[tuple[object, ...], float]]:
    """For each broker whose agents are up: how many of its logs these agents cannot read, all together."""
    up = [agent for agent in agents if agent.up]
    brokers = sorted({broker for agent in up for broker in agent.brokers} | {each.broker for agent in up for each in agent.unreadable})
    return (((broker,), sum(each.logs for agent in up for each in agent.unreadable if each.broker == broker)) for broker in brokers)
