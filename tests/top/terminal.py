"""A real terminal for a command: a pty with an emulator that shows what a user sees."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import pyte

from tests.limits import SECONDS

_OWN = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"
"""Makes the pty the terminal that the process is controlled from."""


class Terminal:
    """``screen`` is what is seen, ``output`` all bytes that were written."""

    def __init__(self, command: Sequence[str], columns: int, lines: int, **environment: str) -> None:
        self.screen = pyte.Screen(columns, lines)
        self.output = b""
        self._stream = pyte.ByteStream(self.screen)
        self.master, self.slave = pty.openpty()
        self._resize(columns, lines)
        values = {
            key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS", "LINES", "FORCE_COLOR", "COLORTERM")
        }
        self.process = subprocess.Popen(
            [sys.executable, "-c", _OWN, *command],
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            start_new_session=True,
            env={**values, "TERM": "xterm-256color", "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        )

    @property
    def lines(self) -> list[str]:
        """The screen, without spaces at the ends of lines."""
        return [line.rstrip() for line in self.screen.display]

    @property
    def text(self) -> str:
        """The screen as one text."""
        return "\n".join(self.lines)

    def press(self, keys: str) -> None:
        """Type."""
        os.write(self.master, keys.encode())

    def resize(self, columns: int, lines: int) -> None:
        """Another size, as a window manager makes it."""
        self.screen.resize(lines, columns)
        self._resize(columns, lines)

    def wait(self, holds: Callable[[], bool]) -> None:
        """Show what is written until this holds."""
        until = time.monotonic() + SECONDS
        while not holds():
            assert time.monotonic() < until, f"after {SECONDS} seconds the terminal shows\n{self.text}"
            self.read(0.1)

    def see(self, *texts: str) -> None:
        """Wait until all of these are on the screen."""
        self.wait(lambda: all(text in self.text for text in texts))

    def read(self, seconds: float = 0.0) -> None:
        """Show what is written within a time."""
        while select.select([self.master], [], [], seconds)[0]:
            data = os.read(self.master, 65536)
            self.output += data
            self._stream.feed(data)
            seconds = 0.0

    def ended(self) -> int:
        """Wait for the end of the process; its exit status."""
        self.wait(lambda: self.process.poll() is not None)
        self.read()
        return self.process.returncode

    @property
    def is_ordinary(self) -> bool:
        """Whether the terminal echoes and waits for whole lines, as a shell expects it."""
        flags = termios.tcgetattr(self.slave)[3]
        return bool(flags & termios.ECHO) and bool(flags & termios.ICANON)

    def _resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))


@contextmanager
def terminal(command: Sequence[str], columns: int = 100, lines: int = 24, **environment: str) -> Iterator[Terminal]:
    """A terminal for as long as a test wants it; the command and what it started end with it."""
    shown = Terminal(command, columns, lines, **environment)
    try:
        yield shown
    finally:
        with suppress(ProcessLookupError):
            os.killpg(shown.process.pid, signal.SIGKILL)
        shown.process.wait()
        os.close(shown.master)
        os.close(shown.slave)
