"""`segtail top` on a terminal: keys and answers change the state, and the state is drawn."""

import time
from dataclasses import replace

from rich.console import Console

from streaming.terminal.top.arriving import answered, failed, ticked
from streaming.terminal.top.asker import Asker, Failure
from streaming.terminal.top.frame import drawn
from streaming.terminal.top.held_logs import held_logs
from streaming.terminal.top.painter import Painter, to_clipboard
from streaming.terminal.top.pressing import pressed
from streaming.terminal.top.questions import Question, Source
from streaming.terminal.top.raw_terminal import Ended, RawTerminal
from streaming.terminal.top.scrolling import resized
from streaming.terminal.top.top_state import ScreenState, question

_TICK_SECONDS = 1.0
_BY_SIGNAL = 128
"""Exit status after a signal, as in a shell: this and its number."""


def watch(source: Source, state: ScreenState, console: Console) -> int:
    """Show the source until a key or a signal ends it; the exit status.

    Raises:
        KeyboardInterrupt: by Ctrl-C.
    """
    try:
        with held_logs(), RawTerminal() as terminal:
            _Loop(terminal, Asker(source, terminal.wake), Painter(console), resized(state, *terminal.size())).run()
    except Ended as end:
        return _BY_SIGNAL + end.number
    return 0


def is_due(state: ScreenState, asked: Question | None, asked_at: float) -> bool:
    """Whether to ask now: for another screen at once, else as often as is wanted, and not while paused."""
    if state.again or question(state) != asked:
        return True
    return not state.paused and state.every > 0 and state.now - asked_at >= state.every


class _Loop:
    def __init__(self, terminal: RawTerminal, asker: Asker, painter: Painter, state: ScreenState) -> None:
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
