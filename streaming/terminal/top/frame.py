"""A state as the lines of a screen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

from streaming.broker.protocol.group_json import GroupDetail, GroupPage
from streaming.broker.protocol.json_message import PublicMessage, Unit
from streaming.broker.protocol.listing_json import PartitionDetail, TransactionRow
from streaming.broker.protocol.status_json import Problem
from streaming.common.units import NONE, capitalized, format_count, format_name
from streaming.pages.listings.cells import MORE, cut, filled, plain, shell_lines, wrapped
from streaming.pages.listings.declared_lists import GROUP_PARTITIONS, LISTS, TRANSACTIONS, advice, no_groups, open_long
from streaming.pages.listings.details import (
    REPLICAS,
    Fact,
    group_facts,
    group_findings,
    partition_facts,
    retention_facts,
    segments_of,
    transaction_facts,
)
from streaming.pages.listings.listing import Field, Listing, Times, curve, place, severity_of, size, words
from streaming.pages.listings.text_table import GAP, fitted, joined, left_out, text_table
from streaming.terminal.top.questions import Detail, ListName, Row, Rows
from streaming.terminal.top.screen_parts import WARNING_COLOUR, body_height, foot, head, help_lines, preview_height
from streaming.terminal.top.top_state import ScreenState, key_of

_STYLES = {"critical": "red", "warning": WARNING_COLOUR}
_ARROWS = ("▲", "▼")

_MOST_VERDICTS, _MOST_PARTITIONS = 100, 1000
_LABEL = 18

_NARROW = 50
"""Below this width a text begins below its label."""

LEAST = 5
"""With fewer lines there is no preview."""

_LEAST_FOLLOWS = 3
"""So many lines of what follows from a problem are there, however long it is described."""


def drawn(state: ScreenState) -> Frame:
    """The screen of a state; no line is wider than the terminal."""
    above, below, height = head(state), foot(state), body_height(state)
    if state.helping:
        body = _page([DetailLine(line) for line in help_lines(state.width)], state, height)
    elif state.opened:
        body = _page(detail_lines(state), state, height)
    else:
        body = _list(state, height)
    lines = [*above, *body, *below][: state.height]
    return Frame(tuple(lines), min(len(lines) - 1, _cursor_row(state, len(above), height)))


@dataclass(frozen=True, slots=True)
class Frame:
    """As many lines as the terminal has. ``row``: where the terminal's cursor belongs, at the chosen row: a screen reader follows it."""

    lines: tuple[Text, ...]
    row: int


def _page(lines: list[DetailLine], state: ScreenState, height: int) -> list[Text]:
    visible = lines[state.line : state.line + height]
    if (below := len(lines) - state.line - height) > 0:
        visible[-1:] = [DetailLine(f"{MORE} {format_count(below + 1, 'more line')}: PgDn, down", "dim")]
    style = " dim" if state.is_old else ""
    texts = [Text(cut(each.text, state.width), f"{each.style}{style}".strip()) for each in visible]
    return [*texts, *(Text("") for _ in range(height - len(texts)))]


@dataclass(frozen=True, slots=True)
class DetailLine:
    """A line of a detail. ``style``: one of rich's, "" for none."""

    text: str
    style: str = ""


def detail_lines(state: ScreenState) -> list[DetailLine]:
    """The lines of the thing that is opened last.

    A thing in detail as lines: labels with texts below each other, wrapped to a width, each line with the command that belongs to it.
    """
    opened = state.opened[-1]
    if opened.problem:
        problem, rows = opened_problem(state), state.rows
        if problem is None or rows is None:
            return [DetailLine("This problem is not there any more: esc goes back.")]
        return problem_lines(problem, Times(rows.at_ms, state.relative), state.width)
    found = state.found
    if found is None:
        return [DetailLine("" if state.error else "asking ...")]
    if found.detail is None:
        return [DetailLine("It is not there (any more): esc goes back.")]
    times = Times(found.detail.at_ms, state.relative)
    if isinstance(found.detail, GroupDetail):
        return group_lines(found.detail, times, state.width)
    return partition_lines(found.detail, times, state.width)


def opened_problem(state: ScreenState) -> Problem | None:
    """The problem that is opened, as the last answer has it."""
    rows, key = state.rows, state.opened[-1].problem
    problems = (row for row in (rows.rows if rows else ()) if isinstance(row, Problem))
    return next((each for each in problems if key_of(each) == key), None)


