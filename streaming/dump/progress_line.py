"""Shows the progress of a long dump on a terminal: one line that is overwritten, and removed at the end."""

import sys
from time import monotonic
from typing import TextIO

from streaming.formatting import format_size

_AFTER_SECONDS = 1.0
_EVERY_SECONDS = 0.2


class Progress:
    """Shown only if work takes longer than a second and the rows do not go to the same terminal."""

    def __init__(self, terminal: TextIO | None) -> None:
        self._terminal = terminal
        self._shown_at = monotonic() + _AFTER_SECONDS - _EVERY_SECONDS
        self._done = 0
        self._position = 0
        self._shown = False

    @classmethod
    def on_stderr(cls) -> "Progress":
        """Show it on stderr if that is a terminal and stdout is none."""
        return cls(sys.stderr if sys.stderr.isatty() and not sys.stdout.isatty() else None)

    def __call__(self, position: int) -> None:
        """Note a position in the present file; a smaller one belongs to the next file."""
        if position < self._position:
            self._done += self._position
        self._position = position
        if self._terminal is not None and monotonic() - self._shown_at >= _EVERY_SECONDS:
            self._shown_at, self._shown = monotonic(), True
            self._terminal.write(f"\r\033[K{format_size(self._done + position)} read ")
            self._terminal.flush()

    def clear(self) -> None:
        """Remove the line."""
        if self._terminal is not None and self._shown:
            self._terminal.write("\r\033[K")
            self._terminal.flush()
            self._shown = False
