"""Random histories of a broker's agents against a plain reference: whoever publishes a log, it is there, and each byte counts once.

Agents are renamed, split and merged, and lose their journals. Log dirs change hands, replicas move between them, topics are deleted.
Micro-batches take any part of what the agents have published, and are run again.
"""

from dataclasses import dataclass, field, replace
from itertools import count, pairwise
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from streaming.common.event_row import EventRow
from streaming.common.rows import Kind
from tests.events import Item, Shard, census_end, range_of, row

DIRS = ("/d0", "/d1", "/d2")


@dataclass
class Log:
    """A replica, with the batches that it holds."""

    topic: str
    log_dir: str
    items: list[Item] = field(default_factory=list)


@dataclass
class Publisher:
    """An agent: the log dirs that it watches, and what it has published of their logs."""

    name: str
    journal: str
    log_dirs: set[str]
    rows: list[EventRow] = field(default_factory=list)
    read: int = 0  # events that the job has
    known: dict[str, int] = field(default_factory=dict)  # how many batches of a log are published
    unread: set[str] = field(default_factory=set)  # logs of which nothing is, and that were perhaps another agent's

    def write(self, kind: Kind, topic: str = "", **values: Any) -> None:
        self.add(row(kind, topic=topic, **values))

    def add(self, *parts: EventRow) -> None:
        seq = self.rows[-1].seq + 1 if self.rows else 1
        self.rows += [replace(each, agent=self.name, journal=self.journal, seq=seq, part=part) for part, each in enumerate(parts)]

    def census(self, logs: dict[str, Log]) -> None:
        for log in logs.values():
            if log.log_dir in self.log_dirs and log.topic not in self.known:
                self._meet(log)
        own = [row(Kind.CENSUS, topic=log.topic, log_dir=log.log_dir) for log in logs.values() if log.log_dir in self.log_dirs]
        self.add(*own, census_end(*(f"1:{each}" for each in sorted(self.log_dirs))))

    def look(self, logs: dict[str, Log], deleted: set[str], random: Random) -> None:
        """Publish what has changed."""
        for topic in [topic for topic in self.known if topic not in logs or logs[topic].log_dir not in self.log_dirs]:
            del self.known[topic]
            certain = topic in deleted and random.random() < 0.5
            self.write(Kind.GONE, topic, reason="deleted" if certain else "moved", log_dir="" if certain else "\n".join(self.log_dirs))
        for log in logs.values():
            if log.log_dir in self.log_dirs:
                self._read(log, random)

    def _meet(self, log: Log) -> None:
        self.write(Kind.APPEARED, log.topic, log_dir=log.log_dir, next_offset=0)
        self.known[log.topic] = 0
        self.unread.add(log.topic)

    def _read(self, log: Log, random: Random) -> None:
        if log.topic not in self.known:
            self._meet(log)
        begin, comes = self.known[log.topic], log.topic in self.unread
        bounds = sorted({begin, len(log.items), *(random.randint(begin, len(log.items)) for _ in range(2))})
        for first, end in pairwise(bounds):
            self.add(range_of(0, log.items[first:end], detailed=comes, topic=log.topic, log_dir=log.log_dir, leads=1, settled=True))
        self.write(Kind.FOUND, log.topic, log_dir=log.log_dir, log_start_offset=0, high_watermark=-1, leader=1)
        self.known[log.topic] = len(log.items)
        self.unread.discard(log.topic)


