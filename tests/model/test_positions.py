"""A stream over the disks of three brokers, read by itself or by agents: whatever happens, each batch comes once, or is said to be gone.

Each batch, named by its base offset and leader epoch, that lies on a disk when the query has caught up has come, or a row ``skipped`` that
came after it was written has its offsets. So has each one that is deleted. None comes more often than it was written to its log. What the
model does not demand, because nothing on the disk tells it:

- What is cut off and fetched again just as it was may come again, as the query may have looked between.
- What is written in place of something the query has read, and is deleted before the query looks, is neither read nor missed.
- A log that leaves a broker and comes back is another one if the query has looked between, and else the same.
- A position has eight epochs: of a log that loses more between two looks, what takes the place of the earliest ones is not seen.
- Records are read of one replica of each partition, and two replicas may differ: only batches are played.
"""

import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from pyspark.sql.streaming.datasource import ReadMaxBytes

from streaming.common.log_key import LogKey
from streaming.common.log_positions import NOT_KNOWN, LogName, Position, decode
from streaming.errors import AgentError
from streaming.spark.source.public_stream import PublicStreamReader
from tests.builders import batch
from tests.model.brokers import Cluster, Disk, Partition, Replica, Written
from tests.model.position_agents import Fleet
from tests.scratch import scratch
from tests.source.local_streaming import ALL, read, stream
from tests.source.public_reading import stream as agents_stream

EXHAUSTIVE = os.environ.get("HYPOTHESIS_PROFILE") == "exhaustive"
PARTS, EXAMPLES = (4, 500) if EXHAUSTIVE else (1, 20)
TOPICS = {("orders", 0): [1, 2, 3], ("bills", 0): [2, 1]}
ROUNDS = 12
Name = tuple[int, int]


class Account:
    """What was written to each log. ``owed``: what was not cut off again; ``lives``: how often the log came to its broker."""

    def __init__(self) -> None:
        self.written: defaultdict[LogKey, Counter[Name]] = defaultdict(Counter)
        self.owed: defaultdict[LogKey, dict[Name, Written]] = defaultdict(dict)
        self.lives: Counter[LogKey] = Counter()
        self.reached: Counter[LogKey] = Counter()
        """Up to which offset a query has planned to read."""
        self.in_place: defaultdict[LogKey, set[Name]] = defaultdict(set)
        """What was written below that."""

    def created(self, log: LogKey) -> None:
        self.lives[log] += 1

    def appended(self, log: LogKey, written: Written) -> None:
        self.written[log][written.name] += 1
        self.owed[log][written.name] = written
        if written.base_offset < self.reached[log]:
            self.in_place[log].add(written.name)

    def truncated(self, log: LogKey, offset: int) -> None:
        self.owed[log] = {name: each for name, each in self.owed[log].items() if each.next_offset <= offset}

    def left(self, log: LogKey) -> None:
        self.owed[log].clear()

    def removed(self, log: LogKey) -> None:
        self.owed[log].clear()


@dataclass
class Told:
    """What a checkpoint has: an offset, and what came up to it. ``begun``: of each log its first offset, and in which of its lives."""

    at: dict[str, Any] = field(default_factory=dict)
    came: defaultdict[LogKey, Counter[Name]] = field(default_factory=lambda: defaultdict(Counter))
    skipped: defaultdict[LogKey, set[Name]] = field(default_factory=lambda: defaultdict(set))
    begun: dict[LogKey, tuple[int, int]] = field(default_factory=dict)


