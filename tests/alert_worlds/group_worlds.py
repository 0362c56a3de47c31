"""Random consumer groups that read two topics of one broker: what rounds find of them, judged and rendered at one moment."""

import json
from random import Random
from typing import Any

import numpy as np

from streaming.broker.protocol.cluster_messages import Registered
from streaming.cluster.verdicts.circumstances import Circumstances
from streaming.cluster.verdicts.group_judge import judge_groups
from streaming.cluster.verdicts.incidents import problems
from streaming.cluster.view.observer import AgentStatus, Observer, Versions, thresholds
from streaming.cluster.view.view import view
from streaming.common.rows import SEGMENTS, TRANSACTIONS
from streaming.common.settings import Settings
from streaming.pages.exposition.render import render
from tests.alert_worlds.worlds import DAY, HOUR, MINUTE, NOW, World
from tests.consumers.group_agents import GROUP, WAITING, FakeAgent, Records
from tests.consumers.group_world import STOPPED_MS, GroupJob
from tests.view.reported import Facts
from tests.view.rows import new_table, states
from tests.worlds.hosts import broker, log_dir
from tests.worlds.transactions import coordinator, transaction

GROUPS = ("billing", "mail", "console-consumer-77", "sync", "nightly")
TOPICS = ("orders", "pay")
END = 10


def group_world(seed: int) -> World:
    """The groups of a seed, after the rounds of half an hour."""
    drawn = _Groups(Random(seed))
    job = drawn.job
    now = NOW
    snapshot = job.table.snapshot(now)
    seen = view(snapshot)
    board = job.board.latest(1000 * now)
    observer = Observer(query="segtail", versions=Versions(segtail="0", spark="0", python="0"), thresholds=thresholds(Settings()))
    running = broker(appended_ms=1000 * now - 500, registered=[Registered(broker=1, fenced=False)])
    observer.know(
        [
            AgentStatus(
                name="a1",
                up=True,
                brokers=(1,),
                metadata_brokers=frozenset({1}),
                broker_statuses=(running,),
                log_dirs=(log_dir(checkpoint_ms=1000 * now),),
            )
        ]
    )
    groups = None if board is None else judge_groups(board, board.at_ms)
    judged = Circumstances(view=seen, topics=snapshot.topic_names, now_ms=1000 * now, agents=observer.agents, groups=groups)
    page = render(job.table, observer, now, groups=job.board, look=lambda: seen)
    return World(seed=seed, page=page.decode(), circumstances=judged, problems=problems(judged))


