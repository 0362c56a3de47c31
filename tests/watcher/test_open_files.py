"""More logs than descriptors: all are counted all the same."""

import errno
import logging
import os
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from streaming.broker.disk.opening import OpenFiles, open_files
from streaming.simulator.log import LogDir
from tests.builders import batch, partition
from tests.disk.descriptors import descriptors
from tests.watcher.station import Station

LOGS, LIMIT = 150, 100

_SCRIPT = """
import resource, sys
from pathlib import Path
from streaming.simulator.batch_writer import encode
from tests.builders import batch
from tests.watcher.station import Station
resource.setrlimit(resource.RLIMIT_NOFILE, ({limit}, {limit}))
station = Station(Path(sys.argv[1]))
station.begin("earliest")
for round in range(4):
    station.look()
    print(sum(fold.records for fold in station.folds["first"].logs.values()), len(station.watcher.unreadable()), station.watcher.caught_up)
    for segment in Path(sys.argv[1]).glob("*/*.log"):
        with segment.open("ab") as file:
            file.write(encode(batch(1), round + 1))
"""


def test_logs_are_counted_with_fewer_descriptors_than_logs(disk: LogDir, tmp_path: Path) -> None:
    for number in range(LOGS):
        log = partition(disk, f"t{number}", topic_id=number + 1)
        log.append(batch(1))
        log.close()
    disk.release()
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT.format(limit=LIMIT), disk.path, tmp_path / "journal"], check=False, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == [f"{round_ * LOGS} 0 True" for round_ in range(1, 5)], done.stderr
    assert done.stderr.count("more logs than files may be open") == 1


@pytest.mark.parametrize(("limit", "most"), [(1 << 20, (1 << 20) - 1280), (4000, 2720), (2560, 1280), (300, 150)])
def test_what_else_needs_descriptors_has_1280_or_half_of_them(monkeypatch: pytest.MonkeyPatch, limit: int, most: int) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    with ThreadPoolExecutor(1) as thread:  # each thread has its own
        assert thread.submit(lambda: open_files().most).result() == most


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> OpenFiles:
    files = open_files()
    monkeypatch.setattr(files, "most", 4)
    monkeypatch.setattr(files, "_holders", {})
    return files


def _held(disk: LogDir) -> int:
    return len([flags for flags in descriptors(str(disk.path), ".log") if not flags & os.O_RDWR])


def test_a_quiet_log_s_file_is_closed_and_its_growth_seen_by_a_stat(few: OpenFiles, station: Station, disk: LogDir) -> None:
    logs = [partition(disk, f"t{number}", topic_id=number + 1) for number in range(12)]
    for log in logs:
        log.append(batch(1))
    for _ in range(3):
        station.look()
        assert _held(disk) <= few.most
    closed = [tail for tail in station.watcher.tails() if tail.calm and tail.file is None]
    assert len(closed) >= len(logs) - few.most
    station.look(set())
    assert [tail for tail in closed if tail.file is not None] == []  # what has not grown is not opened
    assert {tail.looked_ms for tail in closed} == {station.clock.now}
    for log in logs:
        log.append(batch(2))
    station.look(set())  # without a survey, and no hint of an append
    assert [station.fold_of(f"t{number}").records for number in range(12)] == [3] * 12
    logs[1].roll()
    logs[1].append(batch(4))
    station.look()
    assert station.fold_of("t1").records == 7
    logs[2].truncate(0)
    logs[2].append(batch(6), leader_epoch=1)
    station.look()
    assert station.fold_of("t2").next_offset == 6
    assert _held(disk) <= few.most


@dataclass(eq=False)
class Held:
    """A file that may be closed or not."""

    files: OpenFiles
    calm: bool = True
    stays: bool = False
    closed: bool = field(default=False, init=False)

    def rest(self) -> bool:
        if not self.stays:
            self.closed = True
            self.files.closed(self)
        return not self.stays


def test_quiet_ones_go_first_then_the_oldest_and_those_that_must_stay_do() -> None:
    files = OpenFiles(8)
    held = [Held(files, calm=number in (5, 6), stays=number == 0) for number in range(9)]
    for each in held:
        files.opened(each)
    assert [number for number, each in enumerate(held) if each.closed] == [5, 6]
    assert len(files) == 7
    more = [Held(files, calm=False) for _ in range(2)]
    for each in more:
        files.opened(each)
    assert [number for number, each in enumerate(held) if each.closed] == [1, 2, 5, 6]


def test_where_descriptors_run_out_all_the_same_fewer_are_held(caplog: pytest.LogCaptureFixture) -> None:
    files = OpenFiles(1000)
    held = [Held(files) for _ in range(8)]
    for each in held:
        files.opened(each)
    assert not files.ran_short(OSError(errno.EIO, "x"))
    assert files.ran_short(OSError(errno.EMFILE, "x"))
    assert (files.most, len(files)) == (6, 6)
    assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 1
    assert not OpenFiles(5).ran_short(OSError(errno.EMFILE, "x"))  # there is nothing to close
