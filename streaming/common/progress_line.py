"""Shows on a terminal how far long work is: one line that is overwritten, and removed at the end."""

import os
import sys
from collections.abc import Callable
from threading import Lock
from time import monotonic
from types import TracebackType
from typing import Self, TextIO

from streaming.common.units import format_duration, format_size

_AFTER_SECONDS = 1.0
_EVERY_SECONDS = 0.2
_COLUMNS = 80
_ERASE = "\r\033[K"


class ProgressLine:
    """Bytes, their rate and the time left. Shown only if work takes longer than a second.

    One thread does the work; any thread may clear the line.

    Args:
        terminal: None to show nothing.
        whole: how many bytes there are in all, 0 if that is not known.
        clock: seconds.
    """

    def __init__(self, terminal: TextIO | None, whole: int = 0, clock: Callable[[], float] = monotonic) -> None:
        self._terminal = terminal
        self._whole = whole
        self._clock = clock
        self._began = clock()
        self._shown_at = self._began + _AFTER_SECONDS - _EVERY_SECONDS
        self._sentence = ""
        self._done = 0
        self._position = 0
        self._drawn = False
        self._lock = Lock()  # of the terminal

    @property
    def able(self) -> bool:
        """Whether anything would ever be shown."""
        return self._terminal is not None

    @classmethod
    def on_stderr(cls, *, with_rows: bool = False) -> Self:
        """Show it on stderr if that is a terminal on which a line can be erased.

        Args:
            with_rows: the work writes rows to stdout meanwhile. Then it is shown only if these go elsewhere.
        """
        able = sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        return cls(sys.stderr if able and not (with_rows and sys.stdout.isatty()) else None)

    def expect(self, size: int) -> None:
        """There are so many bytes more than was known."""
        self._whole += size

    def show(self, sentence: str) -> None:
        """Show a sentence in place of bytes: how far work of several steps is."""
        self._sentence = sentence
        self._show()

    def add(self, size: int) -> None:
        """So many bytes more are done."""
        self._done += size
        self._show()

    def __call__(self, position: int) -> None:
        """Note a position in the present file; a smaller one belongs to the next file."""
        if position < self._position:
            self._done += self._position
        self._position = position
        self._show()

    def _show(self) -> None:
        if self._terminal is None or self._clock() - self._shown_at < _EVERY_SECONDS:
            return
        with self._lock:
            self._shown_at, self._drawn = self._clock(), True
            self._terminal.write(_ERASE + self._text()[: _width(self._terminal) - 1])
            self._terminal.flush()

    def _text(self) -> str:
        if self._sentence:
            return self._sentence
        done = self._done + self._position
        rate = done / max(self._shown_at - self._began, _EVERY_SECONDS)
        if not 0 < done <= self._whole:
            goal = f" of {format_size(self._whole)}" if done < self._whole else ""
            return f"{format_size(done)}{goal} read, {format_size(round(rate))}/s"
        part, left = 100 * done // self._whole, format_duration((self._whole - done) / rate)
        return f"{format_size(done)} of {format_size(self._whole)} read ({part} %), {format_size(round(rate))}/s, {left} left"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.clear()

    def clear(self) -> None:
        """Remove the line, for other output or at the end."""
        if self._terminal is None:
            return
        with self._lock:
            if self._drawn:
                self._terminal.write(_ERASE)
                self._terminal.flush()
                self._drawn = False


def _width(terminal: TextIO) -> int:
    try:
        return os.get_terminal_size(terminal.fileno()).columns or _COLUMNS
    except (OSError, ValueError):
        return _COLUMNS
