"""A job and log dirs say the same of every group, in every field of every message: over random histories of a broker."""

import random
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.protocol.group_json import BatchCheck, GroupDetail
from streaming.broker.protocol.group_messages import POSITIONS, BatchRequest, GroupsRequest, PositionsRequest, RecordsRequest
from streaming.broker.protocol.group_stream import GroupsAnswer, RecordsAnswer, read_records, read_table
from streaming.broker.protocol.group_stream import read_groups as read_answer
from streaming.cluster.consumers.group_calls import ask_agents
from streaming.cluster.consumers.group_details import GroupDetails
from streaming.cluster.consumers.group_isolation import LOG_START_MS
from streaming.cluster.consumers.group_partitions import GroupPartitions
from streaming.cluster.consumers.group_rounds import GroupRounds, Surroundings
from streaming.cluster.consumers.group_snapshot import GroupBoard
from streaming.cluster.consumers.group_tracker import GroupTracker
from streaming.cluster.verdicts import group_stands
from streaming.cluster.verdicts.group_judge import judge_groups
from streaming.cluster.view.export import EVERYTHING
from streaming.cluster.view.transaction_columns import READ_AFTER_MS
from streaming.cluster.view.view import view
from streaming.common.settings import Settings
from streaming.pages.api.listed_groups import GroupResults, ListedGroups
from streaming.simulator.batch_writer import Batch, Record
from streaming.simulator.coordinator_records import offset_commit_record
from streaming.simulator.group_writer import SimulatedMember, classic_group_record
from streaming.simulator.log import PartitionLog
from streaming.terminal.offline.group_reading import read_groups
from tests.agents import Agent
from tests.builders import NOW, abort, batch, commit, log_dir, partition
from tests.file_times import written_at
from tests.group_answers import detailed
from tests.one_agent_job import OneAgentJob

HOUR = 3_600_000
SETTINGS = Settings(broker_config={"log.retention.ms": str(30 * HOUR)}, group_stopped_after=timedelta(days=10_000))
STOPPED_AFTER_MS = SETTINGS.group_stopped_after // timedelta(milliseconds=1)
WATCHED = ("consumed_rate", "appended_rate", "lost_lately_records", "lost_lately_offsets", "lost_lately_ms")
"""What only who watches can know: log dirs are looked at once."""


class Client:
    """The calls of a client, without a wire."""

    def __init__(self, agent: Agent, now_ms: int) -> None:
        assert agent.service.about_groups is not None
        self._answers = replace(agent.service.about_groups, clock=lambda: now_ms / 1000)

    def groups(self, request: GroupsRequest | None = None) -> GroupsAnswer:
        return read_answer(_sent(self._answers.groups(request or GroupsRequest())))

    def records(self, request: RecordsRequest | None = None) -> RecordsAnswer:
        return read_records([*_sent(self._answers.records(request or RecordsRequest()))])

    def positions(self, asked: pa.Table) -> pa.Table:
        (message,) = _sent(self._answers.positions(PositionsRequest.of(asked)))
        return read_table(message, POSITIONS)

    def batch(self, request: BatchRequest) -> BatchCheck:
        return self._answers.check_batch(request)


def _sent(messages: Iterable[bytes | pa.Buffer]) -> Iterator[bytes]:
    return (bytes(memoryview(each)) for each in messages)


def reported_by_job(
    path: Path | Sequence[Path], scratch: Path, now_ms: int, tracker: GroupTracker | None = None, settings: Settings = SETTINGS
) -> dict[str, GroupDetail]:
    """What a job says, with an agent and its ladders, by all of its parts but Spark: one that has just begun, or has seen what its
    tracker has.
    """
    agent = Agent(*([path] if isinstance(path, Path) else path), journal=scratch)
    job = OneAgentJob(agent, settings)
    agent.count()
    agent.follow_groups()
    job.round(now_ms)
    table = job.table
    board, clock = GroupBoard(), lambda: now_ms / 1000
    around = Surroundings(
        agents=lambda: {"a1": Client(agent, now_ms)}, cluster_topics=lambda: None, clock=clock, consumer=lambda: "job", monotonic=clock
    )
    rounds = GroupRounds(table, board, tracker or GroupTracker(EVERYTHING, STOPPED_AFTER_MS), around)
    for read_ms in (now_ms, now_ms + max(READ_AFTER_MS, LOG_START_MS)):  # what offsets prove, they do when the agent has looked again
        table.set_reading({"a1": read_ms / 1000})
        rounds.round()
    table.set_reading({"a1": now_ms / 1000})
    groups = board.latest(now_ms)
    assert groups is not None
    snapshot = table.snapshot(now_ms / 1000)
    answers = ListedGroups(
        judged=judge_groups(groups, now_ms),
        results=GroupResults(groups, EVERYTHING.has_consumer),
        messages=lambda: GroupPartitions(groups, view(snapshot), snapshot.topic_names),
        details=lambda messages: GroupDetails(messages, {"a1": Client(agent, now_ms)}, ask_agents),
    )
    found = {name: answers.detail(item) for item, name in enumerate(answers.totals.names)}
    rounds.close()
    agent.close()
    return found


