"""A state as the lines of a screen."""

from dataclasses import dataclass

from rich.text import Text

from streaming.pages.listings.cells import cut
from streaming.terminal.top.detail_lines import detail_lines
from streaming.terminal.top.help_lines import help_lines
from streaming.terminal.top.labelled_text import DetailLine
from streaming.terminal.top.screen_parts import body_height, foot, head
from streaming.terminal.top.table_lines import table_lines
from streaming.terminal.top.top_state import ScreenState


@dataclass(frozen=True, slots=True)
class Frame:
    """As many lines as the terminal has. ``row``: where the terminal's cursor belongs, at the chosen row: a screen reader follows it."""

    lines: tuple[Text, ...]
    row: int


def drawn(state: ScreenState) -> Frame:
    """The screen of a state; no line is wider than the terminal."""
    above, below, height = head(state), foot(state), body_height(state)
    if state.helping:
        body = _page([DetailLine(line) for line in help_lines(state.width)], state, height)
    elif state.opened:
        body = _page(detail_lines(state), state, height)
    else:
        body = table_lines(state, height)
    lines = [*above, *body, *below][: state.height]
    return Frame(tuple(lines), min(len(lines) - 1, _cursor_row(state, len(above), height)))


def _page(lines: list[DetailLine], state: ScreenState, height: int) -> list[Text]:
    visible = lines[state.line : state.line + height]
    style = " dim" if state.is_old else ""
    texts = [Text(cut(each.text, state.width), f"{each.style}{style}".strip()) for each in visible]
    return [*texts, *(Text("") for _ in range(height - len(texts)))]


def _cursor_row(state: ScreenState, above: int, height: int) -> int:
    if state.typing:
        return above - 1
    if state.helping or state.opened:
        return above
    return above + 1 + min(height - 1, max(0, state.place.cursor - state.place.first))
