"""Commits of a history that has ended: what log dirs show of it, and the command that skips no record.

The script of each row: `N@T` a commit of offset N at minute T, `N@T/E` with leader epoch E, `-@T` its tombstone; `cut=N` the log loses what
is from N on, `lead=E@T` leader epoch E begins, `more=N` so many records are appended, `old=N` with old timestamps; `anew@T` the topic is
deleted and made anew; `snapshot`: the metadata log gets one; `quiet`: it has nothing else any more; `start=N`: what is before is deleted.
"""

import re
from pathlib import Path
from uuid import UUID

import pytest

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.protocol.group_json import GroupDetail
from streaming.common.query_checkpoints import QueryCheckpoint
from streaming.common.settings import Settings
from streaming.simulator.batch_writer import Batch, Record
from streaming.simulator.coordinators import offset_commit_record
from streaming.simulator.log import PartitionLog
from streaming.simulator.metadata_writer import ReplicaSet, partition_change_record, partition_record, topic_record
from streaming.terminal.offline.group_reading import read_groups
from tests.builders import NOW, batch, log_dir, partition
from tests.elections import MetadataCopy
from tests.group_answers import detailed, verdicts
from tests.queries.written import Written
from tests.simulated import remove_topic_record
from tests.tables import each_row
from tests.worlds.group_job import reported_by_job

BEGAN = NOW - 3_600_000
_WORD = re.compile(r"(?P<offset>-?\d*)@(?P<at>\d+)(?:/(?P<epoch>\d+))?")


def minute(number: str | int) -> int:
    return BEGAN + 60_000 * int(number)


class World:
    """A group that reads one partition of a topic that is as old as the cluster."""

    def __init__(self, path: Path) -> None:
        self.disk = log_dir(path)
        self.coordinator = partition(self.disk, "__consumer_offsets", topic_id=7)
        self.metadata = MetadataCopy(self.disk.path)
        self.topic, self.epoch, self.dated = 8, 0, True
        self.log = self._made("0", topic_record("__consumer_offsets", UUID(int=7)), self._registered(7))

    def play(self, script: str) -> None:
        for word in script.split():
            name, _, value = word.partition("=")
            told = _WORD.fullmatch(word)
            if told:
                self._commit(told["offset"], minute(told["at"]), told["epoch"])
            elif word.startswith("anew@"):
                self._anew(word.removeprefix("anew@"))
            elif name == "lead":
                epoch, _, at = value.partition("@")
                self._write(at, partition_change_record(0, UUID(int=self.topic), leader=1))
                self.epoch = int(epoch)
                self.log._write_leader_epochs(
                    [*self.log.leader_epochs, (self.epoch, self.log.log_end_offset)]
                )  # as who begins to lead does
            elif name == "cut":
                self.log.truncate(int(value))
            elif name == "start":
                self.log.delete_records(int(value))
            elif name in ("more", "old"):
                stamp = NOW - 1000 if name == "more" else BEGAN - 3_600_000
                self.log.append(*(batch(1, timestamp=stamp) for _ in range(int(value))), leader_epoch=self.epoch)
            else:
                assert word in ("snapshot", "quiet")
                self.metadata.snapshot([*self._known(), topic_record("__consumer_offsets", UUID(int=7)), self._registered(7)])
                self.dated = word == "snapshot"
        if not self.dated:
            self.metadata.forget_log()
        self.disk.write_high_watermarks()
        self.disk.write_log_starts()

    def read(self, name: str, settings: Settings = Settings()) -> GroupDetail:  # noqa: B008 - read only
        (group,) = detailed(read_groups(open_log_dirs([self.disk.path]), [name], settings, NOW)).groups
        return group

    def _registered(self, topic: int) -> bytes:
        epoch = self.epoch if topic == self.topic else 0
        directories = (UUID(int=5),)
        return partition_record(
            ReplicaSet(
                partition=0, topic_id=UUID(int=topic), replicas=(1,), isr=(1,), leader=1, leader_epoch=epoch, directories=directories
            )
        )

    def _known(self) -> list[bytes]:
        return [topic_record("orders", UUID(int=self.topic)), self._registered(self.topic)]

    def _write(self, at: str, *values: bytes) -> None:
        self.metadata.write(values, minute(at))

    def _made(self, at: str, *others: bytes) -> PartitionLog:
        self._write(at, *others, *self._known())
        return partition(self.disk, "orders", topic_id=self.topic)

    def _anew(self, at: str) -> None:
        self._write(at, remove_topic_record(UUID(int=self.topic)))
        self.log.directory.rename(self.log.directory.with_name("orders-0.0123456789abcdef0123456789abcdef-delete"))
        self.disk.partitions.remove(self.log)
        self.topic, self.epoch = self.topic + 1, 0
        self.log = self._made(at)

    def _commit(self, offset: str, at: int, epoch: str | None) -> None:
        gone = offset == "-"
        record = offset_commit_record(
            "g", "orders", 0, 0 if gone else int(offset), at, topic_id=UUID(int=self.topic), leader_epoch=int(epoch or -1)
        )
        record = Record(record.key, None, at) if gone else record
        self.coordinator.append(Batch(records=(record,)))