@dataclass
class History:
    """A random history of two logs and of some groups that read them; ``clocks``: by how much those of producers are ahead."""

    chance: random.Random
    orders: list[PartitionLog]
    coordinator: PartitionLog
    offsets: list[int]
    open: dict[tuple[int, int], int]
    epochs: dict[int, int]
    now_ms: int = NOW - 40 * HOUR
    clocks: tuple[int, ...] = (0,)

    @property
    def stamp_ms(self) -> int:
        return self.now_ms + self.chance.choice(self.clocks)

    def step(self) -> None:
        self.now_ms += self.chance.randrange(4 * HOUR)
        log = self.chance.randrange(len(self.orders))
        kinds = [
            self.append,
            self.append,
            self.transact,
            self.transact,
            self.roll,
            self.delete,
            self.commit,
            self.commit,
            self.commit_in_one,
        ]
        self.chance.choice([*kinds, self.member])(log)

    def append(self, log: int) -> None:
        records = self.chance.randrange(1, 5)
        self.orders[log].append(batch(records, timestamp=self.stamp_ms))
        self.offsets[log] += records
        written_at(self.orders[log], self.now_ms)

    def transact(self, log: int) -> None:
        producer = self.chance.randrange(2)
        epoch = self.epochs.get(producer, 0)
        if (log, producer) in self.open and self.chance.random() < 0.6:
            self.open.pop((log, producer))
            self.epochs[producer] = epoch + 1
            self.orders[log].append(self.chance.choice([commit, abort])(producer, epoch=epoch + 1))
            self.offsets[log] += 1
        elif not any(mine == producer for _, mine in self.open if _ != log):
            records = self.chance.randrange(1, 4)
            options = {"producer": producer, "epoch": epoch, "transactional": True, "timestamp": self.stamp_ms}
            self.orders[log].append(batch(records, **options))  # type: ignore[arg-type]
            self.open[log, producer] = 1
            self.offsets[log] += records
            written_at(self.orders[log], self.now_ms)

    def roll(self, log: int) -> None:
        if self.orders[log].segments[-1].entries:
            self.orders[log].roll()

    def delete(self, log: int) -> None:
        if self.chance.random() < 0.3:
            self.orders[log].delete_records(self.chance.randrange(self.offsets[log] + 1))

    def commit(self, log: int) -> None:
        offset = self.chance.randrange(self.offsets[log] + 2)
        record = offset_commit_record(f"g{self.chance.randrange(3)}", "orders", log, offset, self.now_ms)
        self.coordinator.append(Batch(records=(record,)))

    def commit_in_one(self, log: int) -> None:
        """Commit in a transaction, which may stay open."""
        producer, epoch = 7, self.epochs.get(7, 0)
        record = offset_commit_record(
            f"g{self.chance.randrange(3)}", "orders", log, self.chance.randrange(self.offsets[log] + 1), self.now_ms
        )
        options = {"producer_id": producer, "producer_epoch": epoch, "base_sequence": 0, "transactional": True}
        self.coordinator.append(Batch(records=(record,), **options))  # type: ignore[arg-type]
        if self.chance.random() < 0.7:
            self.epochs[producer] = epoch + 1
            self.coordinator.append(self.chance.choice([commit, abort])(producer, epoch=epoch + 1))

    def member(self, log: int) -> None:
        """A group has members, or loses them."""
        members = [SimulatedMember("m", "client", (log,))] * self.chance.randrange(2)
        self.coordinator.append(Batch(records=(classic_group_record(f"g{self.chance.randrange(3)}", 4, "orders", members, self.now_ms),)))


def grown(path: Path, seed: int) -> int:
    """Write a random history below a directory; returns the time of its last step."""
    disk = log_dir(path)
    chance = random.Random(seed)
    logs = [partition(disk, "orders", number, topic_id=8) for number in range(2)]
    clocks = random.Random(-seed).choice([(0,), (0,), (-24 * HOUR,), (24 * HOUR,), (0, -24 * HOUR, 24 * HOUR)])
    history = History(chance, logs, partition(disk, "__consumer_offsets", topic_id=7), [0, 0], {}, {}, clocks=clocks)
    for log in range(2):
        history.append(log)
        history.commit(log)
    for _ in range(chance.randrange(4, 30)):
        history.step()
    disk.write_high_watermarks()
    disk.write_log_starts()
    return history.now_ms