class Query:
    """A query that reads the batches of some log dirs, one micro-batch after the other. ``fleet``: agents that read them, None for none."""

    def __init__(self, log_dirs: list[Path], account: Account, fleet: Fleet | None) -> None:
        self._log_dirs, self._account, self._fleet = log_dirs, account, fleet
        self.told, self.saved = Told(), Told()
        self.restart()

    def restart(self, *, available_now: bool = False) -> None:
        if self._fleet is not None:
            self._fleet.restart()
        self.reader, self.available_now = self._new(), available_now
        if available_now:
            self.reader.prepareForTriggerAvailableNow()

    def step(self, budget: int | None, *, meanwhile: Callable[[], object] | None = None, again: bool = False) -> bool:
        """One micro-batch; whether there was one.

        Args:
            meanwhile: what happens after it was planned; then the query is killed, and reads it when it is back.
            again: all log dirs are there, and another process reads it too.
        """
        start = self.told.at
        try:
            end = self.reader.latestOffset(start, ALL if budget is None else ReadMaxBytes(budget))
        except AgentError:
            assert self.available_now, "who goes on waits for nobody"
            return False
        if end is start:
            return False
        self._plan(end)
        if meanwhile is not None:
            meanwhile()
        rows = read(self.reader, start, end)
        if again:
            assert read(self._new(), start, end) == rows
        for row in rows:
            self._take(row, end)
        self.told.at = json.loads(json.dumps(end))
        return True

    def _new(self) -> PublicStreamReader:
        if self._fleet is None:
            return stream(*self._log_dirs)
        return agents_stream(self._fleet.addresses, relation="batches")

    def _plan(self, end: dict[str, Any]) -> None:
        for broker, positions in end.items():
            for name, to in decode(positions).items():
                log = _key(int(broker), name, to)
                self._account.reached[log] = max(self._account.reached[log], to.next_offset)
                if to.begin != NOT_KNOWN:
                    life = self._account.lives[log]
                    assert life > self.told.begun.get(log, (0, 0))[1], f"{log!r} begins again"
                    self.told.begun[log] = to.begin, life

    def _take(self, row: dict[str, Any], end: dict[str, Any]) -> None:
        name = LogName(row["topic"], row["partition"])
        log = _key(row["broker"], name, decode(end[str(row["broker"])])[name])
        if row["kind"] == "batch":
            assert row["topic_id"] == log.topic_id
            self.told.came[log][row["base_offset"], row["leader_epoch"]] += 1
        elif row["kind"] == "skipped":
            low, high = row["base_offset"], row["last_offset"] + 1
            self.told.skipped[log] |= {
                each.name for each in self._account.owed[log].values() if low <= each.base_offset and each.next_offset <= high
            }
        else:
            raise AssertionError(row)


def _key(broker: int, name: LogName, position: Position) -> LogKey:
    return LogKey(broker, name.topic, name.partition, position.topic_id)


