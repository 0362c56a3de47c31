"""The terminal while `top` has it: every key at once, a screen of its own, and as it was before, however that ends."""

import codecs
import os
import re
import select
import signal
import sys
import termios
import tty
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

_NAMES = {
    "\x1b[A": "up", "\x1b[B": "down", "\x1b[C": "right", "\x1b[D": "left",
    "\x1bOA": "up", "\x1bOB": "down", "\x1bOC": "right", "\x1bOD": "left",
    "\x1b[5~": "pageup", "\x1b[6~": "pagedown",
    "\x1b[H": "home", "\x1b[F": "end", "\x1bOH": "home", "\x1bOF": "end",
    "\x1b[1~": "home", "\x1b[4~": "end", "\x1b[7~": "home", "\x1b[8~": "end",
    "\x1b[Z": "backtab", "\t": "tab", "\r": "enter", "\n": "enter", "\x1bOM": "enter",
    "\x7f": "backspace", "\x08": "backspace", "\x15": "clear", "\x0c": "redraw", "\x1b": "esc",
    "\x02": "pageup", "\x06": "pagedown", "\x04": "pagedown", "\x10": "up", "\x0e": "down",
}  # fmt: skip
"""The sequences of xterm, and what other terminals send for the same keys."""

_ONE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO[ -~]|\x1b(?=[^\[O])|[^\x1b]")
"""One key: a control sequence, whatever it is, or a character. A key with Alt is an escape and that key."""

_BEGIN = "\x1b[?1049h\x1b[?7l\x1b[2J"

_END = "\x1b[?7h\x1b[0m\x1b[?1049l"
"""Another screen, whose lines are not wrapped; and back to the one before."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT)

_ESCAPE_SECONDS = 0.05
"""After an escape, the rest of a key's bytes comes within this time."""

_Handler = Callable[[int, FrameType | None], Any] | int | None


class RawTerminal:
    """A context manager for the main thread. Signals wait in a pipe until `wait` reads them, so that none comes while a line is written."""

    def __init__(self) -> None:
        self._input = sys.stdin.fileno()
        self._rest = b""
        self._reader, self._writer = os.pipe()
        for end in (self._reader, self._writer):
            os.set_blocking(end, False)
        self._before: list[Any] = []
        self._handlers: dict[signal.Signals, _Handler] = {}
        self._wakeup = -1

    def __enter__(self) -> Self:
        self._before = termios.tcgetattr(self._input)
        self._handlers = {number: signal.signal(number, _noted) for number in _SIGNALS}
        self._wakeup = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        self._take()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._give_back()
        signal.set_wakeup_fd(self._wakeup)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        # The pipe stays: a thread that still asks may wake it.

    def wake(self) -> None:
        """End a `wait`. Any thread may call it."""
        try:
            os.write(self._writer, b"\0")
        except BlockingIOError:
            return  # it is full, so `wait` ends anyway

    def write(self, text: str) -> None:
        """Write to the screen at once."""
        sys.stdout.write(text)
        sys.stdout.flush()

    def size(self) -> tuple[int, int]:
        """Columns and lines."""
        found = os.get_terminal_size(sys.stdout.fileno())
        return found.columns or 80, found.lines or 24

    def wait(self, seconds: float) -> tuple[tuple[str, ...], bool]:
        """Wait for keys, a signal or `wake`, at most so long.

        Returns:
            The keys; and whether the whole screen has to be drawn again, because its size is another one or something else was there.

        Raises:
            Ended: by a signal, or the end of the terminal's input.
            KeyboardInterrupt: by Ctrl-C.
        """
        ready, _, _ = select.select([self._input, self._reader], [], [], _ESCAPE_SECONDS if self._rest else seconds)
        noted = os.read(self._reader, 4096) if self._reader in ready else b""
        anew = sum(map(self._handle, noted)) > 0
        if self._input not in ready:
            keys, self._rest = decode(self._rest, final=True) if not ready else ((), self._rest)
            return keys, anew
        data = os.read(self._input, 4096)
        if not data:
            raise Ended(signal.SIGHUP)
        keys, self._rest = decode(self._rest + data)
        return keys, anew

    def _handle(self, number: int) -> bool:
        """Do what a signal asks for; True if the whole screen has to be drawn again."""
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        if number in (signal.SIGTERM, signal.SIGHUP):
            raise Ended(number)
        if number == signal.SIGTSTP:
            self._stop()
        elif number == signal.SIGCONT:
            self._take()  # another program may have had the terminal
        return number in (signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH)

    def _stop(self) -> None:
        """Stop as Ctrl-Z asks for, with the terminal as it was; this returns when the shell continues it."""
        self._give_back()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, _noted)
        self._take()

    def _take(self) -> None:
        tty.setcbreak(self._input, termios.TCSADRAIN)
        self.write(_BEGIN)

    def _give_back(self) -> None:
        termios.tcsetattr(self._input, termios.TCSADRAIN, self._before)
        self.write(_END)


def _noted(_number: int, _frame: FrameType | None) -> None:
    """Python writes the signal's number into the pipe; a handler has to be there for that."""


def decode(data: bytes, *, final: bool = False) -> tuple[tuple[str, ...], bytes]:
    """Split bytes into keys, and what may be the beginning of one more.

    Args:
        final: nothing follows for now, so that an escape alone is the key ``esc``.

    Returns:
        The keys, a character or a name of several letters each; and the bytes to put before those that come next. Keys that have no
        meaning here are left out.
    """
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    text = decoder.decode(data, final)
    rest = decoder.getstate()[0]
    keys, position = [], 0
    while match := _ONE.match(text, position):
        keys.append(match[0])
        position = match.end()
    left = text[position:]
    if final:  # of a sequence that is not whole nothing is left, except for the two keys that look like the beginning of one
        keys, left = keys + {"\x1b": ["\x1b"], "\x1bO": ["\x1b", "O"]}.get(left, []), ""
    named = (_NAMES.get(each, each if len(each) == 1 and each.isprintable() else "") for each in keys)
    return tuple(each for each in named if each), left.encode() + rest


class Ended(Exception):  # noqa: N818 - it is the end that a signal asked for, and no error
    """A signal asks for the end; ``number`` is the signal's."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number