def comparable(group: GroupDetail) -> Any:
    """All fields, without those that only who watches knows."""
    fields = asdict(group)
    for each in fields["partitions"]:
        for name in WATCHED:
            assert each.pop(name) <= 0
        if each["held_by"]:
            each["held_by"].pop("last_append_ms")  # by the time of the file, for who watches it
    return fields


HISTORIES = 12


@pytest.mark.parametrize("part", range(4))
def test_a_job_and_log_dirs_say_the_same_in_every_field(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_stands, "PART_OF_LEFT", 0)  # a job that has just begun does not know since when a group stands still
    for seed in range(part * HISTORIES, (part + 1) * HISTORIES):
        with tempfile.TemporaryDirectory() as made:
            last_ms = grown(Path(made), seed)
            disk = next(Path(made).iterdir())
            now_ms = max(last_ms, NOW + random.Random(seed).randrange(20 * HOUR))  # a job takes no stamp of a time to come for unknown
            alone = detailed(read_groups(open_log_dirs([disk]), (), SETTINGS, now_ms)).groups
            reported = reported_by_job(disk, Path(made) / "journal", now_ms)
            assert {name: comparable(each) for name, each in reported.items()} == {
                each.summary.group: comparable(each) for each in alone
            }, seed


@dataclass
class WatchedHistory:
    """A random history of one log and one group, in which transactions of commits end later and some records are stamped late, or ahead."""

    chance: random.Random
    orders: PartitionLog
    coordinator: PartitionLog
    now_ms: int
    offset: int = 0
    epoch: int = 0
    open: bool = False

    def step(self) -> None:
        self.chance.choice((self.append, self.commit, self.transact, self.transact))()

    def append(self) -> None:
        ahead_ms = self.chance.choice((0, 0, -8 * HOUR, 8 * HOUR))
        self.orders.append(batch(1, timestamp=self.now_ms + ahead_ms))
        written_at(self.orders, self.now_ms)
        self.offset += 1

    def commit(self) -> None:
        self.coordinator.append(Batch(records=(self._committed(),)))

    def transact(self) -> None:
        if self.open:
            end = self.chance.choice((commit, commit, abort))
            self.epoch += 1
            self.coordinator.append(end(7, epoch=self.epoch, timestamp=self.now_ms))
        else:
            options = {"producer_id": 7, "producer_epoch": self.epoch, "base_sequence": 0, "transactional": True}
            self.coordinator.append(Batch(records=(self._committed(),), **options))  # type: ignore[arg-type]
        self.open = not self.open

    def _committed(self) -> Record:
        return offset_commit_record("g", "orders", 0, self.chance.randrange(self.offset + 1), self.now_ms)


STEPS = 8


@pytest.mark.parametrize("seed", range(6))
def test_a_job_that_watches_and_log_dirs_say_the_same_of_since_when_a_group_stands_still(tmp_path: Path, seed: int) -> None:
    chance, disk = random.Random(seed), log_dir(tmp_path)
    history = WatchedHistory(chance, partition(disk, "orders", topic_id=8), partition(disk, "__consumer_offsets", topic_id=7), NOW)
    history.append()
    history.commit()
    tracker, settings = GroupTracker(EVERYTHING, 1_000), Settings(group_stopped_after=timedelta(seconds=1))
    for step in range(STEPS):
        for moment in ("before", "after"):  # so a job knows exactly when something happened
            disk.write_high_watermarks()
            disk.write_log_starts()
            (watched,) = reported_by_job(disk.path, tmp_path / f"{step} {moment}", history.now_ms, tracker)["g"].partitions
            (group,) = detailed(read_groups(open_log_dirs([disk.path]), (), settings, history.now_ms)).groups
            (alone,) = group.partitions
            if alone.undated:
                assert alone.stopped_since_ms < 0 or 0 <= watched.stopped_since_ms <= alone.stopped_since_ms, (step, moment)
                assert watched.stopped_since_ms < 0 or alone.verdict != "fine", (step, moment)
            else:
                assert alone.stopped_since_ms == watched.stopped_since_ms, (step, moment)
            if moment == "before":
                history.step()
        history.now_ms += chance.randrange(2_000, HOUR)
