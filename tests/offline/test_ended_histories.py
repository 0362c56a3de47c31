"""Commits of a history that has ended: what log dirs show of it, and the command that skips no record.

The script of each row: `N@T` a commit of offset N at minute T, `N@T/E` with leader epoch E, `-@T` its tombstone; `join@T`, `leave@T`: the
group has a member, or none any more; `cut=N` the log loses what is from N on, `lead=E@T` leader epoch E begins by an orderly election,
`unclean=E@T` by an unclean one, `more=N` so many records are appended, `old=N` with old timestamps; `anew@T` the topic is deleted and made
anew; `snapshot`: the metadata log gets one; `quiet`: it has nothing else any more; `start=N`: what is before is deleted.
"""

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import UUID

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.protocol.group_json import GroupDetail
from streaming.common.query_checkpoints import QueryCheckpoint
from streaming.common.settings import Settings
from streaming.simulator.batch_writer import Batch, Record
from streaming.simulator.coordinators import SimulatedMember, classic_group_record, offset_commit_record
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

_RESET = re.compile(r"--reset-offsets --to-(?P<where>earliest|latest|offset (?P<offset>\d+)) --execute")


def minute(number: str | int) -> int:
    return BEGAN + 60_000 * int(number)


class World:
    """A group that reads one partition of a topic that is as old as the cluster."""

    def __init__(self, path: Path) -> None:
        self.disk = log_dir(path)
        self.coordinator = partition(self.disk, "__consumer_offsets", topic_id=7)
        self.metadata = MetadataCopy(self.disk.path)
        self.topic, self.epoch, self.dated, self.generation = 8, 0, True, 0
        self.log = self._made("0", topic_record("__consumer_offsets", UUID(int=7)), self._registered(7))

    def play(self, script: str) -> None:
        for word in script.split():
            name, _, value = word.partition("=")
            told = _WORD.fullmatch(word)
            if told:
                self._commit(told["offset"], minute(told["at"]), told["epoch"])
            elif word.startswith("anew@"):
                self._anew(word.removeprefix("anew@"))
            elif name in ("lead", "unclean"):
                self._elect(*value.split("@"), recovering=True if name == "unclean" else None)
            elif word.startswith(("join@", "leave@")):
                self._members(minute(word.partition("@")[2]), int(word.startswith("join")))
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
        self.log.directory.rename(self.log.directory.with_name(f"orders-0.{self.topic:032x}-delete"))
        self.disk.partitions.remove(self.log)
        self.topic, self.epoch = self.topic + 1, 0
        self.log = self._made(at)

    def _elect(self, epoch: str, at: str, *, recovering: bool | None) -> None:
        self._write(at, partition_change_record(0, UUID(int=self.topic), leader=1, recovering=recovering))
        self._write(at, partition_change_record(0, UUID(int=self.topic), isr=(1,), recovering=False))
        self.epoch, end = int(epoch), self.log.log_end_offset
        before = [each for each in self.log.leader_epochs if each[1] < end]  # of epochs without a record, the last one is left
        self.log._write_leader_epochs([*before, (self.epoch, end)])  # as who begins to lead does

    def _members(self, at: int, count: int) -> None:
        self.generation += 1
        members = [SimulatedMember(member_id=f"m-{number}", client_id="c", partitions=(0,)) for number in range(count)]
        self.coordinator.append(Batch(records=(classic_group_record("g", self.generation, "orders", members, at),)))

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
    "set by hand before the data, then an orderly election": ("more=5 8@1 lead=1@2 more=6", "fine", "", ""),
    "restored with an epoch, then an orderly election": ("join@0 leave@0 more=5 11@1/0 lead=1@2 more=6", "fine", "", ""),
    "set by hand, by its time": ("more=9 8@1 cut=5 lead=1@2 more=6", "fine", "", ""),
    "read again since": ("more=9 8@1 cut=5 unclean=1@2 more=6 8@3", "fine", "", ""),
    "an epoch of long ago, as some clients commit": ("more=9 cut=5 unclean=1@2 more=6 8@13/0", "fine", "", ""),
    "nothing shows when": ("more=9 8@1 cut=5 unclean=1@2 more=6 quiet", "fine", "", ""),
    # an unclean election cut off what it had read, and the log has grown over the offset
    "inside by its epoch": ("more=9 8@1/0 cut=5 unclean=1@2 more=6", "other_history", "3 records are from there on", "--to-offset 5"),
    "inside by its time": ("join@0 more=9 8@1 cut=5 unclean=1@2 more=6", "other_history", "leader epoch 1 began at", "--to-offset 5"),
    "before a snapshot": (
        "more=9 8@1/0 cut=5 unclean=1@2 more=6 snapshot",
        "other_history",
        "an unclean election cut its log off at 5",
        "--to-offset 5",
    ),
    "its epoch decides, not its time": ("more=9 cut=5 unclean=1@2 more=6 8@3/0", "other_history", "3 records are", "--to-offset 5"),
    "the first epoch after it": ("more=9 8@1/0 cut=5 unclean=1@2 more=1 lead=2@3 more=6", "other_history", "3 records", "--to-offset 5"),
    "an epoch without a record": ("more=9 8@1/0 cut=5 unclean=1@2 lead=2@3 more=6", "other_history", "perhaps by a crash", "--to-offset 5"),
    "the same before it": ("more=9 8@1/0 cut=5 lead=1@2 unclean=2@3 more=6", "other_history", "perhaps by a crash", "--to-offset 5"),
    "cut at what is deleted by now": ("more=9 8@1/0 cut=5 unclean=1@2 more=6 start=6", "other_history", "2 records", "--to-earliest"),
    "nobody knows that the log was there": ("more=9 8@1 cut=5 unclean=1@2 more=6", "other_history", "perhaps not valid", "--to-earliest"),
    # what a member has read is gone, and nothing shows how
    "a member's, after an orderly election": ("join@0 more=9 8@1/0 cut=5 lead=1@2 more=6", "other_history", "a crash", "--to-earliest"),
    "its epoch without a time": ("join@0 more=9 8@1/0 cut=5 unclean=1@2 more=6 quiet", "other_history", "Perhaps", "--to-earliest"),
    # the topic was made anew, and its first commit is that of the old one
    "as high as before": ("more=9 7@1 -@2 anew@2 more=9 7@3", "other_history", "offsets 0 to 6 were perhaps never read", "--to-earliest"),
    "and read on": ("more=9 7@1 -@2 anew@2 more=9 7@3 lead=1@4 9@5", "other_history", "0 to 6 were perhaps", "--to-earliest"),
    "from the beginning": ("more=9 7@1 -@2 anew@2 more=9 2@3 7@4", "fine", "", ""),
    "and deleted by now": ("more=9 7@1 -@2 anew@2 more=9 7@3 start=7", "fine", "", ""),
    # beyond the end
    "beyond, cut off": ("join@0 more=9 9@1 cut=5 unclean=1@2 more=2", "beyond_end", "2 records are from there on", "--to-offset 5"),
    "beyond, cut off, empty": ("more=9 9@1/0 cut=5 unclean=1@2", "beyond_end", "no record is there now", "--to-offset 5"),
    "beyond, perhaps cut off": ("more=9 9@1 cut=5 unclean=1@2 more=2", "beyond_end", "or too high an offset", "--to-earliest"),
    "beyond, after an orderly election": ("more=5 9@1 lead=1@2 more=2", "beyond_end", "perhaps too high an offset", "--to-earliest"),
    "beyond, made anew": ("more=9 9@1 -@2 anew@2 more=4 9@3", "beyond_end", "made anew at", "--to-earliest"),
    "beyond, made anew, then restarts": (
        "more=9 9@1 -@2 anew@2 more=4 9@3 lead=1@4 lead=2@5",
        "beyond_end",
        "made anew at",
        "--to-earliest",
    ),
    "the same, of a member": ("join@0 more=9 9@1/0 -@2 anew@2 more=4 9@3/0 lead=1@4", "beyond_end", "made anew at", "--to-earliest"),
    "the same, unclean": ("join@0 more=9 9@1/0 -@2 anew@2 more=4 9@3/0 cut=3 unclean=1@4", "beyond_end", "made anew at", "--to-earliest"),
    "made anew, then perhaps cut off": (
        "more=9 9@1 -@2 anew@2 more=9 8@3/0 cut=5 unclean=1@4 more=6",
        "other_history",
        "perhaps an unclean election cut its log off at 5",
        "--to-earliest",
    ),
    "beyond, for no reason": ("more=9 99@1", "beyond_end", "9 records are in the log", "--to-earliest"),
    "beyond, nothing there": ("more=9 start=9 99@1", "beyond_end", "no record is there now", "--to-earliest"),
}


