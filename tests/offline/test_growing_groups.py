"""Log dirs that grow while they are read: commits are as new as the ends of the logs that they are held against."""

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.protocol.group_json import GroupDetail, GroupPartition, ReadMoments
from streaming.common.settings import Settings
from streaming.simulator.batch_writer import Batch
from streaming.simulator.coordinators import offset_commit_record
from streaming.terminal.offline import coordinator_logs
from streaming.terminal.offline.coordinator_logs import CoordinatorLogs, CoordinatorReading
from streaming.terminal.offline.group_reading import read_groups
from tests.builders import NOW, batch, log_dir, partition
from tests.clocks import Clock
from tests.group_answers import detailed

STEP = 500
SETTINGS = Settings(broker_config={"log.retention.ms": "604800000"})


class Growing:
    """A topic and a group that reads all of it at once."""

    def __init__(self, path: Path) -> None:
        self.disk = log_dir(path)
        self.coordinator = partition(self.disk, "__consumer_offsets", topic_id=7)
        self.orders = partition(self.disk, "orders", topic_id=8)
        self.end = 0

    def grow(self, _: int = 0) -> None:
        self.append()
        self.commit()

    def append(self) -> None:
        self.orders.append(batch(STEP, timestamp=NOW))
        self.end += STEP
        self.disk.write_high_watermarks()

    def commit(self, offset: int = -1, *, epoch: int = 0) -> None:
        record = offset_commit_record("g", "orders", 0, self.end if offset < 0 else offset, NOW)
        self.coordinator.append(Batch(records=(record,)), leader_epoch=epoch)
        self.disk.write_high_watermarks()

    def read(self, progress: Callable[[int], None]) -> tuple[GroupPartition, ReadMoments]:
        times = count()
        reading = read_groups(
            open_log_dirs([self.disk.path]),
            (),
            SETTINGS,
            NOW,
            clock=lambda: NOW / 1000 + next(times),
            sleep=lambda _: None,
            progress=progress,
        )
        (group,) = detailed(reading).groups
        page = reading.answer("/api/v1/groups")
        assert reading.answers.read is not None
        assert page is not None
        assert page.read == reading.answers.read
        (of,) = group.partitions
        return of, reading.answers.read


@pytest.fixture
def growing(tmp_path: Path) -> Growing:
    one = Growing(tmp_path)
    one.grow()
    return one


def once(grow: Callable[[], None], at: int) -> Callable[[int], None]:
    """Grow at one of the calls alone."""
    calls = count()
    return lambda _: grow() if next(calls) == at else None


@pytest.mark.parametrize("at", range(2))
def test_what_is_read_while_logs_are_read_is_not_left(growing: Growing, at: int) -> None:
    def grow() -> None:
        for _ in range(20):
            growing.grow()

    of, _ = growing.read(once(grow, at))
    assert (of.committed, of.high_watermark, of.lag_offsets, of.lag_records_read_committed) == (growing.end, growing.end, 0, 0)
    assert growing.end == 21 * STEP


@pytest.mark.parametrize("steps", range(2, 9))
def test_of_logs_that_go_on_growing_no_commit_is_newer_than_the_data(growing: Growing, steps: int) -> None:
    calls = count()
    of, _ = growing.read(lambda _: growing.grow() if next(calls) < steps else None)
    assert of.unknown == ""
    assert 0 <= of.lag_offsets <= steps * STEP
    assert of.committed + of.lag_offsets == of.high_watermark


def test_what_nobody_has_read_meanwhile_is_left(growing: Growing) -> None:
    of, _ = growing.read(once(growing.append, 0))
    assert (of.committed, of.lag_records_read_committed) == (STEP, STEP)


def test_an_answer_has_the_moments_between_which_they_were_read(growing: Growing) -> None:
    _, read = growing.read(lambda _: None)
    assert NOW < read.commits_from_ms < read.commits_until_ms < read.ends_from_ms < read.ends_until_ms


