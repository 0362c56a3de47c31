"""`segtail top` on a terminal: keys and answers change the state, and the state is drawn."""

import io
import logging
import sys
import time
from base64 import b64encode
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from streaming.terminal.top.arriving import answered, failed, ticked
from streaming.terminal.top.asker import Asker, Failure
from streaming.terminal.top.frame import Frame, drawn
from streaming.terminal.top.pressing import pressed
from streaming.terminal.top.questions import AnswerSource, Question
from streaming.terminal.top.raw_terminal import Ended, RawTerminal
from streaming.terminal.top.scrolling import resized
from streaming.terminal.top.top_state import ScreenState, question

_TICK_SECONDS = 1.0
_MOST_HELD = 200
"""The most pieces of log messages that are held."""

_BY_SIGNAL = 128
"""Exit status after a signal, as in a shell: this and its number."""


def watch(source: AnswerSource, state: ScreenState, console: Console) -> int:
    """Show the source until a key or a signal ends it; the exit status.

    Raises:
        KeyboardInterrupt: by Ctrl-C.
    """
    try:
        with held_logs(), RawTerminal() as terminal:
            _Loop(terminal, Asker(source, terminal.wake), ScreenPainter(console), resized(state, *terminal.size())).run()
    except Ended as end:
        return _BY_SIGNAL + end.number
    return 0


def is_due(state: ScreenState, last_question: Question | None, asked_at: float) -> bool:
    """Whether to ask now: for another screen at once, else as often as is wanted, and not while paused."""
    if state.again or question(state) != last_question:
        return True
    return not state.paused and state.every > 0 and state.now - asked_at >= state.every


class ScreenPainter:
    """Remembers what is on the screen. ``console`` says which colours there are, by the terminal and by NO_COLOR."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lines: list[str] = []

    def forget(self) -> None:
        """The screen holds something else now."""
        self._lines = []

    def changes(self, frame: Frame) -> str:
        """What has to be written so that the terminal shows this frame, with its cursor at the frame's row."""
        lines = [self._rendered(line) for line in frame.lines]
        pieces = [] if self._lines else ["\x1b[2J"]
        for number, line in enumerate(lines):
            if number >= len(self._lines) or self._lines[number] != line:
                pieces.append(f"\x1b[{number + 1};1H\x1b[2K{line}")
        self._lines = lines
        return f"{''.join(pieces)}\x1b[{frame.row + 1};1H"

    def _rendered(self, line: Text) -> str:
        with self._console.capture() as captured:
            self._console.print(line, end="", soft_wrap=True)
        return captured.get()


def to_clipboard(text: str) -> str:
    """The control sequence that puts a text into the clipboard of the terminal, also over ssh (OSC 52)."""
    return f"\x1b]52;c;{b64encode(text.encode()).decode()}\x07"


class _HeldText(io.TextIOBase):
    def __init__(self) -> None:
        self.pieces: deque[str] = deque(maxlen=_MOST_HELD)

    def write(self, text: str) -> int:
        self.pieces.append(text)
        return len(text)


@contextmanager
def held_logs() -> Iterator[None]:
    """Hold what is logged to a terminal. A log that goes elsewhere is not touched."""
    text = _HeldText()
    handlers = [each for each in logging.getLogger().handlers if isinstance(each, logging.StreamHandler) and each.stream.isatty()]
    before = [each.setStream(text) for each in handlers]
    try:
        yield
    finally:
        for handler, stream in zip(handlers, before, strict=True):
            handler.setStream(stream)
        sys.stderr.write("".join(text.pieces))


class _Loop:
    def __init__(self, terminal: RawTerminal, asker: Asker, painter: ScreenPainter, state: ScreenState) -> None:
        self._terminal = terminal
        self._asker = asker
        self._painter = painter
        self._state = state
        self._asked: Question | None = None
        self._asked_at = 0.0

    def run(self) -> None:
        while not self._state.over:
            self._ask()
            self._terminal.write(self._painter.changes(drawn(self._state)))
            keys, anew = self._terminal.wait(_TICK_SECONDS)
            if anew:
                self._painter.forget()
                self._state = resized(self._state, *self._terminal.size())
            self._state = ticked(self._state, time.monotonic())
            for key in keys:
                self._press(key)
            for result in self._asker.results():
                now = time.monotonic()
                if isinstance(result, Failure):
                    self._state = failed(self._state, result.why, now)
                else:
                    self._state = answered(self._state, result, now)

    def _press(self, key: str) -> None:
        if key == "redraw":
            self._painter.forget()
            return
        self._state = pressed(self._state, key)
        if self._state.to_copy:
            self._terminal.write(to_clipboard(self._state.to_copy))
            self._state = replace(self._state, to_copy="")

    def _ask(self) -> None:
        self._state = ticked(self._state, time.monotonic())
        state, wanted = self._state, question(self._state)
        if not is_due(state, self._asked, self._asked_at) or (self._asker.busy and wanted == self._asked and not state.again):
            return
        self._asker.ask(wanted, again=state.again or wanted == self._asked)
        self._state = replace(state, again=False)
        self._asked, self._asked_at = wanted, state.now
