"""The command in tmux: its screen, its size, and its clipboard."""

import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.limits import SECONDS
from tests.tools import require_tool
from tests.top.fake_job import COMMAND, serving, troubled

pytestmark = [pytest.mark.programs, pytest.mark.slow]


class Pane:
    """A window of a tmux server of its own."""

    def __init__(self, socket: Path) -> None:
        self._command = [str(require_tool("tmux")), "-S", str(socket), "-f", "/dev/null"]

    def run(self, *words: str) -> str:
        """A command of tmux, and what it prints."""
        return subprocess.run([*self._command, *words], check=True, capture_output=True, text=True).stdout

    def see(self, holds: Callable[[str], bool]) -> str:
        """Wait until this holds of the pane's text."""
        until = time.monotonic() + SECONDS
        while not holds(text := self.run("capture-pane", "-p")):
            assert time.monotonic() < until, text
        return text


@pytest.fixture
def pane(tmp_path: Path) -> Iterator[Pane]:
    made = Pane(tmp_path / "tmux")
    made.run("new-session", "-d", "-x", "100", "-y", "24", "bash --norc --noprofile", ";", "set", "-g", "set-clipboard", "on")
    yield made
    made.run("kill-server")


def test_it_is_drawn_sized_and_copied_from_in_tmux(pane: Pane) -> None:
    with serving(troubled()) as url:
        pane.run("send-keys", shlex.join([sys.executable, "-m", "streaming.terminal.cli", "top", "--job", url]), "Enter")
        pane.see(lambda text: "orders-7 is held up" in text)
        pane.run("send-keys", "c")
        pane.see(lambda text: "Sent to the clipboard" in text)
        pane.see(lambda _: pane.run("list-buffers") != "")
        assert pane.run("show-buffer").strip() == COMMAND
        pane.run("resize-window", "-x", "40", "-y", "12")
        pane.run("send-keys", "2")
        text = pane.see(lambda text: "[2 partitions]" in text and "orders-299" in text)
        assert len(text.splitlines()) == 12
        assert max(map(len, text.splitlines())) <= 40
        pane.run("send-keys", "Escape")
        pane.run("send-keys", "q")
        pane.see(lambda text: "[2 partitions]" not in text and text.rstrip().endswith(("$", "#")))
