"""Coordinators' logs are followed, whatever a broker does to them and whatever happens to the agent meanwhile."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from streaming.broker.agent import group_following
from streaming.broker.agent.dir_work import GONE_SECONDS
from streaming.broker.agent.group_following import ANEW_SECONDS, RETRY_SECONDS, GroupFollowing
from streaming.broker.disk.segment_files import list_segments
from streaming.broker.protocol.group_messages import Following, KnownLog
from streaming.kafka.groups.commit_store import CommitStore
from streaming.kafka.groups.commit_table import Current
from streaming.kafka.groups.group_rows import GroupChanges
from streaming.simulator.batch_writer import Batch, Record
from streaming.simulator.log import PartitionLog, clean
from tests.agent.followed import OFFSETS, TOPIC_ID, Beside, beside, committed
from tests.builders import NOW, abort, commit, delete, log_dir, partition
from tests.formats.dumped import columns
from tests.formats.offsets_topic import records_of
from tests.groups.logs import segments
from tests.scratch import scratch
from tests.swaps import Swap

WAIT = 600.0


@dataclass
class Job:
    """What a job makes of the changes it gets."""

    editions: dict[tuple[int, int], tuple[str, int]] = field(default_factory=dict)
    commits: dict[tuple[int, int], dict[tuple[str, int], int]] = field(default_factory=dict)
    following: dict[tuple[int, int], str] = field(default_factory=dict)

    def ask(self, following: GroupFollowing) -> "Job":
        known = [
            KnownLog(broker=broker, topic=OFFSETS, topic_id=TOPIC_ID, coordinator=number, edition=edition, version=version)
            for (broker, number), (edition, version) in self.editions.items()
        ]
        self.following = {}
        for each in following.changes(known):
            key = each.broker, each.coordinator
            if not isinstance(each, GroupChanges):
                self.following[key] = each.following
                continue
            self.following[key] = Following.READ
            before = {} if each.whole else self.commits[key]
            rows = {(row["group"], row["partition"]): row["offset"] for row in each.commits.to_pylist()}
            self.commits[key] = {name: offset for name, offset in (before | rows).items() if offset >= 0}
            self.editions[key] = each.edition, each.version
        return self


def offsets_log(tmp_path: Path, name: str = "d0", number: int = 0, segment_bytes: int = 1 << 20) -> PartitionLog:
    return partition(log_dir(tmp_path, name), OFFSETS, number, segment_bytes=segment_bytes)


def test_commits_are_known_from_the_first_byte_on_and_changes_follow(tmp_path: Path) -> None:
    log = offsets_log(tmp_path)
    log.append(committed("g", 5), committed("h", 7), committed("g", 6))
    log.roll()
    with beside(tmp_path, log.directory.parent) as agent:
        job = Job()
        agent.settle()
        assert job.ask(agent.following).commits == {(1, 0): {("g", 0): 6, ("h", 0): 7}}
        log.append(committed("g", 9, producer=4), committed("h", None))
        agent.settle()
        assert job.ask(agent.following).commits == {(1, 0): {("g", 0): 6}}
        log.append(commit(4))
        agent.settle()
        (edition,) = job.editions.values()
        assert job.ask(agent.following).commits == {(1, 0): {("g", 0): 9}}
        assert job.editions[1, 0][0] == edition[0]


def test_nothing_is_known_that_the_watcher_has_not_published(tmp_path: Path) -> None:
    log = offsets_log(tmp_path)
    log.append(committed("g", 5))
    with beside(tmp_path, log.directory.parent) as agent:
        agent.settle()
        log.append(committed("g", 6))
        agent.follow()
        assert Job().ask(agent.following).commits == {(1, 0): {("g", 0): 5}}


def test_a_batch_that_is_larger_than_a_piece_is_read_all_the_same(tmp_path: Path) -> None:
    log = offsets_log(tmp_path, segment_bytes=8 << 20)
    log.append(committed("g", 5), committed("h", 6, metadata=2 * group_following.PIECE_BYTES), committed("i", 7))
    with beside(tmp_path, log.directory.parent) as agent:
        agent.settle()
        assert Job().ask(agent.following).commits == {(1, 0): {("g", 0): 5, ("h", 0): 6, ("i", 0): 7}}


def test_a_log_is_not_known_before_it_is_read_and_its_first_piece_is_not_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streaming.broker.agent.group_following.PIECE_BYTES", 4096)
    log = offsets_log(tmp_path)
    log.append(*(committed(f"group-{item}", item) for item in range(100)))
    with beside(tmp_path, log.directory.parent) as agent:
        agent.agent.look()
        agent.following.step(agent.paths[0])
        assert Job().ask(agent.following).following == {(1, 0): Following.READING}
        agent.follow()
        assert len(Job().ask(agent.following).commits[1, 0]) == 100


def test_groups_beyond_the_limit_are_left_out_and_counted(tmp_path: Path) -> None:
    log = offsets_log(tmp_path)
    log.append(*(committed(f"group-{item}", item) for item in range(5)))
    with beside(tmp_path, log.directory.parent, groups_limit=3) as agent:
        agent.settle()
        (found,) = agent.following.changes([])
        assert isinstance(found, GroupChanges)
        assert (found.commits.num_rows, found.omitted) == (3, 2)


def test_a_log_that_is_read_again_takes_no_more_of_the_limit(tmp_path: Path) -> None:
    log = offsets_log(tmp_path)
    log.append(committed("g", 5), committed("h", 6), committed("i", 7))
    with beside(tmp_path, log.directory.parent, groups_limit=2) as agent:
        agent.settle()
        for _ in range(3):
            log.truncate(1)
            log.append(committed("h", 6), leader_epoch=log.leader_epochs[-1][0] + 1 if log.leader_epochs else 0)
            agent.settle()
        (found,) = agent.following.changes([])
        assert isinstance(found, GroupChanges)
        assert found.commits.num_rows == 2


def test_a_truncated_log_is_read_again_under_another_edition(tmp_path: Path) -> None:
    log = offsets_log(tmp_path)
    log.append(committed("g", 5))
    log.append(committed("g", 6), committed("h", 1))
    with beside(tmp_path, log.directory.parent) as agent:
        agent.settle()
        job = Job().ask(agent.following)
        before = job.editions[1, 0]
        log.truncate(1)
        log.append(committed("i", 3), leader_epoch=1)
        agent.agent.look()
        assert Job().ask(agent.following).following == {(1, 0): Following.READING}  # what was cut off is not sent any more
        agent.follow()
        assert job.ask(agent.following).commits == {(1, 0): {("g", 0): 5, ("i", 0): 3}}
        assert job.editions[1, 0][0] != before[0]


@pytest.fixture
def compacting(tmp_path: Path) -> PartitionLog:
    """Two closed segments and an active one; a cleaning leaves the batches at 2, 3, 4, and a later one not the tombstone, which is at 3."""
    log = offsets_log(tmp_path)
    log.append(committed("g", 5), committed("h", 7))
    log.roll()
    log.append(committed("g", 6), committed("h", None), committed("i", 1))
    log.roll()
    log.append(committed("j", 9))
    return log


COMPACTED = {("g", 0): 6, ("i", 0): 1, ("j", 0): 9}


@pytest.mark.parametrize("steps", range(7))
def test_in_each_moment_of_a_compaction_a_log_is_read_the_same(tmp_path: Path, compacting: PartitionLog, steps: int) -> None:
    swap = Swap(compacting, 2, {2, 3, 4})
    swap.upto(steps)
    with beside(tmp_path, compacting.directory.parent) as agent:
        agent.settle()
        assert Job().ask(agent.following).commits == {(1, 0): COMPACTED}
        for step in swap.steps[steps:]:
            step()
            agent.settle()
        compacting.append(committed("k", 2))
        agent.settle()
        assert Job().ask(agent.following).commits == {(1, 0): {**COMPACTED, ("k", 0): 2}}
        assert agent.following.errors == 0


@pytest.mark.parametrize("read", range(1, 6))
def test_segments_that_are_swapped_while_a_log_is_read_bring_back_no_commit_that_was_deleted(
    tmp_path: Path, compacting: PartitionLog, read: int
) -> None:
    with beside(tmp_path, compacting.directory.parent) as agent:
        agent.following._buffers[agent.paths[0]] = np.empty(200, np.uint8)  # a batch at a time
        agent.agent.look()
        for _ in range(read):
            agent.following.step(agent.paths[0])
        for swap in (Swap(compacting, 1, set()), Swap(compacting, 1, {2, 4}, first=1)):
            swap.upto(len(swap.steps))
        agent.follow()
        agent.now += RETRY_SECONDS
        agent.settle()
        assert Job().ask(agent.following).commits == {(1, 0): COMPACTED}


@pytest.fixture
def overtaken(tmp_path: Path) -> Iterator[tuple[Beside, Job, PartitionLog]]:
    """A job knows g and h; then h was deleted, and its commit and its tombstone cleaned before the agent has read on."""
    log = offsets_log(tmp_path)
    log.append(committed("a", 1))
    log.roll()
    log.append(committed("g", 5), committed("h", 7))
    with beside(tmp_path, log.directory.parent, groups_limit=4) as agent:
        agent.settle()
        job = Job().ask(agent.following)
        assert job.commits == {(1, 0): {("a", 0): 1, ("g", 0): 5, ("h", 0): 7}}
        cleaned_away(agent, log, {4}, committed("h", None), committed("g", 6))
        yield agent, job, log


def cleaned_away(agent: Beside, log: PartitionLog, keep: set[int], *batches: Batch) -> None:
    """What is written now is published, and cleaned before the agent follows."""
    log.append(*batches)
    log.roll()
    log.append(committed("i", log.log_end_offset))
    agent.agent.look()
    swap = Swap(log, 1, keep, first=len(log.segments) - 2)
    swap.upto(len(swap.steps))


def test_a_tombstone_that_was_cleaned_before_it_was_read_deletes_all_the_same(overtaken: tuple[Beside, Job, PartitionLog]) -> None:
    """Kafka keeps a tombstone for `delete.retention.ms`; who reads later than that has to compare with what is left."""
    agent, job, _ = overtaken
    before = job.editions[1, 0]
    agent.follow()
    assert job.ask(agent.following).commits == {(1, 0): {("a", 0): 1, ("g", 0): 6, ("i", 0): 5}}
    assert job.editions[1, 0][0] != before[0]
    (found,) = agent.following.changes([])
    assert isinstance(found, GroupChanges)
    assert found.omitted == 0, "what is read anew takes the room of what it replaces"


def test_a_log_that_is_cleaned_all_the_time_is_known_as_it_was_and_read_anew_after_a_rest(
    overtaken: tuple[Beside, Job, PartitionLog],
) -> None:
    agent, job, log = overtaken
    agent.follow()
    edition = job.ask(agent.following).editions[1, 0][0]
    cleaned_away(agent, log, {7}, committed("i", None), committed("g", 7))
    agent.follow()
    assert job.ask(agent.following).commits == {(1, 0): {("a", 0): 1, ("g", 0): 7, ("i", 0): 8}}
    cleaned_away(agent, log, {10}, committed("i", None), committed("k", 8))
    agent.follow()
    assert job.ask(agent.following).editions[1, 0][0] == edition
    agent.now += ANEW_SECONDS
    agent.follow()
    assert job.ask(agent.following).commits == {(1, 0): {("a", 0): 1, ("g", 0): 7, ("i", 0): 11, ("k", 0): 8}}
    assert job.editions[1, 0][0] != edition


def test_what_cannot_be_read_anew_is_known_as_it_was(overtaken: tuple[Beside, Job, PartitionLog], caplog: pytest.LogCaptureFixture) -> None:
    agent, job, log = overtaken
    path = log.segments[0].path("log")
    content = path.read_bytes()
    path.write_bytes(bytes(len(content)))
    with caplog.at_level("INFO"):
        agent.follow()
    assert "cannot be read anew now" in caplog.text
    assert job.ask(agent.following).commits == {(1, 0): {("a", 0): 1, ("g", 0): 6, ("h", 0): 7, ("i", 0): 5}}
    path.write_bytes(content)
    agent.now += ANEW_SECONDS
    agent.follow()
    assert job.ask(agent.following).commits == {(1, 0): {("a", 0): 1, ("g", 0): 6, ("i", 0): 5}}


def test_bytes_that_are_no_batch_make_it_unknown_until_they_are_gone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = offsets_log(tmp_path)
    log.append(committed("g", 5), committed("h", 6))
    path, size = log.active.path("log"), log.active.size
    with beside(tmp_path, log.directory.parent) as agent:
        agent.agent.look()
        whole = path.read_bytes()
        path.write_bytes(whole[: size // 2 + 16] + b"\xff" + whole[size // 2 + 17 :])  # a magic that does not exist
        agent.follow()
        assert Job().ask(agent.following).following == {(1, 0): Following.READING}
        assert agent.following.errors == 1
        (message,) = [record for record in caplog.records if record.name.endswith("group_following")]
        assert path.name in message.__dict__["error"]
        path.write_bytes(whole)
        agent.follow()
        assert agent.following.errors == 1  # not at once
        assert Job().ask(agent.following).following == {(1, 0): Following.READING}
        agent.now += RETRY_SECONDS
        agent.follow()
        assert Job().ask(agent.following).commits == {(1, 0): {("g", 0): 5, ("h", 0): 6}}


def test_a_log_that_goes_is_followed_no_more_and_a_later_one_of_its_name_is_another(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, OFFSETS)
    log.append(committed("g", 5))
    with beside(tmp_path, disk.path) as agent:
        agent.settle()
        delete(disk, log).remove()
        agent.settle()
        agent.now += GONE_SECONDS
        agent.settle()
        assert Job().ask(agent.following).following == {}
        partition(disk, OFFSETS).append(committed("h", 6))
        agent.settle()
        assert Job().ask(agent.following).commits == {(1, 0): {("h", 0): 6}}


def test_a_log_that_is_made_anew_without_a_topic_id_is_another(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, OFFSETS, topic_id=None)
    log.append(committed("g", 5), committed("h", 6))
    with beside(tmp_path, disk.path) as agent:
        agent.settle()
        delete(disk, log).remove()
        agent.settle()
        partition(disk, OFFSETS, topic_id=None).append(committed("i", 7))
        agent.settle()
        assert Job().ask(agent.following).commits == {(1, 0): {("i", 0): 7}}


def test_another_watcher_goes_on_with_what_was_read(tmp_path: Path) -> None:
    log = offsets_log(tmp_path)
    log.append(committed("g", 5))
    with beside(tmp_path, log.directory.parent) as agent:
        agent.settle()
        before = Job().ask(agent.following).editions
        agent.agent.replace_watcher()
        agent.follow()  # before it has listed the logs
        log.append(committed("g", 6))
        agent.settle()
        job = Job().ask(agent.following)
        assert job.commits == {(1, 0): {("g", 0): 6}}
        assert [edition for edition, _ in job.editions.values()] == [edition for edition, _ in before.values()]


def test_a_log_dir_that_does_not_answer_holds_up_its_own_groups_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dead, well = offsets_log(tmp_path, "d0", 0), offsets_log(tmp_path, "d1", 1)
    for log in (dead, well):
        log.append(committed("g", 5))
    released, stuck, stop = threading.Event(), threading.Event(), threading.Event()

    def waiting(directory: Path) -> object:
        if directory == dead.directory:
            stuck.set()
            released.wait(WAIT)
        return list_segments(directory)

    with beside(tmp_path, dead.directory.parent, well.directory.parent) as agent:
        agent.agent.look()
        monkeypatch.setattr(group_following, "list_segments", waiting)
        agent.following.start(stop)
        try:
            assert stuck.wait(WAIT)
            job = Job()
            while job.ask(agent.following).following.get((1, 1)) != Following.READ:
                assert not stop.wait(0.01)
            assert job.following == {(1, 0): Following.READING, (1, 1): Following.READ}
            agent.log_dirs.bar(dead.directory.parent, "it does not answer")
            assert job.ask(agent.following).following == {(1, 0): Following.UNAVAILABLE, (1, 1): Following.READ}
            assert agent.following.counts() == {Following.UNAVAILABLE: 1, Following.READ: 1}
        finally:
            released.set()
            stop.set()
            agent.following.join(WAIT)


def test_what_a_truncation_has_cut_off_is_taken_back_from_a_job_that_knew_it(tmp_path: Path) -> None:
    """As after an unclean election: what was committed before it counts again, and a group that was new is gone."""
    log, store = offsets_log(tmp_path), CommitStore()

    def reported(agent: Beside) -> dict[str, int]:
        agent.settle()
        edition, version = store.version("a", (OFFSETS, 0))
        known = KnownLog(broker=1, topic=OFFSETS, topic_id=TOPIC_ID, coordinator=0, edition=edition, version=version)
        for each in agent.following.changes([known]):
            assert isinstance(each, GroupChanges)
            store.take("a", each)
        rows = store.table({(OFFSETS, 0): Current("a", log.log_end_offset)}).rows
        return dict(zip((rows.group_names[group] for group in rows.group.tolist()), rows.offset.tolist(), strict=True))

    log.append(committed("g", 5))
    with beside(tmp_path, log.directory.parent) as agent:
        log.append(committed("h", 7), committed("g", 6), committed("t", 1, producer=4), commit(4))
        assert reported(agent) == {"g": 6, "h": 7, "t": 1}
        log.truncate(1)
        assert reported(agent) == {"g": 5}
        log.append(*(committed("i", offset) for offset in range(4)), leader_epoch=1)
        assert reported(agent) == {"g": 5, "i": 3}


@pytest.mark.parametrize("tail", ["zeros", "half", "other"])
def test_what_is_no_batch_at_the_end_takes_nothing_away_of_what_is_before_it(tmp_path: Path, tail: str) -> None:
    log = offsets_log(tmp_path)
    log.append(committed("g", 5), committed("h", 7))
    path = log.active.path("log")
    whole = path.read_bytes()
    with beside(tmp_path, log.directory.parent) as agent:
        agent.settle()
        path.write_bytes(whole + {"zeros": bytes(4096), "half": whole[: len(whole) // 4], "other": b"\1" * 4096}[tail])
        agent.settle()
        job = Job().ask(agent.following)
        assert (job.following, job.commits) == ({(1, 0): Following.READ}, {(1, 0): {("g", 0): 5, ("h", 0): 7}})


def test_the_state_of_share_groups_is_followed_too(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "__share_group_state", 0)
    (data,) = segments("__share_group_state").values()
    log.append(*(replace(committed("g", 0), records=(Record(each.key, each.value, NOW),)) for each in records_of(data, columns(data))))
    with beside(tmp_path, log.directory.parent) as agent:
        agent.settle()
        (found,) = agent.following.changes([])
        assert isinstance(found, GroupChanges)
        rows = [(row["group"], row["partition"], row["offset"], row["delivered"], row["share"]) for row in found.commits.to_pylist()]
        assert (found.topic, sorted(rows)) == ("__share_group_state", [("sharing", 0, 0, 89, True), ("sharing", 1, 0, 85, True)])


class FollowedLogs(RuleBasedStateMachine):
    """One log; what is true of it is kept as a list of records."""

    def __init__(self) -> None:
        super().__init__()
        self._directory = scratch()
        root = Path(self._directory.name)
        self.log = offsets_log(root, segment_bytes=1500)
        self.records: list[tuple[int, int, str, int | None]] = []  # offset, producer, group ("" for a marker), committed offset
        self.epoch = 0
        self._beside = beside(root, self.log.directory.parent)
        self.agent = self._beside.__enter__()
        self.agent.following._buffers[self.agent.paths[0]] = np.empty(600, np.uint8)
        self.job = Job()

    def teardown(self) -> None:
        self._beside.__exit__(None, None, None)
        self.log.close()
        self._directory.cleanup()

    @rule(group=st.sampled_from("gh"), producer=st.sampled_from([-1, -1, 3, 4]), offset=st.none() | st.integers(0, 99))
    def commit(self, group: str, producer: int, offset: int | None) -> None:
        if offset is None:
            producer = -1
        at = self.log.append(committed(group, offset, producer=producer), leader_epoch=self.epoch)
        self.records.append((at, producer, group, offset))

    @rule(producer=st.sampled_from([3, 4]), committed_=st.booleans())
    def end(self, producer: int, committed_: bool) -> None:
        at = self.log.append((commit if committed_ else abort)(producer), leader_epoch=self.epoch)
        self.records.append((at, producer, "", int(committed_)))

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule(back=st.integers(1, 6))
    def truncate(self, back: int) -> None:
        offset = max(self.log.segments[0].base_offset, self.log.log_end_offset - back)
        self.log.truncate(offset)
        self.epoch += 1
        self.records = [record for record in self.records if record[0] < self.log.log_end_offset]

    @precondition(lambda self: len(self.log.segments) > 1)
    @rule()
    def compact(self) -> None:
        """Commits outside of transactions that a later one replaces."""
        newest = {group: offset for offset, producer, group, _ in self.records if producer < 0 and group}
        kept = {offset for offset, producer, group, _ in self.records if producer >= 0 or newest[group] == offset}
        clean(self.log, kept, 0)

    @rule()
    def look(self) -> None:
        self.agent.agent.look()

    @rule()
    def restart(self) -> None:
        self.agent.agent.restart()

    @rule(steps=st.integers(1, 4))
    def read_some(self, steps: int) -> None:
        for _ in range(steps):
            self.agent.following.step(self.agent.paths[0])

    @rule()
    def ask(self) -> None:
        self.job.ask(self.agent.following)

    @rule()
    def settled(self) -> None:
        self.agent.settle()
        assert self.agent.following.errors == 0 or not self.agent.now
        self.agent.now += 10 * RETRY_SECONDS
        self.agent.settle()
        self.job.ask(self.agent.following)
        assert self.job.following == {(1, 0): Following.READ}
        assert self.job.commits == {(1, 0): self.expected()}

    @invariant()
    def is_whole(self) -> None:
        assert self.log.log_end_offset >= len(self.records) > -1

    def expected(self) -> dict[tuple[str, int], int]:
        found: dict[str, tuple[int, int]] = {}  # by group: record, offset
        waiting: dict[int, dict[str, tuple[int, int]]] = {}
        for at, producer, group, offset in self.records:
            if not group:
                ended = waiting.pop(producer, {})
                found |= {name: each for name, each in ended.items() if offset and each[0] > found.get(name, (-1, 0))[0]}
            elif offset is None:
                found.pop(group, None)
                for each in waiting.values():
                    each.pop(group, None)
            elif producer >= 0:
                waiting.setdefault(producer, {})[group] = at, offset
            else:
                found[group] = at, offset
        return {(group, 0): offset for group, (_, offset) in found.items()}


TestFollowing = FollowedLogs.TestCase
TestFollowing.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
