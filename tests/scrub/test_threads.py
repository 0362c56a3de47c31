"""The threads of the scrub: one for each log dir, one pace for all, and log dirs that come and go."""

import os
import threading
from pathlib import Path

import pytest

from streaming.broker.disk.availability import LogDirs, open_log_dirs
from streaming.broker.disk.opening import ReadingPace
from streaming.broker.scrub.scrub_progress import file_of, load
from streaming.broker.scrub.threads import CPU_SHARE, UNAVAILABLE_SECONDS, DirThread, Scrub, ScrubOptions
from streaming.simulator.log import LogDir, PartitionLog
from tests.builders import NOW, batch, log_dir, partition
from tests.scrub.real import closed, flip

OPTIONS = ScrubOptions(rate=1 << 30, every_ms=1_000_000)
WAIT = 600.0


def filled(disk: LogDir, topic: str = "a") -> PartitionLog:
    log = partition(disk, topic)
    log.append(batch(2))
    log.roll()
    log.append(batch())
    return log


def one(disk: LogDir, log_dirs: LogDirs, directory: Path) -> DirThread:
    return DirThread(disk.path, log_dirs, OPTIONS, ReadingPace(OPTIONS.rate, CPU_SHARE), file_of(directory, disk.path), lambda: NOW)


def step(thread: DirThread) -> None:
    """Until a pass is through."""
    while thread.progress is None or thread.progress.ended_ms < 0:
        thread.step()


@pytest.mark.parametrize(("size", "cpu", "rest"), [(500, 0.0, 0.5), (0, 0.3 * CPU_SHARE, 0.3), (500, 0.6 * CPU_SHARE, 0.6)])
def test_the_rest_is_what_bytes_or_work_ask_for(size: int, cpu: float, rest: float) -> None:
    assert ReadingPace(1000, CPU_SHARE).spent(size, cpu, 100.0) == pytest.approx(rest)


def test_all_log_dirs_share_one_pace_and_time_that_passed_is_no_credit() -> None:
    pace = ReadingPace(1000, CPU_SHARE)
    assert pace.spent(1000, 0.0, 100.0) == pytest.approx(1.0)
    assert pace.spent(1000, 0.0, 100.0) == pytest.approx(2.0)
    assert pace.spent(1000, 0.0, 200.0) == pytest.approx(1.0)


def test_a_log_dir_that_is_unavailable_is_left_alone_and_the_scrub_goes_on_when_it_is_back(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    filled(disk)
    log_dirs = open_log_dirs([disk.path])
    thread = one(disk, log_dirs, tmp_path)
    log_dirs.bar(disk.path, "it does not answer")
    assert thread.step() == UNAVAILABLE_SECONDS
    assert thread.progress is None
    log_dirs.unbar(disk.path)
    log_dirs.check()
    step(thread)


def test_another_disk_in_the_place_of_one_is_another_scrub(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    log = filled(disk)
    flip(closed(log.directory)[0].path, 8 * 70)
    log_dirs = open_log_dirs([disk.path])
    thread = one(disk, log_dirs, tmp_path)
    step(thread)
    assert thread.progress is not None
    assert len(thread.progress.segments) == 1
    meta = disk.path / "meta.properties"
    meta.write_text(meta.read_text().replace("directory.id=", "directory.id=B"))
    log_dirs.check()
    thread.step()
    assert (thread.progress.ended_ms, thread.progress.segments) == (-1, ())


def test_what_nobody_thought_of_is_passed_over_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk = log_dir(tmp_path)
    logs = [filled(disk, "a"), filled(disk, "b")]
    bad = closed(logs[0].directory)[0].path
    from streaming.broker.scrub.threads import SegmentCheck

    advance = SegmentCheck.advance

    def failing(check: SegmentCheck, buffer: object) -> object:
        if check.segment.path == bad:
            raise ZeroDivisionError("a defect")
        return advance(check, buffer)  # type: ignore[arg-type]

    monkeypatch.setattr(SegmentCheck, "advance", failing)
    thread = one(disk, open_log_dirs([disk.path]), tmp_path)
    step(thread)
    assert thread.progress is not None
    assert [(each.path, each.error) for each in thread.progress.segments] == [(bad, "a defect")]
    assert thread.progress.checked == closed(logs[1].directory)[0].size


def test_a_call_that_does_not_come_back_stops_its_log_dir_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dead, well = log_dir(tmp_path, "d0"), log_dir(tmp_path, "d1")
    there = closed(filled(dead).directory)[0]
    filled(well, "b")
    released, preadv, stop = threading.Event(), os.preadv, threading.Event()

    def waiting(fd: int, buffers: list[memoryview], offset: int, flags: int = 0) -> int:
        if os.fstat(fd).st_ino == there.identity.inode and not flags & os.RWF_NOWAIT:  # which waits for no disk
            released.wait(WAIT)
        return preadv(fd, buffers, offset, flags)

    monkeypatch.setattr(os, "preadv", waiting)
    scrub = Scrub(open_log_dirs([dead.path, well.path]), OPTIONS, tmp_path, lambda: NOW)
    scrub.start(stop)
    try:
        passed = threading.Event()
        while not passed.wait(0.01):
            reports = {report.log_dir.path: report for report in scrub.reports()}
            if reports.get(well.path) and reports[well.path].progress.ended_ms >= 0 and reports[dead.path].waits_at:
                passed.set()
        assert reports[dead.path].waits_at == str(there.path)
        assert reports[dead.path].progress.ended_ms == -1
    finally:
        stop.set()
        released.set()
        scrub.join(WAIT)
    assert load(file_of(tmp_path, well.path)).ended_ms == NOW