FIELDS = "verdict", "severity", "history", "history_epoch", "history_ms", "history_at", "history_unclean", "go_on_at", "passed_records"


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
        ("more=9 anew@2", "other_history", "the log is empty: its consumers skip what comes if they go on at this offset"),
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


class TrueHistory:
    """What really happens to a group and its log, as a script for `World`: which record is where, and who has read it, is known.

    ``named``: its consumers commit the leader epoch of the last record that they have read.
    """

    def __init__(self, *, named: bool) -> None:
        self.words, self.minute, self.named, self.next_id, self.topics = ["join@0"], 0, named, 0, 0
        self.log: list[tuple[int, int]] = []  # the number of each record, and its leader epoch
        self.start = self.epoch = 0
        self.read: set[int] = set()
        self.members, self.position, self.read_in = True, 0, -1  # where its consumers are, and the epoch of the last record that they have
        self.cut_to: int | None = None  # where its log was cut off since, if they have not seen that
        self.committed: int | None = None
        self.claims: set[str] = set()  # what has ended the history in which the offset was committed
        self.was_there = False  # the log had a record before the offset when it was committed
        self.by_hand = False  # somebody has set the offset, in the log as it is

    def _word(self, word: str) -> None:
        self.minute += 2
        self.words.append(f"{word}@{self.minute}" if not word.startswith(("more", "cut", "start")) else word)

    def append(self, count: int) -> None:
        self.log += [(self.next_id + number, self.epoch) for number in range(count)]
        self.next_id += count
        self._word(f"more={count}")

    def elect(self, *, unclean: bool, lost: int) -> None:
        """``lost``: so many records are gone, by the election if it is unclean, else with a part of the disk."""
        end = max(len(self.log) - lost, self.start)
        if end < len(self.log):
            self._word(f"cut={end}")
        self.log, self.epoch = self.log[:end], self.epoch + 1
        if self.members and self.position > end:
            self.cut_to = min(end, self.position if self.cut_to is None else self.cut_to)
        if self.committed is not None and end < self.committed and self.was_there and lost:
            self.claims.add("cut_off" if unclean else "lost")
        self._word(f"{'unclean' if unclean else 'lead'}={self.epoch}")

    def make_anew(self, count: int) -> None:
        if self.committed is not None:
            self._word("-")
        self._word("anew")
        self.log, self.start, self.epoch, self.topics, self.cut_to, self.by_hand = [], 0, 0, self.topics + 1, None, False
        if count:
            self.append(count)

    def delete(self, count: int) -> None:
        self.start = min(self.start + count, len(self.log))
        if self.start:
            self._word(f"start={self.start}")

    def come(self) -> None:
        """Consumers begin where their group has committed, or at the first record."""
        if not self.members:
            self.members, known = True, self.committed is not None and self.start <= self.committed <= len(self.log)
            self.position, self.read_in, self.cut_to = (self.committed or 0) if known else self.start, -1, None
            if known and self.by_hand:  # whoever set the offset wanted the records before it to be passed over
                self.read |= {number for number, _ in self.log[: self.position]}
            self._word("join")

    def leave(self) -> None:
        if self.members:
            self.members = False
            self._word("leave")

    def consume(self, most: int) -> None:
        """A member reads and commits, or commits once more where it is. It sees that its log was cut off when it fetches, as Java's
        clients do. One that was there when the topic was made anew goes on at its position.
        """
        if not self.members:
            return
        claims, was_there = (self.claims, self.was_there) if self.position == self.committed else (set(), self.position <= len(self.log))
        if most:
            cut, self.cut_to = self.cut_to, None
            here = min(self.position, self.position if cut is None else cut)
            self.position = here if self.start <= here <= len(self.log) else self.start
            claims, was_there = set(), True
        got = self.log[self.position : self.position + most]
        self.read |= {number for number, _ in got}
        self.position, self.read_in = self.position + len(got), got[-1][1] if got else self.read_in
        self._commit(self.position, self.read_in if self.named else -1)
        self.by_hand = False
        self.claims, self.was_there = claims, was_there

    def set_by_hand(self, offset: int) -> None:
        """As a tool or a mirror does, which a coordinator refuses while there are members."""
        if not self.members:
            self._commit(offset, -1)
            self.by_hand = True

    def _commit(self, offset: int, epoch: int) -> None:
        self.committed, self.claims, self.was_there = offset, set(), offset <= len(self.log)
        self._word(str(offset) if epoch < 0 else f"{offset}@{self.minute + 2}/{epoch}")
        if epoch >= 0:
            self.words[-1] = self.words[-1].rpartition("@")[0]

    def skipped_by(self, offset: int) -> list[int]:
        """The offsets of records that are there, that nobody has read, and that are passed over by who goes on at an offset."""
        return [at for at in range(self.start, min(offset, len(self.log))) if self.log[at][0] not in self.read]


