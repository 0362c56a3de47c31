"""A job and log dirs say the same of every group, in every field of every message: over random histories of a broker."""

import random
import tempfile
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.protocol.group_json import GroupDetail
from streaming.cluster.consumers.group_tracker import GroupTracker
from streaming.cluster.verdicts import conditions
from streaming.cluster.view.family import EVERYTHING
from streaming.common.settings import Settings
from streaming.simulator.batch_writer import Batch, Record
from streaming.simulator.coordinators import SimulatedMember, classic_group_record, offset_commit_record
from streaming.simulator.log import PartitionLog
from streaming.terminal.offline.group_reading import read_groups
from tests.builders import NOW, abort, batch, commit, log_dir, partition
from tests.file_times import written_at
from tests.group_answers import detailed
from tests.worlds.group_job import HOUR, SETTINGS, reported_by_job
from tests.worlds.seeds import seeds

WATCHED = ("consumed_rate", "appended_rate", "lost_lately_records", "lost_lately_offsets", "lost_lately_ms")
"""What only who watches can know: log dirs are looked at once."""


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
        twice = [self.append, self.transact, self.commit]
        self.chance.choice([*twice, *twice, self.roll, self.delete, self.commit_in_one, self.member])(log)

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
        group, offset = self.chance.randrange(3), self.chance.randrange(self.offsets[log] + 1)
        record = offset_commit_record(f"g{group}", "orders", log, offset, self.now_ms)
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


def test_a_job_and_log_dirs_say_the_same_in_every_field(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "PART_OF_LEFT", 0)  # a job that has just begun does not know since when a group stands still
    for seed in seeds(range(10), range(48)):
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


@pytest.mark.parametrize("seed", seeds(range(2), range(6)))
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
