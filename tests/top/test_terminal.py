"""The command in a real terminal, beside a server with a job's answers."""

import os
import re
import shlex
import signal
import sys
import threading
from base64 import b64decode
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from tests.top.fake_job import COMMAND, FakeJob, serving, status, troubled
from tests.top.terminal import Terminal, terminal

pytestmark = pytest.mark.slow


def top(url: str, *options: str) -> list[str]:
    """The command line."""
    return [sys.executable, "-m", "streaming.terminal.cli", "top", "--job", url, *options]


@pytest.fixture
def job() -> FakeJob:
    return troubled()


@pytest.fixture
def url(job: FakeJob) -> Iterator[str]:
    with serving(job) as found:
        yield found


def free_port() -> int:
    """A port at which nobody listens."""
    with serving(troubled()) as url:
        return int(url.rpartition(":")[2])


def test_a_command_is_found_opened_and_copied_by_keys_alone(url: str) -> None:
    with terminal(top(url), 110) as shown:
        shown.see("1 transaction hangs", "[1 problems]", "orders-7 is held up")
        shown.press("\r")
        shown.see("holds back", COMMAND)
        shown.press("c")
        shown.see("Sent to the clipboard")
        copied = re.search(rb"\x1b\]52;c;([A-Za-z0-9+/=]*)\x07", shown.output)
        assert copied is not None
        assert b64decode(copied[1]).decode() == COMMAND
        shown.press("\r")
        shown.see("open transaction of producer 4711")
        shown.press("\x1b")
        shown.see("holds back")
        shown.press("q")
        assert shown.ended() == 0


def test_views_sort_filter_and_page_as_keys_ask(url: str, job: FakeJob) -> None:
    with terminal(top(url, "--view", "partitions"), 100, 30) as shown:
        shown.see("Bytes/s▼", "orders-299")
        shown.press("\x1b[F")
        shown.see("300 of 300", "orders-0 ")
        shown.press("B")
        shown.see("Bytes/s▲", "1 of 300")
        shown.press("/orders\r")
        shown.see("filter: orders (300 of 300)")
        shown.press("\t")
        shown.see("[3 transactions]", "hanging")
        shown.press("5")
        shown.see("billing", "held")
        shown.press("?")
        shown.see("shift and letter")
    assert any("sort=bytes_rate&order=asc&filter=orders&offset=0" in path for path in job.asked)


def test_the_terminal_s_cursor_is_on_the_chosen_row_for_screen_readers(url: str) -> None:
    with terminal(top(url, "--view", "partitions")) as shown:
        shown.see("orders-299")
        shown.press("jj")
        shown.wait(lambda: shown.lines[shown.screen.cursor.y].startswith("orders-297"))
        assert not shown.screen.cursor.hidden


def test_it_is_drawn_anew_for_another_size_down_to_a_few_columns(url: str) -> None:
    with terminal(top(url, "--view", "partitions")) as shown:
        shown.see("Open")
        for columns, lines in ((40, 12), (10, 3), (120, 40)):
            shown.resize(columns, lines)
            os.kill(shown.process.pid, signal.SIGWINCH)
            shown.wait(lambda lines=lines: shown.lines[lines - 1].startswith("? help") or lines < 12)
        shown.see("Broker", "orders-280", "────")
        shown.press("q")
        assert shown.ended() == 0


def test_a_job_that_starts_answers_goes_and_comes_back(job: FakeJob) -> None:
    port = free_port()
    with ExitStack() as first, terminal(top(f"http://127.0.0.1:{port}", "--every", "0.5"), 120) as shown:
        shown.see("not known yet: http://127.0.0.1", "Connection refused")
        job.error = 503
        server = first.enter_context(ExitStack())
        server.enter_context(serving(job, port))
        shown.see("503 Service Unavailable: starting")
        job.error = 0
        shown.see("1 transaction hangs", "orders-7 is held up")
        server.close()
        shown.see("not current: ", "Connection refused", "old, of 2026-05-28T20:26:40Z", "orders-7 is held up")
        assert not any(line.startswith("1 transaction hangs") for line in shown.lines[:1])
        with serving(replace(job, status=status(at_ms=job.status.at_ms + 60_000), problems=[]), port):
            shown.see("nothing is wrong in 3 partitions", "No problems.")
            shown.press("q")
            assert shown.ended() == 0