class Broker:
    """A broker with three log dirs, its agents, and a job."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.shard = Shard()
        self.logs: dict[str, Log] = {}
        self.deleted: set[str] = set()
        self.journals = count()
        self.agents: list[Publisher] = []
        self.begin(set(DIRS))

    def begin(self, log_dirs: set[str], name: str = "") -> None:
        """An agent without a journal; every name may be that of an earlier one."""
        name = name or self.random.choice([each for each in "abcdef" if each not in {agent.name for agent in self.agents}])
        self.agents.append(Publisher(name, f"{self.random.randrange(999)}.{next(self.journals)}", log_dirs))
        self.agents[-1].census(self.logs)

    def end(self, agent: Publisher) -> None:
        """What the job has not read of its journal it never reads."""
        self.agents.remove(agent)

    # --- what happens

    def create(self) -> None:
        topic = f"t{len(self.logs) + len(self.deleted)}"
        self.logs[topic] = Log(topic, self.random.choice(DIRS))
        self.append()

    def append(self) -> None:
        for log in self.logs.values():
            for _ in range(self.random.randrange(4)):
                base = log.items[-1].next_offset if log.items else 0
                records = self.random.randint(1, 3)
                log.items.append(Item(base, base + records, records * 100, records, 1))

    def move(self) -> None:
        """Not back to an agent that has not noticed that the log was away: it would go on where it was."""
        if self.logs:
            log = self.random.choice(list(self.logs.values()))
            known = {
                each for agent in self.agents for each in agent.log_dirs if log.topic in agent.known and log.log_dir not in agent.log_dirs
            }
            log.log_dir = self.random.choice([each for each in DIRS if each == log.log_dir or each not in known])

    def delete(self) -> None:
        if self.logs:
            topic = self.random.choice(list(self.logs))
            del self.logs[topic]
            self.deleted.add(topic)

    def lose_journal(self) -> None:
        agent = self.random.choice(self.agents)
        self.end(agent)
        self.begin(agent.log_dirs, agent.name)

    def rename(self) -> None:
        agent = self.random.choice(self.agents)
        self.end(agent)
        self.begin(agent.log_dirs)

    def split(self) -> None:
        agent = self.random.choice(self.agents)
        if len(agent.log_dirs) > 1:
            given = {self.random.choice(sorted(agent.log_dirs))}
            self.watch(agent, agent.log_dirs - given)
            self.begin(given)

    def merge(self) -> None:
        if len(self.agents) > 1:
            one, other = self.random.sample(self.agents, 2)
            self.end(other)
            self.watch(one, one.log_dirs | other.log_dirs)

    def give(self) -> None:
        """A log dir changes hands between two agents that go on; for a while both watch it, or none."""
        giving = [agent for agent in self.agents if len(agent.log_dirs) > 1]
        if giving and len(self.agents) > 1:
            agent = self.random.choice(giving)
            other = self.random.choice([each for each in self.agents if each is not agent])
            given = {self.random.choice(sorted(agent.log_dirs))}
            for each, log_dirs in self.random.sample([(agent, agent.log_dirs - given), (other, other.log_dirs | given)], 2):
                self.watch(each, log_dirs)

    def watch(self, agent: Publisher, log_dirs: set[str]) -> None:
        """An agent is started anew on its journal, with other log dirs.

        The job has everything of the time before: of that and of what the next agent of a log dir publishes no order is known.
        """
        self.settle()
        agent.log_dirs = log_dirs
        agent.look(self.logs, self.deleted, self.random)
        agent.census(self.logs)

    def look(self) -> None:
        self.random.choice(self.agents).look(self.logs, self.deleted, self.random)

    def micro_batch(self, *, all_there_is: bool = False) -> None:
        """Some of what some agents have published, and again some of what they had delivered before; it is run twice."""
        batch: list[EventRow] = []
        for agent in self.agents:
            seqs = agent.rows[-1].seq if agent.rows else 0
            upto = seqs if all_there_is else self.random.randint(agent.read, seqs)
            back = max(0, agent.read - self.random.randrange(3))
            batch += [each for each in agent.rows if back < each.seq <= upto]
            agent.read = upto
        self.random.shuffle(batch)
        once, twice = self.shard.look(batch), self.shard.look(batch)
        assert (once.touched, once.marks) == (twice.touched, twice.marks)
        self.shard.fold(*batch)

    def settle(self) -> None:
        for agent in self.agents:
            agent.look(self.logs, self.deleted, self.random)
        self.micro_batch(all_there_is=True)

    def check(self) -> None:
        live = {key.topic: state for key, state in self.shard.states.items() if key.topic and not state.departed}
        assert live.keys() == self.logs.keys()
        for topic, log in self.logs.items():
            state, written = live[topic], sum(each.size for each in log.items)
            assert state.log_dir == log.log_dir
            assert state.appended_bytes + sum(state.skipped_bytes) == written
            assert (state.appended_bytes, state.share_records) == (written, sum(each.records for each in log.items))


HAPPENS = ("create", "append", "append", "move", "delete", "lose_journal", "rename", "split", "merge", "give", "look", "look", "look")
steps = st.lists(st.sampled_from([*HAPPENS, *("micro_batch",) * 4]), min_size=5, max_size=40)


@given(steps, st.randoms(use_true_random=False))
def test_whoever_publishes_a_log_it_is_there_and_each_byte_counts_once(steps: list[str], random: Random) -> None:
    broker = Broker(random)
    broker.create()
    for step in steps:
        getattr(broker, step)()
    broker.settle()
    broker.check()
