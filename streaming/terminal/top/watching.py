"""`segtail top` on a terminal: keys and answers change the state, and the state is drawn."""

from __future__ import annotations

import io
import logging
import sys
import threading
import time
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue

from rich.console import Console
from rich.text import Text

from streaming.broker.protocol.group_json import GroupSummary
from streaming.broker.protocol.json_message import DESC
from streaming.broker.protocol.listing_json import TransactionRow
from streaming.broker.protocol.status_json import ClusterEvent, Problem
from streaming.errors import SegtailError
from streaming.pages.listings.declared_lists import LISTS, advice
from streaming.terminal.top.frame import Frame, command_of, detail_lines, drawn
from streaming.terminal.top.questions import VIEWS, Answer, AnswerSource, DetailQuestion, ListQuestion, Question, Row, Rows
from streaming.terminal.top.raw_terminal import Ended, RawTerminal
from streaming.terminal.top.screen_parts import body_height, help_lines, resized, scrolled
from streaming.terminal.top.top_state import INTERVALS, Opened, ScreenState, key_of, question

_MOVES: dict[str, Callable[[int, int, int], int]] = {
    "up": lambda at, _page, _last: at - 1,
    "k": lambda at, _page, _last: at - 1,
    "down": lambda at, _page, _last: at + 1,
    "j": lambda at, _page, _last: at + 1,
    "pageup": lambda at, page, _last: at - page,
    "pagedown": lambda at, page, _last: at + page,
    " ": lambda at, page, _last: at + page,
    "home": lambda _at, _page, _last: 0,
    "end": lambda _at, _page, last: last,
}
"""Where a key moves the cursor: from its place, by the rows of a page, to the last row at most."""

LONGEST_FILTER = 200

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


class _HeldText(io.TextIOBase):
    def __init__(self) -> None:
        self.pieces: deque[str] = deque(maxlen=_MOST_HELD)

    def write(self, text: str) -> int:
        self.pieces.append(text)
        return len(text)


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