def problem_lines(problem: Problem, times: Times, width: int) -> list[DetailLine]:
    """Everything about a problem, with its command."""
    return [
        *title(problem.what, width),
        DetailLine(""),
        *all_labelled(
            (
                ("severity", problem.gravity),
                ("since", times.both(problem.since_ms) if problem.since_ms >= 0 else ""),
                ("due", _due(problem.deadline_ms, times)),
                ("holds back", problem.holds_back),
                *(("follows", text) for text in following(problem)),
                ("partition", place(problem.topic, problem.partition) if problem.topic and problem.partition >= 0 else ""),
                ("topic", format_name(problem.topic) if problem.topic and problem.partition < 0 else ""),
                ("group", format_name(problem.group) if problem.group else ""),
                ("broker", str(problem.broker) if problem.broker >= 0 else ""),
                ("log dir", problem.log_dir),
                ("agent", problem.agent),
                ("runbook", f"segtail runbook {problem.runbook}" if problem.runbook else ""),
            ),
            width,
        ),
        DetailLine(""),
        *command_lines(problem.command, problem.no_command, width),
    ]


def title(text: str, width: int) -> list[DetailLine]:
    """What follows is about this."""
    return [DetailLine(""), *(DetailLine(line, "bold") for line in wrapped(plain(text), width))]


def all_labelled(pairs: Iterable[tuple[str, str]], width: int) -> list[DetailLine]:
    """Those of the labelled texts that are not empty."""
    return [line for label, text in pairs if text for line in labelled(label, text, width)]


def labelled(label: str, text: str, width: int) -> list[DetailLine]:
    """A text with its label before it, or above it in a narrow terminal."""
    if width < _NARROW:
        return [DetailLine(f"{label}:"), *(DetailLine(f"  {line}") for line in wrapped(plain(text), max(2, width - 2)))]
    first, *rest = wrapped(plain(text), width - _LABEL)
    return [DetailLine(f"{label:<{_LABEL - 1}} {first}"), *(DetailLine(f"{'':<{_LABEL}}{line}") for line in rest)]


def _due(at_ms: int, times: Times) -> str:
    if at_ms < 0:
        return ""
    return times.both(at_ms) if at_ms > times.now_ms else times.deadline(at_ms)


def following(problem: Problem) -> list[str]:
    """What follows from it, a text for each group or other thing."""
    more = [f"and {problem.more_consequences:,} more"] if problem.more_consequences else []
    return [*(f"{each.severity}: {each.text}" for each in problem.consequences), *more]


def command_lines(command: str, reason: str, width: int, advice: str = "") -> list[DetailLine]:
    """A command from the left edge on, in lines that a shell reads as one if they are marked by hand; or why there is none.

    Args:
        advice: sentences to be read before it is run.
    """
    before = [DetailLine(line) for line in wrapped(plain(advice), width)] if advice else []
    if command:
        return [*before, *(DetailLine(piece, "bold") for piece in shell_lines(plain(command), width))]
    return [*before, *(DetailLine(line) for line in wrapped(f"no command: {plain(reason)}", width))] if reason else before


def group_lines(group: GroupDetail, times: Times, width: int) -> list[DetailLine]:
    """Everything about a group, what is wrong first."""
    found = group_findings(group)
    calm = len(group.partitions) - len({(each.topic, each.partition) for each in found if each.topic})
    lines = [*title(format_name(group.summary.group), width), *fact_lines(group_facts(group, times), width)]
    for each in found[:_MOST_VERDICTS]:
        where = f"{place(each.topic, each.partition)}: " if each.topic else ""
        word = words(each.verdict)
        lines += title(f"{where}{each.text if each.text.startswith(word) else f'{word}: {each.text}'}", width)
        lines += command_lines(each.command, each.no_command, width)
    if len(found) > _MOST_VERDICTS:
        lines += title(f"and {len(found) - _MOST_VERDICTS:,} more: `segtail why` has all of them", width)
    if calm > 0:
        lines += title(f"nothing to do for {calm:,} of {format_count(len(group.partitions), 'partition')}", width)
    omitted = group.omitted + max(0, len(group.partitions) - _MOST_PARTITIONS)
    return [*lines, *_table(GROUP_PARTITIONS, group.partitions[:_MOST_PARTITIONS], _left_out("partitions", omitted), times, width)]


def fact_lines(facts: Iterable[Fact], width: int) -> list[DetailLine]:
    """Those of the facts that are known."""
    texts = ((each.name.lower(), ", ".join(text for text in (each.cell.text, each.cell.note) if text not in ("", NONE))) for each in facts)
    return all_labelled(texts, width)


