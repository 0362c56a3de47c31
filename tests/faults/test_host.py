"""What an agent leaves of the host that it shares with a broker: files that cannot be written, and a page cache that is the broker's."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import streaming
from streaming.broker.scrub.scrub_progress import ScrubProgress
from streaming.broker.scrub.threads import WINDOW_BYTES, LogDirScrub
from streaming.simulator.batch_writer import Batch, Record
from streaming.simulator.log import LogDir
from tests.agents import Agent, Reader
from tests.builders import NOW, log_dir, partition
from tests.faults.consuming import Consumer
from tests.faults.disk import read_only
from tests.faults.writing import sizes, writing_broker
from tests.ports import free_ports
from tests.processes import until
from tests.tools import missing
from tests.worlds.page_cache import resident
from tests.worlds.services import service

pytestmark = pytest.mark.live

_VALUE = os.urandom(1 << 20)

_TRIES = 3
"""Some kernels let go of pages that somebody has just read, of any file: only what recurs counts."""


_ASKS = (
    "import sys; from pathlib import Path; sys.path.insert(0, sys.argv.pop(1))\n"
    "from streaming.broker.disk.broker_processes import ask_lock\n"
    "print(*(ask_lock(Path(each)).state for each in sys.argv[1:]))"
)


def test_log_dirs_that_are_mounted_read_only_and_locked_by_their_broker_are_followed(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    where = ("--listen", f"127.0.0.1:{port}", "--name", "reader")
    with writing_broker(tmp_path / "broker") as broker, read_only(tmp_path / "broker") as before:
        attempt = subprocess.run([*before, "touch", str(tmp_path / "broker" / "x")], check=False, capture_output=True)
        assert attempt.returncode != 0
        asks = [*before, sys.executable, "-c", _ASKS, str(Path(streaming.__file__).parents[1]), *broker.log_dirs.split(",")]
        asked = subprocess.run(asks, check=True, capture_output=True, text=True)
        assert {*asked.stdout.split()} == {"locked"}, "whoever may not write sees the lock of the broker"
        with service("agent", "agent", "--log-dirs", broker.log_dirs, *where, directory=tmp_path / "messages", before=before) as agent:
            consumer = Consumer(f"http://127.0.0.1:{port}")
            until("everything is published", lambda: consumer.bytes() == sizes(broker))
            broker.write_on(300)
            until("what is new, too", lambda: consumer.bytes() == sizes(broker))
            consumer.close()
            assert not any("level=error" in stated for stated in agent.messages())


def dropped(files: list[Path]) -> int:
    """Let the page cache go of files that were written just now. Returns their size."""
    os.sync()
    for path in files:
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if resident(files):
        missing("the temporary folder lies where pages cannot be let go of, as on a tmpfs")
    return sum(path.stat().st_size for path in files)


def test_a_backlog_that_was_read_is_not_left_in_the_page_cache(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, "t", 0, segment_bytes=32 << 20)
    for _ in range(100):
        log.append(Batch(records=(Record(None, _VALUE, NOW),)))
    files = [segment.path("log") for segment in log.segments]
    size = dropped(files)
    agent = Agent(disk.path)
    assert sum(row.bytes for row in Reader(agent).begin().step()) == size
    assert resident(files[:-1]) < size / 100, "an agent looks at the end of the active one, where its broker is"
    agent.close()


def test_the_scrub_leaves_nothing_in_the_page_cache_and_lets_go_of_nothing_that_others_have_there(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, "t", 0, segment_bytes=32 << 20)
    for _ in range(100):
        log.append(Batch(records=(Record(None, _VALUE, NOW),)))
    log.roll()
    log.append(Batch(records=(Record(None, b"", NOW),)))
    files = [segment.path("log") for segment in log.segments[:-1]]
    control = tmp_path / "control"
    control.write_bytes(files[0].read_bytes())
    kept = []
    while not kept or (kept[-1] < 0.9 and len(kept) < _TRIES):
        kept.append(_scrubbed(disk, files, control))
    assert kept[-1] >= 0.9, kept


def _scrubbed(disk: LogDir, files: list[Path], control: Path) -> float:
    """Scrub a log of which the first file is in the page cache. What is left of it there, against a file that nobody has scrubbed."""
    size = dropped([*files, control]) - control.stat().st_size
    for path in (files[0], control):
        path.read_bytes()
    scrub = LogDirScrub(disk.path, 1_000_000, lambda: NOW, ScrubProgress())
    buffer = np.empty(WINDOW_BYTES, np.uint8)
    while scrub.progress.ended_ms < 0:
        scrub.step(buffer)
    assert scrub.progress.checked == size
    assert resident(files[1:]) < size / 10
    return resident(files[:1]) / max(1, resident([control]))