class Asker:
    """Asks questions on a thread of its own: one at a time, and at most one waits, the newest. Only one other thread uses it.

    Asks on a thread of its own, so that a job that is slow or away holds up no key.

    Args:
        wake: called on the thread of the asker when there is a result.
    """

    def __init__(self, source: AnswerSource, wake: Callable[[], None]) -> None:
        self._source = source
        self._wake = wake
        self._changed = threading.Condition()
        self._next: _Call | None = None
        self._busy = False
        self._results: SimpleQueue[Answer | Failure] = SimpleQueue()
        self._bug: Exception | None = None
        # The process does not wait for it at the end: an address that does not answer would hold up `q`.
        threading.Thread(target=self._run, name="asker", daemon=True).start()

    @property
    def busy(self) -> bool:
        """Whether a question is waiting for its answer."""
        with self._changed:
            return self._busy or self._next is not None

    def ask(self, question: Question, *, again: bool) -> None:
        """Ask this next, in place of what waits."""
        with self._changed:
            waits = self._next is not None and self._next.again
            self._next = _Call(question, again or waits)
            self._changed.notify()

    def results(self) -> list[Answer | Failure]:
        """What has come in, in its order; what failed without being meant to is raised here."""
        found = []
        while True:
            try:
                found.append(self._results.get_nowait())
            except Empty:
                break
        if self._bug is not None:
            raise self._bug
        return found

    def _run(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.wait_for(lambda: self._next is not None)
                call, self._next, self._busy = self._next, None, True
            if call is not None:
                self._results.put(self._asked(call))
            self._wake()

    def _asked(self, call: _Call) -> Answer | Failure:
        try:
            return self._source.ask(call.question, again=call.again)
        except SegtailError as error:
            return Failure(str(error))
        except Exception as error:  # noqa: BLE001 - it belongs to the thread that draws, whose end puts the terminal in order
            self._bug = error
            return Failure(f"{type(error).__name__}: {error}")


@dataclass(frozen=True, slots=True)
class _Call:
    question: Question
    again: bool


@dataclass(frozen=True, slots=True)
class Failure:
    """A question without an answer; ``why`` is a sentence."""

    why: str


class ScreenPainter:
    """Remembers what is on the screen. ``console`` says which colors there are, by the terminal and by NO_COLOR."""

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


def ticked(state: ScreenState, now: float) -> ScreenState:
    """The state at a later time."""
    return replace(state, now=max(now, state.now))


def failed(state: ScreenState, why: str, now: float) -> ScreenState:
    """The state after a question without an answer: the last answer stays, as old."""
    return replace(state, error=why or "no answer", now=max(now, state.now))


def answered(state: ScreenState, answer: Answer, now: float) -> ScreenState:
    """The state with an answer, at ``now`` on the state's clock.

    An answer for a screen that was left still says how everything is; its content counts only if it is wanted.
    """
    state = replace(state, status=answer.status, answered=now, now=max(now, state.now), error="")
    if not is_wanted(state, answer.content.question):
        return state
    return scrolled(_following(replace(state, content=answer.content)))


def is_wanted(state: ScreenState, other: Question) -> bool:
    """Whether an answer to this belongs on the screen: it may begin at another row and have another size, but nothing else."""
    wanted = question(state)
    if isinstance(wanted, ListQuestion) and isinstance(other, ListQuestion):
        return replace(other, offset=0, limit=0) == replace(wanted, offset=0, limit=0)
    return other == wanted


def _following(state: ScreenState) -> ScreenState:
    """Keep the cursor on the row that it was on, if that is still near."""
    rows, place = state.content, state.place
    if not isinstance(rows, Rows) or not place.held:
        return state
    index = next((number for number, row in enumerate(rows.rows) if key_of(row) == place.held), None)
    if index is not None:
        cursor = rows.offset + index
        return state.with_place(replace(place, cursor=cursor, first=max(0, place.first + cursor - place.cursor)))
    chosen = state.chosen
    return state.with_place(replace(place, held=key_of(chosen) if chosen else ""))


def pressed(state: ScreenState, key: str) -> ScreenState:
    """The state after a key. ``to_copy``, ``again`` and ``over`` are what is left to do for the caller, which reads the keys.

    What a key makes of a state.
    """
    state = replace(state, message=())
    if state.typing:
        return _typed(state, key)
    if key in _MOVES:
        return _moved(state, key)
    if key in _KEYS:
        return _KEYS[key](state)
    if key.isdigit() and 1 <= int(key) <= len(VIEWS):
        return _to_view(state, int(key) - 1)
    return _sorted(state, key) if len(key) == 1 and key.isupper() else state


def _typed(state: ScreenState, key: str) -> ScreenState:
    text = state.place.filter
    if key in ("enter", "esc"):
        return _filtered(replace(state, typing=False), text if key == "enter" else "")
    if key in ("up", "down", "pageup", "pagedown", "home", "end"):
        return _moved(replace(state, typing=False), key)
    if key in ("backspace", "clear"):
        return _filtered(state, text[:-1] if key == "backspace" else "")
    return _filtered(state, text + key) if len(key) == 1 and len(text) < LONGEST_FILTER else state


def _filtered(state: ScreenState, text: str) -> ScreenState:
    if text == state.place.filter:
        return state
    return state.with_place(replace(state.place, filter=text, cursor=0, first=0, held=""))


def _moved(state: ScreenState, key: str) -> ScreenState:
    page = body_height(state)
    if state.helping or state.opened:
        lines = help_lines(state.width) if state.helping else detail_lines(state)
        last = max(0, len(lines) - page)
        step = max(1, page - 1)  # the last line says how many follow
        return replace(state, line=min(max(0, _MOVES[key](state.line, step, last)), last))
    rows = state.rows
    if rows is None:
        return state
    cursor = _MOVES[key](state.place.cursor, page, max(0, rows.matched - 1))
    moved = scrolled(state.with_place(replace(state.place, cursor=cursor)))
    return moved.with_place(replace(moved.place, held=key_of(moved.chosen) if moved.chosen and moved.place.cursor else ""))


def _to_view(state: ScreenState, index: int) -> ScreenState:
    return replace(state, view=VIEWS[index], opened=(), line=0, helping=False)


def _next_view(state: ScreenState, step: int) -> ScreenState:
    return _to_view(state, (VIEWS.index(state.view) + step) % len(VIEWS))


def _back(state: ScreenState) -> ScreenState:
    """Close what is on top; at last what leaves rows out."""
    if state.helping:
        return replace(state, helping=False, line=0)
    if state.opened:
        return replace(state, opened=state.opened[:-1], line=0)
    return state.all_of()


def _open(state: ScreenState) -> ScreenState:
    row = state.chosen
    if state.helping:
        return _back(state)
    if row is None or (state.opened and not state.opened[-1].problem):
        return state
    opened = Opened(problem=key_of(row)) if isinstance(row, Problem) and not state.opened else Opened(subject=_subject(row))
    if opened == Opened():
        return replace(state, message=("This is about no partition and no group: there is nothing more to open.",))
    return replace(state, opened=(*state.opened, opened), line=0)


def _subject(row: Row) -> DetailQuestion | None:
    """What a row is about."""
    if isinstance(row, GroupSummary):
        return DetailQuestion(group=row.group)
    if isinstance(row, Problem | ClusterEvent) and (row.group or not row.topic or row.partition < 0):
        return DetailQuestion(group=row.group) if row.group else None
    return DetailQuestion(topic=row.topic, partition=row.partition)


def _copy(state: ScreenState) -> ScreenState:
    before = ""
    if state.opened and state.opened[-1].subject is not None:
        command, reason = command_of(state)
    else:
        row = state.chosen
        command, reason = (row.command, row.no_command) if isinstance(row, Problem | TransactionRow) else ("", "")
        before = f"{advice(row)} " if isinstance(row, TransactionRow) and row.advice else ""
    if command and not command.isprintable():
        command, reason = "", "it holds control characters"
    if not command:
        return replace(state, message=("There is no command here" + (f": {reason}" if reason else "") + ".",))
    return replace(state, to_copy=command, message=(f"{before}Sent to the clipboard, if the terminal takes it:", command))


def _paced(state: ScreenState, step: int) -> ScreenState:
    if not state.every:
        return replace(state, every=INTERVALS[-1]) if step < 0 else state
    longer = [each for each in INTERVALS if each > state.every]
    shorter = [each for each in INTERVALS if each < state.every]
    every = (longer[:1] if step > 0 else shorter[-1:]) or [state.every]
    return replace(state, every=every[0])


_KEYS: dict[str, Callable[[ScreenState], ScreenState]] = {
    "q": lambda state: replace(state, over=True),
    "?": lambda state: replace(state, helping=not state.helping, line=0),
    "/": lambda state: state if state.opened or state.helping else replace(state, typing=True),
    "esc": _back,
    "enter": _open,
    "tab": lambda state: _next_view(state, 1),
    "backtab": lambda state: _next_view(state, -1),
    "right": lambda state: _next_view(state, 1),
    "left": lambda state: _next_view(state, -1),
    "p": lambda state: replace(state, paused=not state.paused),
    "+": lambda state: _paced(state, 1),
    "=": lambda state: _paced(state, 1),
    "-": lambda state: _paced(state, -1),
    "t": lambda state: replace(state, relative=not state.relative),
    "r": lambda state: replace(state, again=True),
    "c": _copy,
}


def _sorted(state: ScreenState, letter: str) -> ScreenState:
    """Sort by the column with this letter; again: the other way."""
    column = next((each for each in LISTS[state.view].text_columns if each.key == letter), None)
    if column is None or state.opened or state.helping:
        return state
    place, rows = state.place, state.rows
    sort, descending = (place.sort, place.descending) if place.sort else (rows.sort, rows.descending) if rows else ("", False)
    turned = not descending if sort == column.name else column.sort == DESC
    return state.with_place(replace(place, sort=column.name, descending=turned, cursor=0, first=0, held=""))


def to_clipboard(text: str) -> str:
    """The control sequence that puts a text into the clipboard of the terminal, also over ssh (OSC 52)."""
    return f"\x1b]52;c;{b64encode(text.encode()).decode()}\x07"


def is_due(state: ScreenState, last_question: Question | None, asked_at: float) -> bool:
    """Whether to ask now: for another screen at once, else as often as is wanted, and not while paused."""
    if state.again or question(state) != last_question:
        return True
    return not state.paused and state.every > 0 and state.now - asked_at >= state.every
