"""The line that shows how far long work is, on a real terminal: a pty."""

import json
import logging
import os
import pty
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.common.progress_line import ProgressLine
from streaming.simulator.batch_writer import Batch
from streaming.simulator.coordinators import offset_commit_record
from streaming.terminal.cli.run import StartLog, start_shown
from tests.builders import NOW, batch, log_dir, partition
from tests.clocks import Clock
from tests.limits import SECONDS

ERASE = "\r\x1b[K"
SLOW = {"count": "2MiB", "transactions": "2MiB", "retention": "2MiB", "groups": "1MiB"}
"""How many bytes of `disk` a command reads in a second: what it reads takes two or three of them, however fast the machine is."""


@pytest.fixture
def terminal() -> Iterator["Terminal"]:
    made = Terminal()
    yield made
    made.close()


class Terminal:
    """A terminal of some columns, and what was written to it."""

    def __init__(self) -> None:
        self._master, self.fd = pty.openpty()
        os.set_blocking(self._master, False)
        self.file = os.fdopen(os.dup(self.fd), "w")

    def written(self) -> str:
        found = b""
        while True:
            try:
                found += os.read(self._master, 65536)
            except BlockingIOError:
                return found.decode()

    def close(self) -> None:
        self.file.close()
        os.close(self.fd)
        os.close(self._master)


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three MiB in active segments, and two of commits."""
    made = log_dir(tmp_path_factory.mktemp("progress"))
    for number in range(3):
        log = partition(made, "t", number, segment_bytes=4 << 20)
        for _ in range(16):
            log.append(batch(64, value_bytes=1000))
    coordinator = partition(made, "__consumer_offsets", segment_bytes=4 << 20)
    commits = tuple(offset_commit_record("g", "t", number % 3, number, NOW) for number in range(1000))
    for _ in range(28):
        coordinator.append(Batch(records=commits))
    return made.path


def test_bytes_rate_and_time_left_are_shown_after_a_second_and_removed(terminal: Terminal) -> None:
    clock = Clock()
    line = ProgressLine(terminal.file, 10 << 20, clock)
    line.add(1 << 20)
    clock.now += 0.99
    line.add(1 << 20)
    assert terminal.written() == ""
    clock.now += 1.01
    line.add(2 << 20)
    clock.now += 0.1
    line.add(1)  # too soon to be seen
    assert terminal.written() == f"{ERASE}4.0 MiB of 10.0 MiB read (40 %), 2.0 MiB/s, 3s left"
    line.clear()
    line.clear()
    assert terminal.written() == ERASE


def test_work_of_unknown_size_has_no_time_left(terminal: Terminal) -> None:
    clock = Clock()
    line = ProgressLine(terminal.file, clock=clock)
    clock.now += 2
    line.add(4 << 20)
    assert terminal.written() == f"{ERASE}4.0 MiB read, 2.0 MiB/s"
    line.expect(3 << 20)  # less than is done by now: it has grown meanwhile
    clock.now += 2
    line.add(0)
    assert terminal.written() == f"{ERASE}4.0 MiB read, 1.0 MiB/s"


def test_positions_of_one_file_after_the_other_add_up(terminal: Terminal) -> None:
    clock = Clock()
    line = ProgressLine(terminal.file, clock=clock)
    for position in (100, 200, 50):
        line(position)
    clock.now += 2
    line(56)
    assert terminal.written() == f"{ERASE}256 B read, 128 B/s"


def test_a_sentence_is_shown_in_place_of_bytes(terminal: Terminal) -> None:
    line = ProgressLine(terminal.file, clock=(clock := Clock()))
    for sentence in ("Starting Spark", "Reading the disks: 41 %"):
        clock.now += 2
        line.show(sentence)
    assert terminal.written() == f"{ERASE}Starting Spark{ERASE}Reading the disks: 41 %"


def test_without_a_terminal_each_step_of_a_start_is_logged_and_then_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    starts = StartLog()
    sentences = ["Starting Spark", "Reading the disks: 1 %", "Reading the disks: 2 %", "Reading the disks: 9 %"]
    for at, sentence in zip((0.2, 1.0, 2.0, 17.0), sentences, strict=True):
        starts.take(sentence, at)
    assert [vars(each)["progress"] for each in caplog.records] == ["Reading the disks: 1 %", "Reading the disks: 9 %"]


def test_a_log_message_removes_the_line_of_a_job_that_begins(terminal: Terminal) -> None:
    line, shown = ProgressLine(terminal.file, clock=(clock := Clock())), threading.Event()

    def sentence() -> str:
        if shown.is_set() and clock.now > 104:
            return ""
        clock.now += 2
        shown.set()
        return "Reading the disks"

    handler = logging.StreamHandler(terminal.file)
    logging.getLogger().addHandler(handler)
    try:
        with start_shown(sentence, line):
            assert shown.wait(SECONDS)
            while not line._drawn:
                pass
            logging.getLogger().warning("something")
    finally:
        logging.getLogger().removeHandler(handler)
    assert re.search(f"disks{re.escape(ERASE)}something", terminal.written())


def test_short_work_and_no_terminal_show_nothing(terminal: Terminal) -> None:
    line = ProgressLine(terminal.file, clock=Clock())
    line.add(1 << 30)
    line.clear()
    silent = ProgressLine(None, clock=(clock := Clock()))
    clock.now += 9
    silent.add(1 << 30)
    silent.clear()
    assert terminal.written() == ""


def on_terminal(terminal: Terminal, *arguments: str, term: str = "xterm") -> subprocess.CompletedProcess[str]:
    """Run a command with its stderr on the terminal."""
    return subprocess.run(
        [sys.executable, "-m", "streaming.terminal.cli", *arguments],
        stdout=subprocess.PIPE,
        stderr=terminal.fd,
        text=True,
        check=False,
        env=os.environ | {"TERM": term, "NO_COLOR": "1"},
    )


@pytest.mark.slow
@pytest.mark.parametrize("command", SLOW)
def test_slow_commands_show_it_beside_their_answer(command: str, disk: Path, terminal: Terminal) -> None:
    done = on_terminal(terminal, command, "--log-dirs", str(disk), "--json", "--set", f"read_rate={SLOW[command]}")
    seen = terminal.written()
    json.loads(done.stdout)
    assert re.search(r"\d [KM]iB/s", seen)
    assert seen.rpartition(ERASE)[2] == "" or seen.endswith("\n")
    assert "\x1b" not in seen.replace(ERASE, "")


def test_a_terminal_that_cannot_erase_gets_nothing(disk: Path, terminal: Terminal) -> None:
    on_terminal(terminal, "count", "--log-dirs", str(disk), "--json", "--set", f"read_rate={SLOW['count']}", term="dumb")
    assert "MiB" not in terminal.written()
