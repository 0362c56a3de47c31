"""The rows of a view as lines of a table that fits the terminal."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text

from streaming.broker.protocol.group_json import GroupPage
from streaming.pages.listings.answered_lists import LISTS
from streaming.pages.listings.cells import MORE, cut, filled, plain, wrapped
from streaming.pages.listings.fitting import GAP, fitted
from streaming.pages.listings.group_list import no_groups
from streaming.pages.listings.list_cells import Times
from streaming.pages.listings.listing import Field, severity_of
from streaming.pages.listings.text_table import joined, left_out
from streaming.terminal.top.questions import ListName, Row, Rows
from streaming.terminal.top.screen_parts import WARNING_COLOUR
from streaming.terminal.top.top_state import ScreenState

_STYLES = {"critical": "red", "warning": WARNING_COLOUR}
_ARROWS = ("▲", "▼")


def table_lines(state: ScreenState, height: int) -> list[Text]:
    """The headings, and ``height`` lines below them: the visible rows, or why there are none."""
    rows = state.rows
    if rows is None:
        return [Text(""), *_padded([Text(cut(_nothing_yet(state), state.width))], height)]
    times = Times(rows.at_ms, state.relative)
    start = state.place.first - rows.offset
    visible = rows.rows[max(0, start) : max(0, start + height)]
    keys = state.place.cursor >= 0
    columns, widths, cells = laid_out(rows, visible, times, state.width)
    lines = []
    for index, (row, texts) in enumerate(zip(visible, cells, strict=True)):
        line = Text(joined(columns, widths, texts), _STYLES.get(severity_of(row), ""))
        if state.is_old or state.waits:
            line.stylize("dim")
        if state.place.first + index == state.place.cursor:
            line.pad_right(max(0, state.width - cell_len(line.plain)))
            line.stylize("reverse")
        lines.append(line)
    if not rows.matched:
        lines = [Text(cut(line, state.width)) for line in _none_lines(state, rows)]
    elif not lines:
        lines = [Text(MORE)]
    if state.view is ListName.PROBLEMS and start + height >= len(rows.rows):
        lines += [Text(line) for line in _unknown_lines(state)]
    return [_headings(columns, widths, rows, keys=keys), *_padded(lines, height)]


def laid_out(rows: Rows, visible: Sequence[Row], times: Times, width: int) -> tuple[tuple[Field, ...], list[int], list[list[str]]]:
    """The columns that fit, their widths, and the texts of their cells."""
    columns = LISTS[rows.question.view].text_columns
    cells = [[plain(column.cell_in(row, times).text) for column in columns] for row in visible]
    natural = [max([cell_len(_heading(column, rows)), *(cell_len(texts[at]) for texts in cells)]) for at, column in enumerate(columns)]
    widths = fitted(natural, [column.least for column in columns], width)
    return columns[: len(widths)], widths, cells


def missing_columns(rows: Rows, times: Times, width: int) -> list[str]:
    """What a table of this width does not show of the rows, in lines."""
    columns, widths, cells = laid_out(rows, rows.rows, times, width)
    is_cut = any(cell_len(text) > room for texts in cells for text, room in zip(texts, widths, strict=False))
    return left_out(LISTS[rows.question.view].text_columns[len(columns) :], width, is_cut=is_cut) if rows.rows else []


def _heading(column: Field, rows: Rows) -> str:
    """The heading, with an arrow if the rows are sorted by it."""
    sorted_by = column.sort and column.name == rows.sort
    return column.heading + (_ARROWS[rows.descending] if sorted_by else " " if column.sort else "")


def _headings(columns: Sequence[Field], widths: Sequence[int], rows: Rows, *, keys: bool) -> Text:
    """The headings; where keys sort, the letter that sorts by a column is underlined."""
    line = Text(style="bold")
    for column, width in zip(columns, widths, strict=True):
        text = filled(_heading(column, rows), width, right=column.unit.is_number)
        piece = Text(text)
        if keys and column.key and (at := text.lower().find(column.key.lower())) >= 0:
            piece.stylize("underline", at, at + 1)
        line.append_text(piece).append(" " * GAP)
    line.right_crop(GAP)
    return line


def _none_lines(state: ScreenState, rows: Rows) -> list[str]:
    filtered, use = state.place.filter, state.place.use
    if rows.total and (filtered or use):
        what = " and ".join([*([f"holds {plain(filtered)}"] if filtered else []), *([f"is {use}"] if use else [])])
        return [f"Nothing of {rows.total:,} {what}: esc clears the filter.", *rows.notes]
    if isinstance(rows.page, GroupPage):
        nothing = no_groups(rows.page)
        return [*wrapped(f"{nothing[:1].upper()}{nothing[1:]}.", state.width), *rows.notes]
    if state.status is not None and state.status.start is not None:
        return [f"No {state.view} known yet.", *rows.notes]
    return [f"No {state.view}.", *rows.notes]


def _unknown_lines(state: ScreenState) -> list[str]:
    """What cannot be told: a problem may hide there."""
    found = state.status.doubts if state.status else []
    return [line for text in found for line in wrapped(f"not known: {plain(text)}", state.width)]


def _nothing_yet(state: ScreenState) -> str:
    return "" if state.error or state.status is None else f"asking {MORE}"


def _padded(lines: list[Text], height: int) -> list[Text]:
    return [*lines[:height], *(Text("") for _ in range(height - len(lines)))]