def _table(listing: Listing, rows: Sequence[PublicMessage], head: str, times: Times, width: int) -> list[DetailLine]:
    return [*title(head, width), *map(DetailLine, text_table(listing, rows, times, width))] if rows else []


def _left_out(what: str, omitted: int) -> str:
    return f"{what}, {omitted:,} left out" if omitted else what


def partition_lines(detail: PartitionDetail, times: Times, width: int) -> list[DetailLine]:
    """Everything about a partition, what is wrong first."""
    listed = open_long(detail.late_after_ms, detail.young_transactions)
    rates = [each.bytes_rate for each in detail.minutes]
    hour = title(f"the last {len(rates)} minutes, bytes/s at most {size(max(rates))}", width) if max(rates, default=-1) >= 0 else []
    return [
        *title(place(detail.row.topic, detail.row.partition), width),
        *fact_lines([*partition_facts(detail, times), *retention_facts(detail, times)], width),
        *(labelled("transactions", f"below is what is {listed}", width) if detail.young_transactions else []),
        *_problem_list(detail.problems, times, width),
        *(line for each in detail.transactions for line in _transaction(each, times, width)),
        *([*hour, DetailLine(curve(rates, min(width, 60)))] if hour else []),
        *_table(segments_of(detail.row), detail.segments, _left_out("segments", detail.omitted), times, width),
        *_table(REPLICAS, detail.replicas, "replicas", times, width),
    ]


def _problem_list(problems: list[Problem], times: Times, width: int) -> list[DetailLine]:
    """The incidents of one thing, each with its command."""
    lines: list[DetailLine] = []
    for each in (root for root in problems if not root.because):
        since = f", since {times.of(each.since_ms)}" if each.since_ms >= 0 else ""
        lines += title(f"{each.gravity}: {each.what}{since}", width)
        lines += all_labelled([("holds back", each.holds_back), *(("follows", text) for text in following(each))], width)
        lines += command_lines(each.command, each.no_command, width)
    return lines


def _transaction(row: TransactionRow, times: Times, width: int) -> list[DetailLine]:
    producer, verdict = (TRANSACTIONS.cells[name](row, times).text for name in ("producer_id", "verdict"))
    return [
        *title(f"open transaction of producer {producer}: {verdict}", width),
        *fact_lines(transaction_facts(row, times), width),
        *command_lines(row.command, row.no_command, width, advice(row)),
    ]


def _list(state: ScreenState, height: int) -> list[Text]:
    """The rows, and below them the chosen one where there is room."""
    lines = table_lines(state, height)
    while lines and not lines[-1].plain:
        lines.pop()
    room = 1 + height + preview_height(state)
    preview = preview_lines(state, room - len(lines))
    return [*lines, *preview, *(Text("") for _ in range(room - len(lines) - len(preview)))]


def table_lines(state: ScreenState, height: int) -> list[Text]:
    """The headings, and ``height`` lines below them: the visible rows, or why there are none.

    The rows of a view as lines of a table that fits the terminal.
    """
    rows = state.rows
    if rows is None:
        words = "" if state.error or state.status is None else f"asking {MORE}"
        return [Text(""), *_padded([Text(cut(words, state.width))], height)]
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
    if keys and state.view is ListName.PROBLEMS and start + height >= len(rows.rows):  # what is printed once has them above
        lines += [Text(line) for line in _unknown_lines(state)]
    return [_headings(columns, widths, rows, keys=keys), *_padded(lines, height)]


def _padded(lines: list[Text], height: int) -> list[Text]:
    return [*lines[:height], *(Text("") for _ in range(height - len(lines)))]


def laid_out(rows: Rows, visible: Sequence[Row], times: Times, width: int) -> tuple[tuple[Field, ...], list[int], list[list[str]]]:
    """The columns that fit, their widths, and the texts of their cells."""
    columns = LISTS[rows.question.view].text_columns
    cells = [[plain(column.cell_in(row, times).text) for column in columns] for row in visible]
    natural = [max([cell_len(_heading(column, rows)), *(cell_len(texts[at]) for texts in cells)]) for at, column in enumerate(columns)]
    widths = fitted(natural, [column.least for column in columns], width)
    return columns[: len(widths)], widths, cells


def _heading(column: Field, rows: Rows) -> str:
    """The heading, with an arrow if the rows are sorted by it."""
    sorted_by = column.sort and column.name == rows.sort
    return column.heading + (_ARROWS[rows.descending] if sorted_by else " " if column.sort else "")