def test_keys_work_while_a_job_does_not_answer_and_what_is_shown_grows_old(url: str, job: FakeJob) -> None:
    with terminal(top(url, "--every", "0.5")) as shown:
        shown.see("orders-7 is held up")
        job.hold = threading.Event()
        shown.see("not current: ")
        shown.press("?")
        shown.see("shift and letter")
        shown.press("q")
        assert shown.ended() == 0


@pytest.mark.parametrize(("number", "ending"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_the_terminal_is_as_before_after_a_signal(url: str, number: signal.Signals, ending: int) -> None:
    with terminal(top(url)) as shown:
        shown.see("orders-7 is held up")
        assert not shown.is_ordinary
        os.kill(shown.process.pid, number)
        assert shown.ended() == ending
        assert is_restored(shown)


def test_ctrl_c_ends_it(url: str) -> None:
    with terminal(top(url)) as shown:
        shown.see("orders-7 is held up")
        shown.press("\x03")
        assert shown.ended() == 130
        assert is_restored(shown)


def test_the_terminal_is_as_before_after_a_bug(url: str) -> None:
    broken = (
        "import sys; from streaming.terminal.top import watching; watching.drawn = lambda state: 1 / 0; "
        "from streaming.terminal.cli.app import main; main()"
    )
    with terminal([sys.executable, "-c", broken, "top", "--job", url]) as shown:
        assert shown.ended() == 1
        assert is_restored(shown)
        assert b"ZeroDivisionError" in shown.output.rpartition(b"\x1b[?1049l")[2]


def test_ctrl_z_gives_the_terminal_back_and_fg_takes_it_again(url: str) -> None:
    with terminal(["bash", "--norc", "--noprofile", "-i"], PS1="ready> ") as shown:
        shown.see("ready>")
        shown.press(shlex.join(top(url)) + "\r")
        shown.see("[1 problems]")
        shown.press("\x1a")
        shown.see("Stopped")
        assert is_restored(shown)
        shown.press("clear; fg\r")
        shown.see("[1 problems]")
        shown.wait(lambda: not shown.is_ordinary)
        shown.press("2")
        shown.see("[2 partitions]")
        shown.press("q")
        shown.see("ready>")
        shown.press("echo ended $?\r")
        shown.see("ended 0")


def is_restored(shown: Terminal) -> bool:
    """Whether the other screen was left, lines are wrapped again, and the terminal echoes."""
    shown.read()
    left, _, after = shown.output.rpartition(b"\x1b[?1049l")
    return bool(left) and b"\x1b[?1049h" not in after and left.endswith(b"\x1b[0m") and b"\x1b[?7h" in left[-20:]


def test_without_colours_there_are_none_and_words_say_the_same(url: str) -> None:
    with terminal(top(url), NO_COLOR="1") as shown:
        shown.see("1 transaction hangs", "critical  orders-7")
        assert not re.search(rb"\x1b\[[0-9;]*(3[0-7]|38|9[0-7])[0-9;]*m", shown.output)
    with terminal(top(url)) as shown:
        shown.see("1 transaction hangs")
        assert re.search(rb"\x1b\[[0-9;]*31m", shown.output)


def test_a_dumb_terminal_gets_labelled_lines_once(url: str) -> None:
    with terminal(top(url), TERM="dumb") as shown:
        assert shown.ended() == 3
        assert b"\x1b" not in shown.output
        assert shown.text.startswith("verdict: 1 transaction hangs")
