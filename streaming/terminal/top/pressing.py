"""What a key makes of a state."""

from collections.abc import Callable
from dataclasses import replace

from streaming.broker.protocol.group_json import GroupSummary
from streaming.broker.protocol.listing_json import TransactionRow
from streaming.broker.protocol.shown import DESC
from streaming.broker.protocol.status_json import ClusterEvent, Problem
from streaming.pages.listings.answered_lists import LISTS
from streaming.pages.listings.transaction_list import advice
from streaming.terminal.top.detail_lines import command_of, detail_lines
from streaming.terminal.top.help_lines import help_lines
from streaming.terminal.top.questions import VIEWS, DetailQuestion, Row
from streaming.terminal.top.screen_parts import body_height
from streaming.terminal.top.scrolling import scrolled
from streaming.terminal.top.top_state import INTERVALS, Opened, ScreenState, key_of

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


def pressed(state: ScreenState, key: str) -> ScreenState:
    """The state after a key. ``to_copy``, ``again`` and ``over`` are what is left to do for whoever reads the keys."""
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


def _sorted(state: ScreenState, letter: str) -> ScreenState:
    """Sort by the column with this letter; again: the other way."""
    column = next((each for each in LISTS[state.view].text_columns if each.key == letter), None)
    if column is None or state.opened or state.helping:
        return state
    place, rows = state.place, state.rows
    sort, descending = (place.sort, place.descending) if place.sort else (rows.sort, rows.descending) if rows else ("", False)
    turned = not descending if sort == column.name else column.sort == DESC
    return state.with_place(replace(place, sort=column.name, descending=turned, cursor=0, first=0, held=""))


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
