"""The demo: what it takes when nothing is given, and once as a process from its first line to its end."""

import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from streaming.common.settings import Settings
from streaming.common.start_from import StartFrom
from streaming.common.units import Address
from streaming.errors import quoted
from streaming.spark.job.checkpoint import Checkpoint
from streaming.terminal.cli.demo import free_address, with_demo_defaults
from tests import job_environment
from tests.commands import run_command
from tests.limits import SECONDS
from tests.marked_processes import marked
from tests.ports import free_ports
from tests.processes import MARK
from tests.top import terminal as screens


def settings(**values: object) -> Settings:
    return Settings.model_validate(values)


def test_nothing_given_means_from_the_first_byte_on_with_a_checkpoint_of_its_own(tmp_path: Path) -> None:
    chosen = with_demo_defaults(settings(), tmp_path)
    assert chosen.start_from is StartFrom.EARLIEST
    assert chosen.checkpoint.parent == tmp_path


def test_its_help_has_the_defaults_that_it_takes() -> None:
    shown = " ".join(run_command("demo", "--help").stdout.split())
    assert f"[default: {with_demo_defaults(settings(), Path()).start_from}]" in shown
    assert "[default: a temporary one, removed at the end]" in shown
    assert str(Settings().checkpoint) not in shown


def test_what_is_given_stands(tmp_path: Path) -> None:
    given = settings(**{"from": "latest", "checkpoint": "/given", "listen": f"127.0.0.1:{free_ports(1)[0]}", "log_level": "debug"})
    assert with_demo_defaults(given, tmp_path) == given


def test_the_checkpoint_of_an_earlier_demo_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    earlier = tmp_path / "earlier"
    Checkpoint(earlier, "an-earlier-cluster", "auto").close()
    before = sorted(earlier.rglob("*"))
    ended = run_command("demo", "--checkpoint", earlier)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert f"--checkpoint {quoted(str(earlier))} is of an earlier job or demo" in ended.stderr
    assert "name a directory that is not there yet" in ended.stderr
    assert sorted(earlier.rglob("*")) == before


def test_another_port_is_taken_where_one_is_in_use() -> None:
    free = Address("127.0.0.1", free_ports(1)[0])
    assert free_address(free) == free
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = Address("127.0.0.1", other.getsockname()[1])
        assert free_address(taken) == Address("127.0.0.1", 0)


class Lines:
    """The lines of a process's standard output as they come."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        self._fd = process.stdout.fileno()
        self._rest = b""
        self._last = ""

    def __iter__(self) -> Iterator[str]:
        deadline = time.monotonic() + SECONDS
        while True:
            line, newline, rest = self._rest.partition(b"\n")
            if newline:
                self._rest, self._last = rest, line.decode()
                deadline = time.monotonic() + SECONDS
                yield self._last
                continue
            ready, _, _ = select.select([self._fd], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"no line for {SECONDS} s; the last one was {self._last!r}"
            read = os.read(self._fd, 65536)
            if not read:
                return
            self._rest += read


def left_running(mark: str) -> list[str]:
    """Command lines of the processes that carry ``mark`` in their environment and do not end soon."""
    left = []
    for process in marked(mark):
        with suppress(ProcessLookupError):  # ended meanwhile
            ended = os.pidfd_open(process.pid)
            if not select.select([ended], [], [], SECONDS)[0]:
                left.append(process.command)
            os.close(ended)
    return left


@pytest.mark.spark
@pytest.mark.usefixtures("java_home")
def test_demo_shows_moving_numbers_and_leaves_nothing_behind(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SEGTAIL_")}
    environ = clean | job_environment.of_command(["demo"]) | {"TMPDIR": str(scratch), MARK: str(scratch)}
    process = subprocess.Popen(
        [sys.executable, "-m", "streaming.terminal.cli", "demo", "--listen", "127.0.0.1:0"],
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        env=environ,
        cwd=Path(__file__).parents[2],
    )
    try:
        lines = Lines(process)
        url = first_url(lines)
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/metrics", url)
        first: dict[str, int] = {}
        for line in lines:
            reported = re.match(r"partition: (\S+), bytes/s \S.*end offset (\d+)", line)
            if reported and int(reported[2]) > first.setdefault(reported[1], int(reported[2])):
                break
        with urllib.request.urlopen(url, timeout=SECONDS) as answer:
            page = answer.read().decode()
        assert 'segtail_partition_appended_bytes_total{broker="1",topic="web.clicks",partition="0"}' in page
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 0
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    assert left_running(f"{MARK}={scratch}") == []
    assert list(scratch.iterdir()) == []


@pytest.mark.spark
@pytest.mark.usefixtures("java_home")
def test_on_a_terminal_it_opens_on_what_is_wrong_and_q_ends_it(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    command = [sys.executable, "-m", "streaming.terminal.cli", "demo", "--listen", "127.0.0.1:0"]
    environ = job_environment.of_command(["demo"]) | {"TMPDIR": str(scratch), MARK: str(scratch)}
    with screens.terminal(command, columns=150, lines=40, **environ) as shown:
        shown.see("Stuck transactions in topic payments", "Hanging transactions in topic invoices", "topic mobile.events")
        shown.press("q")
        assert shown.ended() == 0
        assert shown.is_ordinary
    assert left_running(f"{MARK}={scratch}") == []
    assert list(scratch.iterdir()) == []


def first_url(lines: Lines) -> str:
    for line in lines:
        found = re.search(r"\w+://\S+", line)
        if found:
            return found[0]
    raise AssertionError("the demo ended without a URL")