class BrokersAndQuery:
    """The brokers, and a query over all their log dirs. ``swapped``: two disks, each mounted where the other one was."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch | None = None) -> None:
        self.account = Account()
        self.cluster = Cluster(root, self.account)
        self.disks = [disk for broker in self.cluster.brokers.values() for disk in broker.disks]
        self.swapped: tuple[Disk, Disk] | None = None
        paths = [disk.directory.path for disk in self.disks]
        fleet = None if monkeypatch is None else Fleet(paths)
        if monkeypatch is not None and fleet is not None:
            fleet.connect(monkeypatch)
        self.query = Query(paths, self.account, fleet)
        self._times: set[int] = set()
        for (topic, number), on in TOPICS.items():
            self.cluster.create(topic, number, on)

    @property
    def whole(self) -> bool:
        return all(broker.whole for broker in self.cluster.brokers.values())

    # --- what happens to a partition

    def happen(self, what: str, topic: tuple[str, int], values: dict[str, Any]) -> None:
        """Rules choose by number what they do something to; where there is no such thing nothing happens."""
        self.cluster.now += 1
        getattr(self, what)(self.cluster.partitions[topic], **values)

    def append(self, partition: Partition, records: int, batches: int) -> None:
        self.cluster.append(partition, [batch(records, timestamp=self.cluster.now)] * batches)

    def append_and_replicate(self, partition: Partition, records: int, count: int) -> None:
        self.append(partition, records, 3)
        self.replicate(partition, count)

    def replicate(self, partition: Partition, count: int) -> None:
        for broker in partition.replicas:
            self.cluster.replicate(partition, broker, count)

    def roll(self, partition: Partition, place: int) -> None:
        replica = _replica(partition, place)
        if not replica.disk.away:
            replica.log.roll()

    def retain(self, partition: Partition, place: int, count: int) -> None:
        replica = _replica(partition, place)
        if not replica.disk.away:
            log = replica.log
            log.delete_records(max(log.log_start_offset, log.segments[min(count, len(log.segments) - 1)].base_offset))
            log.delete_old_segments(self.cluster.now)
            log.unlink_deleted(self.cluster.now + count * 40_000)

    def delete_records(self, partition: Partition, place: int, kept: int, written: bool) -> None:
        """Also in the middle of a segment. ``written``: the broker has written its checkpoint since."""
        replica = _replica(partition, place)
        if not replica.disk.away:
            replica.log.delete_records(max(replica.log.log_start_offset, replica.log.log_end_offset - kept))
            if written:
                replica.disk.directory.write_log_starts()

    def elect(self, partition: Partition, place: int) -> None:
        self.cluster.elect(partition, _broker(partition, place))

    def elect_unclean(self, partition: Partition, who: list[tuple[int, int, int]]) -> None:
        """One replica after the other leads without what the one before it has written, and is followed for a while."""
        for place, batches, count in who:
            self.elect(partition, place)
            self.append(partition, 1, batches)
            self.replicate(partition, count)

    def lose_tail(self, partition: Partition, place: int, batches: int) -> None:
        """A broker's machine dies before its page cache is written: its last batches are gone, and no epoch says so."""
        broker, replica = _broker(partition, place), _replica(partition, place)
        entries = replica.log.active.entries
        if replica.disk.away or not entries:
            return
        offset = entries[max(0, len(entries) - batches)].base_offset
        replica.log.truncate(offset, self.cluster.now)
        replica.log.log_end_offset = offset
        self.account.truncated(partition.log_id(broker), offset)
        if broker == partition.leader:
            self.cluster.elect(partition, broker)

    def move(self, partition: Partition, place: int) -> None:
        self.cluster.move(partition, _broker(partition, place))

    def reassign(self, partition: Partition, place: int) -> None:
        leaves, others = _broker(partition, place), sorted(set(self.cluster.brokers) - set(partition.replicas))
        if leaves != partition.leader and others and self.whole:
            self.cluster.reassign(partition, leaves, others[0])

    def make_anew(self, partition: Partition) -> None:
        if self.whole:
            self.cluster.delete(partition)
            self.cluster.create(partition.topic, partition.number, TOPICS[partition.topic, partition.number])

    # --- what happens to the query and the disks

    def step(self, budget: int | None, meanwhile: Callable[[], object] | None = None) -> bool:
        def happen() -> None:
            assert meanwhile is not None
            with self._exchanged():
                meanwhile()
                self._date()

        self._date()
        with self._exchanged():
            return self.query.step(budget, meanwhile=happen if meanwhile else None, again=self.whole)

    def restart(self, *, available_now: bool = False) -> None:
        """A query that begins wants all its log dirs."""
        if self.whole:
            self.query.restart(available_now=available_now)
            self.step(None)

    def settle(self) -> None:
        for disk in self.disks:
            if disk.away:
                disk.bring_back()
        self._rest()
        if self.query.available_now:  # it ends before what came later
            self.query.restart()
            self._rest()
        for broker in self.cluster.brokers:
            for log, replica in self.cluster.logs(broker).items():
                self._check(log, replica)

    def _rest(self) -> None:
        """Nothing is new twice: an agent that has another broker's log dir than before is asked for it at the next look."""
        steps = [self.step(None)]
        while any(steps[-2:]) or len(steps) < 2:
            assert len(steps) < ROUNDS, "the query never rests"
            steps.append(self.step(None))

    def _check(self, log: LogKey, replica: Replica) -> None:
        told, account = self.query.told, self.account
        (begin, _), start = told.begun[log], replica.log.log_start_offset
        served = {each.name for each in replica.written() if each.next_offset > start}
        for name, each in account.owed[log].items():
            known = name in told.came[log] or name in told.skipped[log] or each.base_offset < begin
            assert known or (name in account.in_place[log] and name not in served), f"{log!r}: {each} never came: {told.at}"
        assert told.came[log] <= account.written[log], f"{log!r}: {told.came[log] - account.written[log]} came too often"

    def _date(self) -> None:
        """Give each directory that was changed a time of its own, long ago: a real one has it when nothing has happened for seconds."""
        for broker in self.cluster.brokers:
            for replica in self.cluster.logs(broker).values():
                if replica.log.directory.stat().st_mtime_ns not in self._times:
                    self._times.add(time := len(self._times))
                    os.utime(replica.log.directory, ns=(time, time))

    @contextmanager
    def _exchanged(self) -> Iterator[None]:
        """Disks lie where they are mounted as long as the query looks, and where they belong as long as brokers write."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    def _exchange(self) -> None:
        if self.swapped and not any(disk.away for disk in self.swapped):
            one, other = (disk.directory.path for disk in self.swapped)
            one.rename(between := one.with_name("between"))
            other.rename(one)
            between.rename(other)


def _broker(partition: Partition, place: int) -> int:
    return list(partition.replicas)[place % len(partition.replicas)]


def _replica(partition: Partition, place: int) -> Replica:
    return partition.replicas[_broker(partition, place)]


topics = st.sampled_from(sorted(TOPICS))
places = st.integers(0, 2)
budgets = st.sampled_from([None, None, 1, 100, 300, 3000])
HAPPENINGS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "append": {"records": st.integers(1, 3), "batches": st.integers(1, 6)},
    "append_and_replicate": {"records": st.integers(1, 3), "count": st.integers(1, 9)},
    "replicate": {"count": st.integers(1, 20)},
    "roll": {"place": places},
    "retain": {"place": places, "count": st.integers(1, 3)},
    "delete_records": {"place": places, "kept": st.integers(0, 9), "written": st.booleans()},
    "elect": {"place": places},
    "elect_unclean": {"who": st.lists(st.tuples(places, st.integers(1, 4), st.integers(0, 6)), min_size=1, max_size=3)},
    "lose_tail": {"place": places, "batches": st.integers(1, 6)},
    "move": {"place": places},
    "reassign": {"place": places},
    "make_anew": {},
}
"""What may happen to a partition, also between the plan of a micro-batch and its reading."""

Happening = tuple[str, tuple[str, int], dict[str, Any]]
happenings: st.SearchStrategy[list[Happening]] = st.lists(
    st.one_of(*(st.tuples(st.just(what), topics, st.fixed_dictionaries(values)) for what, values in HAPPENINGS.items())),
    min_size=1,
    max_size=6,
)


class Streams(RuleBasedStateMachine):
    """A failure is printed as a program of these rules."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch | None = None) -> None:
        super().__init__()
        self._root = scratch()
        self.world = BrokersAndQuery(Path(self._root.name), monkeypatch)

    def teardown(self) -> None:
        try:
            self.world.settle()
        finally:
            self.world.cluster.close()
            self._root.cleanup()

    @rule(what=happenings)
    def happen(self, what: list[Happening]) -> None:
        for each in what:
            self.world.happen(*each)

    @rule(budget=budgets, before=happenings, after=happenings)
    def step_between(self, budget: int | None, before: list[Happening], after: list[Happening]) -> None:
        self.happen(before)
        self.world.step(budget)
        self.happen(after)

    @rule(disk=st.integers(0, 4), how=st.sampled_from(["gone", "unmounted"]))
    def take_away(self, disk: int, how: str) -> None:
        if self.world.query.told.at and not self.world.disks[disk].away:
            self.world.disks[disk].take_away(how)

    @rule()
    def bring_back(self) -> None:
        for disk in self.world.disks:
            if disk.away:
                disk.bring_back()

    @rule(one=st.integers(0, 4), other=st.integers(0, 4))
    def swap(self, one: int, other: int) -> None:
        self.world.swapped = None if one == other else (self.world.disks[one], self.world.disks[other])

    @rule(budget=budgets)
    def step(self, budget: int | None) -> None:
        self.world.step(budget)

    @rule(budget=budgets, before=happenings, meanwhile=happenings)
    def step_held_up(self, budget: int | None, before: list[Happening], meanwhile: list[Happening]) -> None:
        self.happen(before)
        self.world.step(budget, lambda: self.happen(meanwhile))

    @rule(available_now=st.booleans())
    def restart(self, available_now: bool) -> None:
        self.world.restart(available_now=available_now)

    @rule()
    def save_checkpoint(self) -> None:
        self.world.query.saved = deepcopy(self.world.query.told)

    @rule()
    def restore_checkpoint(self) -> None:
        if self.world.whole:
            self.world.query.told = deepcopy(self.world.query.saved)
            self.world.restart()

    @rule()
    def settle(self) -> None:
        self.world.settle()


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600 if EXHAUSTIVE else 1800)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("over", ["log dirs", "agents"])
def test_whatever_happens_every_batch_comes_once_or_is_said_to_be_gone(part: int, over: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run_state_machine_as_test(
        Streams if over == "log dirs" else partial(Streams, monkeypatch),  # type: ignore[arg-type]
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=50,
            deadline=None,
            print_blob=True,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
