"""Random clusters as agents report them, each judged and rendered as it is at one moment; what is known of one is always the same."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random
from typing import Any

import numpy as np

from streaming.broker.protocol.agent_calls import Reason
from streaming.broker.protocol.cluster_messages import AffectedPartition, Led, PartitionCounts, Registered, TopicCounts
from streaming.broker.protocol.status_json import Problem
from streaming.broker.protocol.status_messages import (
    BlockedFile,
    BrokerStatus,
    CorruptBatch,
    LogDirStatus,
    ProcessStatus,
    ScrubStatus,
    UnreadableLog,
    UnreadableLogs,
)
from streaming.cluster.verdicts.circumstances import Circumstances, thresholds_of
from streaming.cluster.verdicts.incidents import problems
from streaming.cluster.view.disk_use import full_by_dir
from streaming.cluster.view.family import EVERYTHING, Export
from streaming.cluster.view.observer import AgentStatus, Observer, Versions, thresholds
from streaming.cluster.view.table import Replica, Table
from streaming.cluster.view.view import view
from streaming.common.rows import TRANSACTIONS
from streaming.common.settings import Settings
from streaming.kafka.formats.metadata_records import Phase
from streaming.kafka.formats.names import OFFSETS_TOPIC
from streaming.pages.exposition.render import render
from streaming.rules.broker_process import LockState, ProcessState
from streaming.rules.config_values import ValueSource, broker_configs
from tests.view.rows import Row, log, new_table
from tests.worlds.hosts import broker, log_dir
from tests.worlds.retention import facts
from tests.worlds.transactions import coordinator, transaction

NOW = 1_700_000_000
MS = NOW * 1000
MINUTE, HOUR, DAY = 60, 3_600, 86_400

TOPICS = ("orders", "pay", OFFSETS_TOPIC)
_WORSE = ("same_name", "other_cluster", "stuck", "unauthorized", "refused", "silent", "busy")


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """One moment: what `/metrics` shows, and what is judged to be wrong. ``seed`` makes it again."""

    seed: int
    page: str
    circumstances: Circumstances
    problems: tuple[Problem, ...]


class _Lagging(Observer):
    """An observer whose tail lags a test has set."""

    lagging: Mapping[str, tuple[int | None, float]]

    def lags(self, now: float) -> dict[str, tuple[int | None, float]]:
        return dict(self.lagging)


def world(seed: int) -> World:
    """The cluster of a seed. It is looked at twice, because transactions and retention are judged with memory."""
    random = Random(seed)
    settings = _settings(random)
    cluster = _Cluster(random, settings, *(Random(seed) for _ in range(3)))
    table = cluster.table()
    agents = cluster.agents()
    lags = {each.name: (random.choice((None, 5_000)), cluster.lag()) for each in agents if random.random() < 0.9}
    observer = _Lagging(query="segtail", versions=Versions(segtail="0", spark="0", python="0"), thresholds=thresholds(settings))
    observer.lagging = lags
    stale = random.random() < 0.03
    observer.know(agents, at=NOW - 31 if stale else NOW - 30)
    view(table.snapshot(NOW - 20 * MINUTE))
    snapshot = table.snapshot(NOW)
    seen = view(snapshot)
    full = full_by_dir(seen, [each for each in agents if each.up], MS)
    judged = Circumstances(
        view=seen,
        topics=snapshot.topic_names,
        now_ms=MS,
        agents=observer.agents,
        lags=lags,
        thresholds=thresholds_of(settings),
        export=table.export,
        stale=stale,
        full=full,
        min_isr=table.limiter.min_isr,
    )
    return World(seed=seed, page=render(table, observer, NOW, look=lambda: seen).decode(), circumstances=judged, problems=problems(judged))


def _settings(random: Random) -> Settings:
    def seconds(*choices: int) -> timedelta:
        return timedelta(seconds=random.choice(choices))

    return Settings().model_copy(
        update={
            "overdue_after": seconds(600, 1_800, 7_200),
            "ahead_limit": seconds(60, 3_600),
            "full_within": seconds(3 * HOUR, 6 * HOUR),
            "starting_after": seconds(300, 900),
            "scrub_overdue_after": seconds(DAY, 30 * DAY),
            "free_ratio": random.choice((0.15, 0.3)),
        }
    )


class _Cluster:
    """Draws a cluster of one to three brokers, each mostly watched by an agent of its own."""

    def __init__(self, random: Random, settings: Settings, of_processes: Random, of_arrivals: Random, of_strays: Random) -> None:
        self.random = random
        # of their own: what a seed is known for stays
        self.of_processes, self.of_arrivals, self.of_strays = of_processes, of_arrivals, of_strays
        self.settings = settings
        self.calm = random.choice((0.5, 0.85, 0.97))  # how likely it is that a thing is as it should be
        self.brokers = range(1, random.choice((1, 2, 3)) + 1)
        self.registered = [each for each in self.brokers if self.chance(0.95)]
        self.controlled = self.chance(0.92)  # an active controller writes all the time
        self.watched = [each for each in self.brokers if self.chance(0.9)] or [1]
        self.topics = TOPICS[: random.choice((1, 2, 3))]
        self.configs = {topic: self._configs() for topic in self.topics}

    # draws

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def well(self) -> bool:
        return self.random.random() < self.calm

    def near(self, *bounds: float) -> int:
        """An age in whole seconds that is at one of some bounds, or beside it, or anywhere."""
        bound = int(self.random.choice(bounds))
        return max(0, self.random.choice((bound - 1, bound, bound + 1, bound // 2, 2 * bound, self.random.randrange(1, 4 * bound + 2))))

    def lag(self) -> float:
        return float(self.random.choice((0, 1)) if self.well() else self.near(5, 30, 120))

    # agents

    def agents(self) -> tuple[AgentStatus, ...]:
        copies = self._counts()
        made = [self._agent(f"a{number}", (number,), copies) for number in self.watched]
        if self.chance(0.1):
            made.append(AgentStatus(name="new", up=False, problems=("unresolved",)))  # never reached
        if self.chance(0.1):
            path = self.random.choice(("/second", "/d"))  # a log dir of its own, or one that the first agent watches, too
            made.append(self._agent("second", (1,), copies, path=path, metadata=self.chance(0.7)))
        return tuple(made)

    def _agent(self, name: str, brokers: tuple[int, ...], counts: str, path: str = "/d", *, metadata: bool = True) -> AgentStatus:
        """``metadata``: one of its log dirs holds the metadata log of its brokers."""
        up = self.well()
        statuses = tuple(self._broker(each, counts, metadata=metadata) for each in brokers)
        dirs = tuple(self._log_dir(each, f"{path}{number}") for each in brokers for number in range(self.random.choice((1, 2))))
        worse = () if up else (self.random.choice(_WORSE),)
        odd = () if self.well() else (str(self.random.choice((Reason.SHARED_LOG_DIR, Reason.CLOCK, Reason.BLOCKED))),)
        unreadable = () if self.well() else (UnreadableLogs(brokers[0], self.random.choice((0, 1, 7))),)
        named = tuple(UnreadableLog(each.broker, "orders", 0, "", "/d/orders-0", "gone") for each in unreadable if each.logs)
        waits = () if self.well() or not dirs else (BlockedFile(brokers[0], dirs[0].log_dir, f"{dirs[0].log_dir}/x", 90.0),)
        return AgentStatus(
            name=name,
            up=up,
            brokers=brokers,
            catching_up=not self.well(),
            metadata_brokers=frozenset(each.broker for each in statuses if each.readable),
            problems=(*worse, *odd),
            log_dirs=tuple(replace(each, up=False) if any(each.log_dir == file.log_dir for file in waits) else each for each in dirs),
            broker_statuses=statuses,
            blocked=waits,
            unreadable=unreadable,
            unreadable_logs=named,
            directories=tuple(f"{each.broker}:{each.log_dir}" for each in dirs) if self.well() else (),
            scrubs=tuple(self._scrub(each) for each in dirs if self.chance(0.3)),
        )

    def _broker(self, number: int, counts: str, *, metadata: bool) -> BrokerStatus:
        expected = self.chance(0.95)
        readable = metadata and expected and self.well()
        appended = MS - 1_000 if self.controlled and self.well() else (-1 if self.chance(0.2) else MS - 1000 * self.near(30, 60))
        directories = [f"/d{each}" for each in range(3)] if self.chance(0.2) else []
        return broker(
            number,
            readable=readable,
            metadata_offset=1_000 - self.random.choice((0, 1, 500)) if readable else -1,
            appended_ms=appended if readable else -1,
            registered=[self._registered(each) for each in self.registered] if readable else [],
            led=[Led(each, self.random.choice((0, 4))) for each in self.brokers] if readable else [],
            counts=counts if readable else "",
            snapshot=self.well(),
            transaction_partitions=1,
            log_dirs=directories,
            expected=expected,
            clean=self.chance(0.1),
            process=self._process(),
        )

    def _process(self) -> ProcessStatus | None:
        random = self.of_processes
        state = ProcessState.UP if random.random() < self.calm else random.choice((None, *ProcessState))
        if state is None:
            return None
        since = MS - 1000 * random.choice((2 * HOUR, 5 * HOUR)) if state is ProcessState.ENDED else -1
        before = -1
        if state is ProcessState.UP and random.random() > self.calm:  # it was seen to come up, and may not have registered yet
            after = round(self.settings.starting_after.total_seconds())
            since, before = MS - 1000 * random.choice((5, after, after + 1)), random.choice((4, 5))
        last = MS - 6 * HOUR * 1000
        return ProcessStatus(state=state, since_ms=since, last_ms=last, free=[f"/d{each}" for each in range(3)], before=before)

    def _registered(self, number: int) -> Registered:
        if self.well():
            return Registered(broker=number, fenced=False, epoch=5, phase=Phase.RUNNING, since_ms=MS - 9 * DAY * 1000)
        phase = self.random.choice((Phase.DOWN, Phase.STARTING, Phase.STOPPING, ""))
        after = self.settings.starting_after.total_seconds()
        # a broker that has been stopped for long has been so for long
        age = self.near(after) if phase == Phase.STARTING else self.random.choice((2 * HOUR, 5 * HOUR))
        since = -1 if self.chance(0.1) else MS - 1000 * age
        return Registered(
            broker=number,
            fenced=True,
            epoch=5 if phase or self.well() else -1,
            phase=phase,
            since_ms=since,
            replicas=self.random.choice((None, True, True, False)),
        )

    def _log_dir(self, number: int, path: str) -> LogDirStatus:
        up = self.well()
        capacity = 10_000
        bound = round(capacity * self.settings.free_ratio / 3)
        free = 5_000 if self.well() else self.near(bound, 3 * bound, capacity // 50, capacity // 200)
        age = 3 if self.well() else self.near(60)
        return log_dir(
            path,
            number,
            up=up,
            problem="" if up else "Permission denied",
            registered=self.random.choice((None, True)) if self.well() else False,
            checkpoint_ms=MS - 1000 * age if self.well() else -1,
            hosts=self.random.choice((None, True)) if self.well() else False,
            lock=LockState.LOCKED if self.of_processes.random() < self.calm else self.of_processes.choice([*LockState]),
            free=min(free, capacity) if up else -1,
            capacity=capacity if up else -1,
            stray_only=0 if self.of_strays.random() < self.calm else 1,
            unnamed=0 if self.of_strays.random() < self.calm else 2,
        )

    def _scrub(self, place: LogDirStatus) -> ScrubStatus:
        after = self.settings.scrub_overdue_after.total_seconds()
        ended = -1 if self.chance(0.2) else MS - 1000 * (HOUR if self.well() else self.near(after))
        began = -1 if self.chance(0.1) else MS - 1000 * (HOUR if self.well() else self.near(after))
        corrupt = 0 if self.well() else 2
        unreadable = 0 if self.well() else 1
        waits = 0.0 if self.well() else float(self.near(300))
        batches = [CorruptBatch("orders", 0, "/d/orders-0/0.log", 61, 5, "crc")] if corrupt else []
        return ScrubStatus(
            broker=place.broker,
            log_dir=place.log_dir,
            began_ms=began,
            ended_ms=ended,
            logs=1,
            logs_checked=1,
            checked=5,
            corrupt=corrupt,
            unreadable=unreadable,
            waits_at=f"{place.log_dir}/orders-0/0.log" if waits else "",
            waits_seconds=waits,
            corrupt_batches=batches,
        )

    def _counts(self) -> str:
        """The copy of the metadata log that all brokers have, with partitions that lack replicas."""
        topics, affected = [], []
        for topic in (*self.topics, "elsewhere"):
            lack: dict[str, Any] = {
                name: 0 if self.well() else self.random.choice((1, 4)) for name in ("offline", "under_min_isr", "under_replicated")
            }
            topics.append(TopicCounts(topic=topic, partitions=8, **lack))
            affected += [
                AffectedPartition(topic=topic, partition=0, problem=name, leader=-1, in_sync=[1], out_of_sync=[2], electable=[1])
                for name, count in lack.items()
                if count
            ]
        return PartitionCounts(topics=topics, affected=affected).pack()

    # logs

    def table(self) -> Table:
        rows = [self._log(topic, partition, each) for topic in self.topics for partition in range(2) for each in self._hosts(partition)]
        if self.chance(0.6):
            rows.append(self._coordinator())
        static = {each: broker_configs([("log.retention.hours", "2")], ValueSource.STATIC) for each in self.brokers if self.chance(0.7)}
        table = new_table(
            *rows,
            replicas="all" if self.chance(0.2) else "leaders",
            late_limit=self.random.choice((500, 500, 1)),
            coordinator_partitions=self.random.choice((0, 1, 1, 2, None)),
            overdue_after_ms=1000 * int(self.settings.overdue_after.total_seconds()),
            static=lambda: static,
            export=Export(exclude=re.compile("pay")) if self.chance(0.1) else EVERYTHING,
        )
        table.set_reading({f"a{each}": NOW if self.well() else NOW - self.near(60) for each in self.brokers})
        for each in self.watched:
            table.mark_agent(f"a{each}", NOW if self.well() else NOW - 400)
        if not self.well():
            table.set_scrubbed({Replica(self.random.choice(self.brokers), self.random.choice(self.topics), 0): 3})
        return table

    def _hosts(self, partition: int) -> Sequence[int]:
        leader = 1 + partition % len(self.brokers)
        return self.brokers if self.chance(0.4) else (leader,)

    def _log(self, topic: str, partition: int, number: int) -> Row:
        leader = 1 + partition % len(self.brokers)
        unclean = {} if self.well() else {"unclean_elections": 1, "unclean_ms": MS - 1000 * self.near(HOUR), "unclean_from": 2}
        last = MS - 1000 * (5 if self.well() else self.near(HOUR, 600))
        found = [] if self.well() else self._transactions()
        values: dict[str, Any] = {
            **unclean,
            "broker": number,
            "agent": f"a{number}",
            "leader": leader if self.well() else self.random.choice((-1, -2)),
            "leader_epoch": 5,
            "log_end_offset": 100,
            "high_watermark": 100 if self.well() else 40,
            "appended_bytes": 1_000,
            "last_append_ms": last,
            "corrupt_batches": 0 if self.well() else 2,
            "facts": self._facts(topic),
            "transactional": bool(found),
            "transactions": np.array(found, TRANSACTIONS).tobytes() if found else None,
            **self._late(),
        }
        return log(topic, partition, **values)

    def _late(self) -> dict[str, Any]:
        """Records that were past their retention when they were written, of some logs."""
        random = self.of_arrivals
        if random.random() < 0.6:
            return {}
        last = MS - 1000 * random.choice((5, 90, 600, HOUR - MINUTE, HOUR + MINUTE))
        since = last - 1000 * random.choice((0, 120, 1_200))
        delay = 1000 * random.choice((2 * HOUR, 30 * DAY))
        return {
            "judges_expiry": True,
            "share_expired_batches": 3,
            "share_expired_records": 30,
            "share_expired_bytes": 3_000,
            "expired_since_ms": since,
            "expired_since_timestamp": since - delay - 1000 * random.choice((0, 5 * HOUR)),
            "expired_before": random.choice((0, 10)),
            "expired_ms": last,
            "expired_timestamp": random.choice((last - delay, last - delay, 5)),
            "expired_offset": random.choice((20, 60, 99)),
            "expired_since_offset": 10,
        }

    def _transactions(self) -> list[tuple[Any, ...]]:
        return [
            transaction(
                7 + place, 40 + 10 * place, age=self.random.choice((5, 90, 950, 1_300, 5_000)), marker=self.random.choice((-1, -1, 90))
            )
            for place in range(self.random.choice((1, 2)))
        ]

    def _coordinator(self) -> Row:
        states = ("Ongoing", "PrepareCommit", "CompleteCommit", "Empty")
        entries = [
            {
                "transactional_id": f"id{producer}",
                "producer_id": producer,
                "state": self.random.choice(states),
                "start_ms": MS - 1000 * self.near(60, 120, 960, 5_000),
                "timeout_ms": self.random.choice((60_000, 900_000, 2**31 - 1)),
                "partitions": [f"{topic}-{partition}" for topic in self.topics for partition in range(2)],
            }
            for producer in (7, 8)
            if self.chance(0.7)
        ]
        if self.chance(0.05):  # of a version that nobody here can read
            entries.append({"transactional_id": "new", "producer_id": -1, "state": "?"})
        number = self.random.choice(self.brokers)
        return coordinator(*entries, broker=number, agent=f"a{number}", leader=number)

    def _configs(self) -> str:
        topic = {
            "retention.ms": self.random.choice(("3600000", "99999999999", "-1")),
            "segment.ms": self.random.choice(("3600000", "604800000")),
        }
        if self.chance(0.3):
            topic["cleanup.policy"] = self.random.choice(("compact", "compact,delete"))
        if self.chance(0.1):
            topic["min.compaction.lag.ms"] = "18000000"
        if self.chance(0.2):
            topic["min.insync.replicas"] = "2"
        return json.dumps({"topic": topic} | ({"static": {}} if self.chance(0.5) else {})) if self.chance(0.8) else "{}"

    def _facts(self, topic: str) -> bytes | None:
        if self.chance(0.1):
            return None
        compacts = "compact" in self.configs[topic] or topic == OFFSETS_TOPIC  # by default
        # what has been beyond its limit, or dirty, for some time has been so for all of the time that the world is held still
        ages = (10, 600, 3_600 + 40 * MINUTE, 4 * HOUR + MINUTE, 5 * HOUR)
        segments = [(base, self.random.choice((500, 5_000)), self.random.choice(ages)) for base in (0, 50, 80)]
        if not self.well():
            segments[0] = (0, 500, -self.near(self.settings.ahead_limit.total_seconds()))
        if compacts:  # what is dirty has been so for all of the time that the world is held still
            segments = [(base, size, max(age, 4 * HOUR)) for base, size, age in segments]
        replicas = tuple(self.brokers)
        isr = replicas if self.well() else replicas[:1]
        first = self.random.choice((-1, *(MS - 1000 * self.near(HOUR, 2 * HOUR, 3 * HOUR) for _ in range(2))))
        created = -1 if first < 0 else max(first, MS - 1000 * self.near(2 * HOUR))
        if self.chance(0.1):  # by Kafka's default a segment rolls after a week
            first = created = MS - 15 * DAY * 1000
        return facts(
            *segments,
            configs=self.configs[topic],
            isr=isr,
            replicas=replicas,
            cleaner_checkpoint=self.random.choice((-1, 0, 20, 50, 80, 100)) if compacts else -1,
            active_first_timestamp=first,
            active_created_ms=created,
            oldest_timestamp=MS - 1000 * max(age for _, _, age in segments),
        )