class _Groups:
    """Logs with records, markers and gaps, groups with commits in them, and what has come of both until now."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.begun = NOW - 2 * STOPPED_MS // 1000 - 10
        agent = FakeAgent(logs={(topic, partition): self._records() for topic in TOPICS for partition in range(2)})
        self.job = GroupJob(new_table(), {"a1": agent}, now=float(self.begun))
        self.job.put("__consumer_offsets", end=1000)
        logs = {each: self._log() for each in agent.logs}
        for (topic, partition), values in logs.items():
            self.job.put(topic, partition, end=END, **values)
        if self.chance(0.5):
            self.job.table.apply(states(self._coordinator()))
        self.job.reach()
        agent.groups_ = [GROUP | {"group": name, **self._members(), "moves": self._moves()} for name in GROUPS if self.chance(0.7)]
        for name in GROUPS:
            for topic, partition in logs:
                if self.chance(0.5):
                    agent.commit(
                        random.randrange(END + 2),
                        group=name,
                        topic=topic,
                        partition=partition,
                        commit_ms=1000 * (self.begun - random.choice((0, 5, HOUR, DAY, 11 * DAY))),
                    )
        # What waits has waited for all of the time that the world is held still.
        agent.pending = [
            WAITING
            | {
                "group": random.choice(GROUPS),
                "topic": random.choice(TOPICS),
                "commit_ms": 1000 * (NOW - random.choice((20 * MINUTE, HOUR))),
            }
            for _ in range(random.choice((0, 0, 1, 2)))
        ]
        agent.unreadable = 3 if self.chance(0.2) else 0  # records of a version that nobody knows
        self.job.round()
        for (topic, partition), values in logs.items():  # what retention deletes meanwhile
            if self.chance(0.2):
                self.job.put(topic, partition, end=END, **values | {"log_start_offset": random.choice((1, 4, 8))})
        self.job.round(STOPPED_MS / 1000)
        for name in GROUPS:
            if self.chance(0.3):
                agent.commit(random.randrange(END), group=name, topic="orders", commit_ms=1000 * round(self.job.now))
        self.job.round(NOW - self.job.now)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def _records(self) -> Records:
        kinds = [self.random.choice(("data", "data", "data", "aborted", "control", "gone")) for _ in range(END)]
        ages = [self.random.choice((5, 899, 900, 901, HOUR, 3 * HOUR, 5 * HOUR)) for _ in range(END)]
        times = {offset: 1000 * (NOW - age) for offset, age in enumerate(sorted(ages, reverse=True))}
        if self.chance(0.6):
            return Records(kinds, times=times)
        ahead, since = self.random.choice((-DAY, DAY)), self.random.choice((0, 1000 * (NOW - 6 * HOUR)))
        stamps = {offset: at_ms + 1000 * ahead for offset, at_ms in times.items()}
        return Records(kinds, times=stamps, earliest=dict.fromkeys(times, since), latest=times)

    def _log(self) -> dict[str, Any]:
        values: dict[str, Any] = {"high_watermark": self.random.choice((END, END, END - 2))}
        if self.chance(0.4):
            age = self.random.choice((60, 950, 5_000))
            first = self.random.randrange(END)
            values |= {"transactional": True, "transactions": np.array([transaction(9, first, age=age)], TRANSACTIONS).tobytes()}
        if self.chance(0.6):
            ages = self.random.choice(((0, 0), (HOUR, 0), (3 * HOUR, MINUTE), (5 * HOUR, HOUR), (DAY, 5 * HOUR)))
            segments = np.array(
                [(0, 600, 1000 * (NOW - ages[0]), 1000 * (NOW - ages[0])), (6, 400, 1000 * (NOW - ages[1]), 1000 * (NOW - ages[1]))],
                SEGMENTS,
            )
            limit = self.random.choice((HOUR, 4 * HOUR, 6 * HOUR, 9 * HOUR, 2 * DAY))
            configs = json.dumps({"topic": {"retention.ms": str(1000 * limit)}}) if self.chance(0.9) else ""  # assumed
            values |= {
                "facts": Facts(segments=segments, configs=configs, replicas=(1,), isr=(1,)).encode(),
                "active_segment": 6,
                "active_position": 400,
            }
        return values

    def _members(self) -> dict[str, Any]:
        interval = {
            "topics": self.random.choice((TOPICS, TOPICS, TOPICS[:1], ())),
            "interval_ms": 1000 * self.random.choice((-1, MINUTE, 2 * MINUTE, HOUR, DAY)),
        }
        return (
            interval
            | self._rebalances()
            | ({"members": 0, "state": "Empty"} if self.chance(0.4) else {"members": self.random.choice((2, -2))})
        )

    def _rebalances(self) -> dict[str, Any]:
        """Some rebalance much, and some have done so."""
        if self.chance(0.5):
            return {}
        ago, count = self.random.choice((0, 599, 600, 20 * MINUTE)), self.random.choice((1, 6, 9, 10, 20))
        last_ms = 1000 * (NOW - ago)
        minutes = [last_ms // 60_000, count, self.random.choice((1, 2))]
        return {"raised": 40, "raised_by_metadata": 3, "raised_unfinished": 0, "rebalance_ms": last_ms, "rebalance_minutes": minutes}

    def _moves(self) -> list[dict[str, Any]]:
        """Of one partition: by hand, by programs, by members; some of just now, or of days ago, and some are taken back."""
        random, moves = self.random, list[dict[str, Any]]()
        where = {"topic": random.choice(TOPICS), "topic_id": "", "partition": random.randrange(2)}
        for number in range(random.choice((0, 0, 1, 2, 3))):
            before, offset = random.sample(range(END), 2)
            at_ms = 1000 * (NOW - random.choice((20, 400, HOUR, DAY - 60, DAY + 60)))
            facts = {"record_offset": number, "effective_offset": number, "presence": random.choice((0, 1, 1, 1, 2))}
            numbers = {"before": before, "offset": offset, "commits": random.choice((1, 2, 4)), "step": random.choice((0, 1))}
            moves.append(where | facts | numbers | {"before_ms": at_ms - 1000, "at_ms": at_ms})
        return moves

    def _coordinator(self) -> dict[str, Any]:
        entry = {
            "transactional_id": "pay",
            "producer_id": 9,
            "state": "Ongoing",
            "timeout_ms": self.random.choice((60_000, 2**31 - 1, 86_400_000)),
            "start_ms": 1000 * (NOW - 1_000),
            "partitions": [f"{topic}-{partition}" for topic in TOPICS for partition in range(2)],
        }
        return coordinator(entry, agent="a1", broker=1)
