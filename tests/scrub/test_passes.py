"""The scrub of a log dir: in what order it goes, what it remembers, what it lets go of again."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from streaming.broker.scrub import threads as segment_module
from streaming.broker.scrub.scrub_progress import ScrubProgress
from streaming.broker.scrub.threads import LogDirScrub
from streaming.kafka.scan.soundness import check_batches
from streaming.simulator.log import LogDir, PartitionLog
from tests.builders import NOW, batch, delete, log_dir, partition
from tests.clocks import Clock
from tests.scrub.real import closed, flip
from tests.swaps import Swap

WEEK = 7 * 24 * 3_600_000


@pytest.fixture
def clock() -> Clock:
    return Clock(NOW)


@pytest.fixture
def disk(tmp_path: Path) -> LogDir:
    return log_dir(tmp_path)


def filled(disk: LogDir, topic: str, number: int = 0, segments: int = 2) -> PartitionLog:
    """A log with so many closed segments of 4 batches each, and an active one."""
    log = partition(disk, topic, number, topic_id=sum(topic.encode()), index_interval_bytes=256)
    for _ in range(segments):
        for _ in range(4):
            log.append(batch(2))
        log.roll()
    log.append(batch())
    return log


def scrub(disk: LogDir, clock: Clock, progress: ScrubProgress | None = None) -> LogDirScrub:
    return LogDirScrub(disk.path, WEEK, clock, progress or ScrubProgress())


def run(one: LogDirScrub, steps: int | None = None, window: int = 600) -> int:
    """Step until there is nothing to do, or so often; returns how often."""
    buffer, done = np.empty(window, np.uint8), 0
    while steps is None or done < steps:
        if one.step(buffer):
            return done
        done += 1
    return done


def reported(one: LogDirScrub) -> list[tuple[str, int, str]]:
    """Log, offset and fault of every damage that is reported."""
    return [(each.path.parent.name, damage.offset, str(damage.fault)) for each in one.progress.segments for damage in each.damages]


def closed_bytes(*logs: PartitionLog) -> int:
    return sum(segment.stat().st_size for log in logs for segment in sorted(log.directory.glob("*.log"))[:-1])


def test_a_pass_checks_every_closed_segment_of_every_live_log_once(disk: LogDir, clock: Clock) -> None:
    logs = [filled(disk, "a"), filled(disk, "b", 1, segments=3), partition(disk, "empty")]
    delete(disk, filled(disk, "gone"))
    one = scrub(disk, clock)
    run(one)
    progress = one.progress
    assert (progress.logs, progress.logs_checked, progress.checked) == (3, 3, closed_bytes(*logs[:2]))
    assert (progress.began_ms, progress.ended_ms, progress.segments) == (clock.now, clock.now, ())


def test_the_next_pass_begins_when_it_is_time_to(disk: LogDir, clock: Clock) -> None:
    log = filled(disk, "a")
    one = scrub(disk, clock)
    run(one)
    clock.now += WEEK - 1
    assert run(one) == 0
    clock.now += 1
    run(one)
    assert (one.progress.began_ms, one.progress.checked) == (clock.now, 2 * closed_bytes(log))
    clock.now -= 100 * WEEK  # a clock that is set back stops nothing
    assert run(one) > 0


def test_damage_is_reported_by_every_log_that_has_it_and_logged_once(disk: LogDir, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    logs = [filled(disk, "a"), filled(disk, "b")]
    for log in logs:
        path = closed(log.directory, 1)[0].path
        flip(path, 8 * (path.stat().st_size - 1))
    one = scrub(disk, clock)
    for _ in range(2):
        run(one)
        clock.now += WEEK
    assert reported(one) == [("a-0", 14, "crc"), ("b-0", 14, "crc")]
    stated = [vars(record) for record in caplog.records if record.levelname == "ERROR"]
    assert [(Path(each["path"]).parent.name, each["position"], each["offset"]) for each in stated] == [
        (log.directory.name, closed(log.directory, 1)[0].size // 4 * 3, 14) for log in logs
    ]


def test_what_was_found_goes_when_the_segment_is_gone_compacted_or_whole_again(disk: LogDir, clock: Clock) -> None:
    logs = {name: filled(disk, name) for name in ("compacted", "deleted", "mended", "removed")}
    paths = {name: closed(log.directory)[0].path for name, log in logs.items()}
    for path in paths.values():
        flip(path, 8 * 100)
    one = scrub(disk, clock)
    run(one)
    assert [log for log, *_ in reported(one)] == ["compacted-0", "deleted-0", "mended-0", "removed-0"]
    paths["deleted"].rename(paths["deleted"].with_name(f"{paths['deleted'].name}.deleted"))
    shutil.rmtree(logs["removed"].directory)
    new = paths["compacted"].with_name("new")
    new.write_bytes(paths["compacted"].read_bytes() + b"\0")
    new.replace(paths["compacted"])
    clock.now += 60_000
    run(one)
    assert [log for log, *_ in reported(one)] == ["mended-0"]
    flip(paths["mended"], 8 * 100)
    clock.now += WEEK
    run(one)
    # the file that came into its place is looked at, too
    assert [(log, fault) for log, _, fault in reported(one)] == [("compacted-0", "crc"), ("compacted-0", "framing")]


@pytest.mark.parametrize("steps", range(0, 60, 4))
def test_it_goes_on_where_it_was_and_shows_what_it_had_found(disk: LogDir, clock: Clock, steps: int) -> None:
    logs = [filled(disk, "a"), filled(disk, "b", segments=3)]
    for log in logs:
        flip(closed(log.directory)[0].path, 8 * 100)
        flip(closed(log.directory)[0].path, 8 * 800)
    undisturbed = scrub(disk, clock)
    run(undisturbed)
    first = scrub(disk, clock)
    run(first, steps)
    second = scrub(disk, clock, first.kept)
    assert reported(second) == reported(first)
    run(second)
    assert reported(second) == reported(undisturbed)
    assert (second.progress.checked, second.progress.ended_ms) == (undisturbed.progress.checked, clock.now)


def test_segments_and_logs_that_vanish_underneath_are_no_damage(disk: LogDir, clock: Clock) -> None:
    """At every step something else goes: a segment, a directory, the whole rest."""
    logs = [filled(disk, f"t{number}", segments=4) for number in range(6)]
    one = scrub(disk, clock)
    buffer = np.empty(600, np.uint8)
    for step in range(400):
        if one.step(buffer):
            break
        log = logs[step % 6]
        if step % 5 == 0 and log.directory.exists():
            files = sorted(log.directory.glob("*.log"))[:-1]
            if files and step % 3:
                files[0].rename(files[0].with_name(f"{files[0].name}.deleted"))
            elif step > 60:
                log.directory.rename(log.directory.with_name(f"{log.directory.name}.{0:032x}-delete"))
    assert one.progress.ended_ms == clock.now
    assert one.progress.segments == ()


def test_a_log_that_is_cut_off_into_a_segment_meanwhile_is_no_damage(disk: LogDir, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A follower that truncates has as active segment what was a closed one, and goes on writing there."""
    log = filled(disk, "a")
    path = closed(log.directory)[0].path
    flip(path, 8 * 100)

    def cut_off(original: Callable[..., object], *arguments: object) -> object:
        found = original(*arguments)
        for other in sorted(log.directory.glob("*.log"))[1:]:
            other.unlink()
        return found

    monkeypatch.setattr(segment_module, "check_batches", lambda *arguments: cut_off(check_batches, *arguments))
    one = scrub(disk, clock)
    run(one)
    assert one.progress.segments == ()