ROWS = {
    # the group has read what is there
    "valid": ("more=9 7@1", "fine", "", ""),
    "valid in the epoch that is the last": ("more=9 lead=1@2 more=3 10@3/1", "fine", "", ""),
    "below the cut": ("more=9 3@1/0 cut=5 lead=1@2 more=6", "fine", "", ""),
    "where the cut is": ("more=9 5@1/0 cut=5 lead=1@2 more=6", "fine", "", ""),
    "after an orderly election": ("more=9 9@1 lead=1@2 more=6", "fine", "", ""),
    # the log was cut off, and has grown over the offset
    "inside by its epoch": ("more=9 8@1/0 cut=5 lead=1@2 more=6", "other_history", "3 records are from there on", "--to-offset 5"),
    "inside by its time": ("more=9 8@1 cut=5 lead=1@2 more=6", "other_history", "leader epoch 1 began at", "--to-offset 5"),
    "before a snapshot": ("more=9 8@1 cut=5 lead=1@2 more=6 snapshot", "other_history", "leader epoch 1 began at", "--to-offset 5"),
    "read anew since": ("more=9 8@1 cut=5 lead=1@2 more=6 8@3", "fine", "", ""),
    "its epoch decides, not its time": ("more=9 cut=5 lead=1@2 more=6 8@3/0", "other_history", "3 records are", "--to-offset 5"),
    "an epoch of long ago, as some clients commit": ("more=9 cut=5 lead=1@2 more=6 8@13/0", "fine", "", ""),
    "nothing shows when": ("more=9 8@1 cut=5 lead=1@2 more=6 quiet", "fine", "", ""),
    "its epoch without a time": ("more=9 8@1/0 cut=5 lead=1@2 more=6 quiet", "other_history", "leader epoch 1 began;", "--to-offset 5"),
    "the first epoch after it": ("more=9 8@1/0 cut=5 lead=1@2 more=1 lead=2@3 more=6", "other_history", "3 records", "--to-offset 5"),
    "cut at what is deleted by now": ("more=9 8@1/0 cut=5 lead=1@2 more=6 start=6", "other_history", "2 records", "--to-earliest"),
    # beyond the end
    "beyond, cut off": ("more=9 9@1 cut=5 lead=1@2 more=2", "beyond_end", "2 records are from there on", "--to-offset 5"),
    "beyond, cut off, empty": ("more=9 9@1/0 cut=5 lead=1@2", "beyond_end", "none is skipped", "--to-latest"),
    "beyond, made anew": ("more=9 9@1 -@2 anew@2 more=4 9@3", "beyond_end", "made anew at", "--to-earliest"),
    "made anew, then cut off": (
        "more=9 9@1 -@2 anew@2 more=9 8@3/0 cut=5 lead=1@4 more=6",
        "other_history",
        "cut off at 5",
        "--to-offset 5",
    ),
    "beyond, for no reason": ("more=9 99@1", "beyond_end", "9 records are in the log", "--to-earliest"),
    "beyond, nothing there": ("more=9 start=9 99@1", "beyond_end", "none is skipped", "--to-latest"),
}


FIELDS = "verdict", "severity", "history", "history_epoch", "history_ms", "go_on_at", "passed_records"


@each_row(("script", "verdict", "text", "command"), [pytest.param(*row, id=name) for name, row in ROWS.items()])
def test_consumers_of_an_ended_history_go_on_where_nothing_is_skipped(
    tmp_path_factory: pytest.TempPathFactory, script: str, verdict: str, text: str, command: str
) -> None:
    path = tmp_path_factory.mktemp("disk")
    world = World(path)
    world.play(script)
    group = world.read("g")
    found = group.findings[0]
    assert verdicts(group)[:1] == [verdict], found.text
    assert text in found.text, found.text
    assert command in found.command if command else found.command == "", found.command
    (of,), (by_job,) = group.partitions, reported_by_job(world.disk.path, path / "journal", NOW)["g"].partitions
    assert [getattr(by_job, each) for each in FIELDS] == [getattr(of, each) for each in FIELDS]


@each_row(
    ("script", "verdict", "text"),
    [
        ("more=9", "fine", ""),
        (
            "more=9 anew@2 more=9",
            "other_history",
            "made anew at 2023-11-14T21:15:20Z (58m ago); 7 records are in the log, none of which it has",
        ),
        ("more=9 anew@2 more=5", "other_history", "5 records are in the log, none of which it has read"),
        ("anew@0 more=9", "fine", ""),
        ("more=9 anew@2 old=1 more=8", "fine", ""),  # nothing shows that it is younger than what it holds
    ],
)
def test_a_checkpoint_that_is_older_than_its_topic_is_of_another_one(
    tmp_path_factory: pytest.TempPathFactory, script: str, verdict: str, text: str
) -> None:
    path = tmp_path_factory.mktemp("disk")
    world, written = World(path), Written(path / "lake")
    written.both(7, {"orders": {0: 7}}, at=minute(1) / 1000)
    world.play(script)
    found = world.read("spark:lake", Settings(spark_checkpoints=(QueryCheckpoint("lake", str(path / "lake")),))).findings
    assert verdict in {each.verdict for each in found}
    assert any(text in each.text for each in found), found
    assert "another cluster" not in "".join(each.text for each in found)
