"""Keeps the chosen row on the screen, whatever has become of the list or of the terminal."""

from dataclasses import replace

from streaming.terminal.top.screen_parts import body_height
from streaming.terminal.top.top_state import ScreenState


def resized(state: ScreenState, width: int, height: int) -> ScreenState:
    """The state in a terminal of another size; the chosen row stays visible."""
    return scrolled(replace(state, width=max(1, width), height=max(1, height)))


def scrolled(state: ScreenState) -> ScreenState:
    """The same with the cursor on a row that is there, and that row visible."""
    place, rows = state.place, state.rows
    last = max(0, rows.matched - 1) if rows else place.cursor
    cursor = min(max(0, place.cursor), last)
    page = body_height(state)
    first = max(min(place.first, cursor, max(0, last + 1 - page)), cursor - page + 1, 0)
    return state.with_place(replace(place, cursor=cursor, first=first))