STEPS = {
    "append": st.integers(1, 9),
    "consume": st.integers(0, 9),
    "elect": st.just(0),
    "unclean": st.integers(1, 6),
    "lose": st.integers(1, 6),
    "make_anew": st.integers(0, 9),
    "delete": st.integers(1, 3),
    "come": st.just(0),
    "leave": st.just(0),
    "set_by_hand": st.integers(0, 14),
}


@given(
    named=st.booleans(), steps=st.lists(st.sampled_from([*STEPS]).flatmap(lambda name: st.tuples(st.just(name), STEPS[name])), max_size=14)
)
def test_a_cause_that_is_claimed_is_true_and_no_command_skips_what_nobody_has_read(named: bool, steps: list[tuple[str, int]]) -> None:
    history = TrueHistory(named=named)
    history.append(9)
    for name, number in steps:
        if name in ("elect", "unclean", "lose"):
            history.elect(unclean=name == "unclean", lost=number)
        elif name in ("come", "leave"):
            getattr(history, name)()
        else:
            getattr(history, name)(number)
    note(" ".join(history.words))
    with TemporaryDirectory() as path:
        world = World(Path(path))
        world.play(" ".join(history.words))
        group = world.read("g")
    for each in group.partitions:
        if each.history == "cut_off":
            assert "cut_off" in history.claims if each.history_unclean else history.claims
        if each.history in ("made_anew", "resumed"):
            assert history.topics > 0
    for finding in group.findings:
        to = _RESET.search(finding.command)
        if to is None:
            assert "--reset-offsets" not in finding.command
            continue
        assert to["where"] != "latest", "whatever comes until then would be skipped"
        offset = int(to["offset"]) if to["offset"] else history.start
        if finding.verdict == "skipped":  # back to where it was before, which may have been set by hand, too
            assert offset < (history.committed or 0), finding.text
        else:
            assert not history.skipped_by(offset), finding.text