def _none_lines(state: ScreenState, rows: Rows) -> list[str]:
    filtered, use = state.place.filter, state.place.use
    if rows.total and (filtered or use):
        what = " and ".join([*([f"holds {plain(filtered)}"] if filtered else []), *([f"is {use}"] if use else [])])
        return [f"Nothing of {rows.total:,} {what}: esc clears the filter.", *rows.notes]
    if isinstance(rows.page, GroupPage):
        nothing = no_groups(rows.page)
        return [*wrapped(f"{capitalized(nothing)}.", state.width), *rows.notes]
    if state.status is not None and state.status.start is not None:
        return [f"No {state.view} known yet.", *rows.notes]
    known = ", as far as is known" if state.status is not None and state.status.doubts else ""
    return [f"No {state.view}{known}.", *rows.notes]


def _unknown_lines(state: ScreenState) -> list[str]:
    """What cannot be told: a problem may hide there."""
    found = state.status.doubts if state.status else []
    return [line for text in found for line in wrapped(f"not known: {plain(text)}", state.width)]


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


def preview_lines(state: ScreenState, height: int) -> list[Text]:
    """At most ``height`` lines about the chosen row, none if there is none or not enough room."""
    row, rows = state.chosen, state.rows
    if row is None or rows is None or height < LEAST:
        return []
    times = Times(rows.at_ms, state.relative)
    lines = _of(row, times, state)
    while lines and not lines[0].text:
        lines = lines[1:]
    if isinstance(row, Problem) and len(lines) >= height:
        lines = problem_preview(row, times, state.width, height - 1)
    if len(lines) >= height:
        lines = [*lines[: height - 2], DetailLine("enter shows more")]
    style = " dim" if state.is_old else ""
    return [Text("─" * state.width, "dim"), *(Text(cut(each.text, state.width), f"{each.style}{style}".strip()) for each in lines)]


def _of(row: Row, times: Times, state: ScreenState) -> list[DetailLine]:
    if isinstance(row, Problem):
        return problem_lines(row, times, state.width)
    first, *rest = LISTS[state.view].text_columns
    facts = (Fact(name=each.heading, cell=each.cell_in(row, times)) for each in rest if each.unit is not Unit.CURVE)
    command = command_lines(row.command, row.no_command, state.width, advice(row)) if isinstance(row, TransactionRow) else []
    return [*title(plain(first.cell_in(row, times).text), state.width), *fact_lines(facts, state.width), *command]


def problem_preview(problem: Problem, times: Times, width: int, height: int) -> list[DetailLine]:
    """What a problem is, what follows from it, and its command, whose lines are never the ones that are left out for want of ``height``."""
    what = title(problem.what, width)[1:]
    follows = all_labelled((("holds back", problem.holds_back), *(("follows", text) for text in following(problem))), width)
    command = command_lines(problem.command, problem.no_command, width)
    more = [DetailLine("enter shows more", "dim")]
    room = max(0, height - len(command) - len(more))
    of_follows = min(len(follows), max(_LEAST_FOLLOWS, room - len(what)))
    return [*what[: max(0, room - of_follows)], *follows[: min(of_follows, room)], *command, *more]


def _cursor_row(state: ScreenState, above: int, height: int) -> int:
    if state.typing:
        return above - 1
    if state.helping or state.opened:
        return above
    return above + 1 + min(height - 1, max(0, state.place.cursor - state.place.first))


def missing_columns(rows: Rows, times: Times, width: int) -> list[str]:
    """What a table of this width does not show of the rows, in lines."""
    columns, widths, cells = laid_out(rows, rows.rows, times, width)
    is_cut = any(cell_len(text) > room for texts in cells for text, room in zip(texts, widths, strict=False))
    return left_out(LISTS[rows.question.view].text_columns[len(columns) :], width, is_cut=is_cut) if rows.rows else []


def command_of(state: ScreenState) -> tuple[str, str]:
    """The command that is the first to run for what is opened, and if there is none the reason."""
    if state.opened[-1].problem:
        problem = opened_problem(state)
        return (problem.command, problem.no_command) if problem else ("", "")
    detail = state.found.detail if state.found else None
    commands = _commands(detail) if detail else []
    return next((each for each in commands if each[0]), next((each for each in commands if each[1]), ("", "")))


def _commands(detail: Detail) -> list[tuple[str, str]]:
    if isinstance(detail, GroupDetail):
        return [(each.command, each.no_command) for each in group_findings(detail)]
    found: list[Problem | TransactionRow] = [*detail.problems, *detail.transactions]
    return [(each.command, each.no_command) for each in found]