def test_a_segment_that_cannot_be_read_is_reported_and_the_others_are_checked(
    disk: LogDir, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = [filled(disk, "a"), filled(disk, "b")]
    bad = closed(logs[0].directory)[0]
    flip(closed(logs[1].directory)[0].path, 8 * 100)
    preadv, inode = os.preadv, bad.identity.inode

    def failing(fd: int, *arguments: object) -> int:
        if os.fstat(fd).st_ino == inode:
            raise OSError(errno.EIO, "Input/output error")
        return preadv(fd, *arguments)

    monkeypatch.setattr(os, "preadv", failing)
    one = scrub(disk, clock)
    run(one)
    assert [(each.path, bool(each.error)) for each in one.progress.segments] == [
        (bad.path, True),
        (closed(logs[1].directory)[0].path, False),
    ]
    assert one.progress.checked == closed_bytes(*logs) - bad.size
    monkeypatch.setattr(os, "preadv", preadv)
    clock.now += WEEK
    run(one)
    assert [each.error for each in one.progress.segments] == [""]  # it can be read again


def test_a_directory_that_cannot_be_listed_is_reported_until_it_can(disk: LogDir, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = [filled(disk, "a"), filled(disk, "b")]
    scandir = os.scandir

    def failing(path: str | os.PathLike[str]) -> object:
        if Path(path) == logs[0].directory:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", failing)
    one = scrub(disk, clock)
    run(one)
    assert [each.path for each in one.progress.segments] == [logs[0].directory]
    monkeypatch.undo()
    clock.now += WEEK
    run(one)
    assert one.progress.segments == ()


@pytest.mark.parametrize("before", range(7))
@pytest.mark.parametrize("looks", [0, 3, 6, 9])
def test_a_compaction_that_goes_on_or_was_cut_off_damages_nothing(disk: LogDir, clock: Clock, before: int, looks: int) -> None:
    """What the new segment replaces is there for a while, and until the next start if its broker is killed."""
    log, one = filled(disk, "a", segments=3), scrub(disk, clock)
    swap = Swap(log, 2, {0, 6, 8, 14})
    swap.upto(before)
    run(one, looks)
    for step in swap.steps[before:]:
        step()
        run(one, 1)
    run(one)
    assert reported(one) == []
    clock.now += WEEK
    run(one)
    assert (reported(one), one.progress.checked > 0) == ([], True)