def test_it_is_judged_as_of_the_moment_at_which_the_ends_were_read(growing: Growing) -> None:
    """Not as of when the command began: what came while logs were read is no record of a time to come, and what is due is due by then."""
    clock = Clock(NOW / 1000)

    def slowly(_: int) -> None:
        clock.now += 60
        growing.orders.append(batch(1, timestamp=int(clock.now * 1000)))
        growing.disk.write_high_watermarks()

    def read(now_ms: int | None) -> tuple[GroupDetail, ReadMoments | None]:
        dirs = open_log_dirs([growing.disk.path])
        reading = read_groups(dirs, (), SETTINGS, now_ms, clock=clock, sleep=clock.sleep, progress=slowly)
        return detailed(reading).groups[0], reading.answers.read

    group, moments = read(None)
    (of,) = group.partitions
    assert moments is not None
    assert NOW + 60_000 <= of.next_timestamp_ms <= group.at_ms == moments.ends_until_ms
    assert "ahead" not in group.findings[0].text
    later, _ = read(NOW)
    assert later.at_ms == NOW, "as of the time that is asked for"


def test_where_only_a_checkpoint_shows_what_is_replicated_commits_are_of_its_time(growing: Growing) -> None:
    def read(high_watermark: int) -> int:
        logs = logs_of(growing)
        (replayed,) = logs.replayed
        return replayed.as_of_ms(high_watermark) - replayed.checkpoint_ms

    assert read(growing.coordinator.log_end_offset) > 0
    assert read(growing.coordinator.log_end_offset - 1) == 0


def logs_of(growing: Growing) -> CoordinatorLogs:
    logs = CoordinatorLogs(CoordinatorReading(wanted=lambda _: True, groups_limit=100, paced=lambda _: None, clock_ms=lambda: 1 << 50))
    logs.read(open_log_dirs([growing.disk.path]), None)
    return logs


def committed(logs: CoordinatorLogs) -> list[int]:
    (replayed,) = logs.replayed
    return replayed.as_of(1 << 40).changes[0].commits["offset"].to_pylist()  # type: ignore[no-any-return]


def test_a_log_that_was_truncated_meanwhile_is_read_anew(growing: Growing) -> None:
    growing.commit(111)
    logs = logs_of(growing)
    growing.coordinator.truncate(1)
    growing.commit(222, epoch=1)  # as long as before, by another leader
    logs.read_on()
    assert committed(logs) == [222]


def test_a_log_that_is_shorter_than_before_is_read_anew(growing: Growing) -> None:
    growing.commit(111)
    logs = logs_of(growing)
    growing.coordinator.truncate(1)
    logs.read_on()
    assert committed(logs) == [STEP]


def test_a_log_that_cannot_be_read_on_is_as_it_was(growing: Growing, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = logs_of(growing)
    growing.commit(111)

    def gone(_: Path) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(coordinator_logs, "list_segments", gone)
    assert logs.read_on() == 0
    assert committed(logs) == [STEP]


@pytest.mark.parametrize("truncated", [False, True])
def test_a_checkpoint_that_is_written_meanwhile_hides_no_earlier_commit(growing: Growing, truncated: bool) -> None:
    growing.commit(100)
    logs = logs_of(growing)
    if truncated:
        growing.coordinator.truncate(1)
        growing.commit(100, epoch=1)
    growing.commit(111)
    logs.read_on()
    (replayed,) = logs.replayed
    assert replayed.as_of(2).changes[0].commits["offset"].to_pylist() == [100]


def test_what_came_first_above_the_high_watermark_is_apart(growing: Growing) -> None:
    """All later ones of a partition are one row: the time of the first shows how old the high watermark is."""
    logs = logs_of(growing)
    for offset in (100, 111, 122):
        growing.commit(offset)
    logs.read_on()
    (replayed,) = logs.replayed
    replayed.replicated = 1
    assert [each.commits["offset"].to_pylist() for each in replayed.as_of(1).changes] == [[STEP], [100], [122]]


def test_only_what_is_new_is_read_again(growing: Growing) -> None:
    logs = logs_of(growing)
    assert logs.read_on() == 0
    growing.commit(111)
    assert 0 < logs.read_on() < 300
    assert committed(logs) == [111]
