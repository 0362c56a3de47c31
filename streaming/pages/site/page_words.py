"""What the page writes for one value: text, a link, a time for machines, a command, or a line as SVG."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from streaming.common.units import NONE, format_age, format_count, format_duration, format_name, format_size, format_time
from streaming.pages.listings.listing import Cell
from streaming.pages.site.page_links import group_link, partition_link, topic_link

WIDTH, HEIGHT = 600, 100
SPARK_HEIGHT = 24

NOTHING = NONE
"""Stands in a table where there is nothing to say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallLine:
    """A small line from zero up to its largest value, in a box that is ``width`` wide."""

    path: str
    gap: str  # where values are not known
    last: str  # its last point, "" if the last value is not known
    width: int
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A text that leads somewhere, or only a text if ``href`` is ""."""

    text: str
    href: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCell:
    """One value. ``time``: as ISO 8601; ``note``: a second line; ``tone``: a severity; ``name``: a user of Kafka chose it."""

    text: str = ""
    href: str = ""
    time: str = ""
    note: str = ""
    tone: str = ""
    name: bool = False
    links: tuple[Link, ...] = ()
    line: SmallLine | None = None
    command: str = ""

    @property
    def is_nothing(self) -> bool:
        """Whether it is only a dash: a card does without it."""
        return self.text == NOTHING and not self.note


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartLine:
    """One line; ``path`` is an SVG path, "" if there are not two numbers next to each other. ``title`` says it in words."""

    path: str
    title: str
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartMark:
    """A line across a chart. ``y``: in percent of its height from the top; ``below``: above the line there is no room for its text."""

    y: str
    text: str
    below: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Some lines on one scale."""

    key: str  # its id on the page
    heading: str
    title: str
    lines: tuple[ChartLine, ...]
    marks: tuple[ChartMark, ...]
    points: tuple[str, ...]  # what it shows at each time, in words, from left to right
    left: str
    right: str
    area: str = ""  # between the first two lines, filled


def line_path(values: Sequence[float], low: float, high: float, width: int = WIDTH, height: int = HEIGHT) -> str:
    """Values at equal distances; gaps where they are below zero. A number alone between gaps is a short dash."""
    pieces, drawing = [], False
    for index, value in enumerate(values):
        if value < 0:
            drawing = False
            continue
        x, y = _x(index, len(values), width), y_of(value, low, high, height)
        alone = not drawing and (index + 1 == len(values) or values[index + 1] < 0)
        pieces.append(f"{'L' if drawing else 'M'}{x} {y}" + ("h2" if alone else ""))
        drawing = True
    return "".join(pieces)


def _x(index: int, count: int, width: int) -> str:
    return _short(index * width / max(1, count - 1))


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def y_of(value: float, low: float, high: float, height: int) -> str:
    """How far below the top a value is. One unit of the box is left at either end, so that a line at the edge is not cut in half."""
    share = (value - low) / (high - low) if high > low else 0.0
    return _short(height - 1 - share * (height - 2))


def area_path(upper: Sequence[float], lower: Sequence[float], low: float, high: float) -> str:
    """What lies between two lines, where both are known."""
    return "".join(_stripes(upper, lower, low, high))


def _stripes(upper: Sequence[float], lower: Sequence[float], low: float, high: float) -> Iterable[str]:
    both = list(zip(upper, lower, strict=True))
    for index, (here, after) in enumerate(pairwise(both)):
        if min(*here, *after) < 0 or (here[0] == here[1] and after[0] == after[1]):
            continue
        left, right = _x(index, len(both), WIDTH), _x(index + 1, len(both), WIDTH)
        heights = [y_of(value, low, high, HEIGHT) for value in (*here, *after)]
        yield f"M{left} {heights[0]}L{right} {heights[2]}V{heights[3]}L{left} {heights[1]}Z"


def bounds(*lines: Sequence[float]) -> tuple[float, float]:
    """The smallest and the largest known value, 0 and 0 if there is none."""
    known = [value for line in lines for value in line if value >= 0]
    return min(known, default=0.0), max(known, default=0.0)


def drawn(cell: Cell, tone: str = "", *, name: bool = False) -> PageCell:
    """A cell of a list, with the way to what it names, a time for machines, and its curve as a line; ``name``: as in `PageCell`.

    Lines as SVG: paths in a box of fixed size that the style sheet stretches; words are outside of it, so that they never shrink.
    """
    at = format_time(cell.at_ms) if cell.at_ms >= 0 else ""
    if cell.command:
        return PageCell(command=cell.command, note=cell.note)
    if cell.curve:
        line = hour_line(cell.curve)
        return NO_CELL if line is None else PageCell(line=line)
    if cell.topic is not None:
        return PageCell(text=cell.text, href=topic_link(cell.topic), name=True, tone=tone)
    if cell.partition is not None:
        return PageCell(text=cell.text, href=partition_link(*cell.partition), name=True, tone=tone)
    if cell.group is not None:
        return PageCell(text=cell.text, href=group_link(cell.group), name=True)
    if cell.groups:
        return PageCell(links=tuple(map(group_reference, cell.groups)), note=cell.note)
    return PageCell(text=cell.text, time=at, note=cell.note, tone=tone, name=name)


def hour_line(values: Sequence[float]) -> SmallLine | None:
    """A line of bytes a second, one a minute up to now, with what it shows in words; None if it would be a point."""
    if sum(value >= 0 for value in values) < 2:
        return None
    first = next((index for index, value in enumerate(values) if value >= 0), len(values))
    known = values[first:]
    missing = sum(value < 0 for value in known)
    gap = f", {missing} of them not known" if missing else ""
    return spark(values, f"At most {bytes_rate(max(known))} in the last {format_count(len(known), 'minute')}{gap}")


def spark(values: Sequence[float], title: str) -> SmallLine:
    """The line from the first value that is known on; -1 is a gap. One unit to the right is one value: fifty of these are on a page."""
    first = next((index for index, value in enumerate(values) if value >= 0), len(values))
    known = values[first:]
    high, pieces, gaps, before = max(known, default=0.0), [], [], -1
    for index, value in enumerate(known):
        height = SPARK_HEIGHT - 2 - round(value / high * (SPARK_HEIGHT - 4)) if high > 0 else SPARK_HEIGHT - 2
        if value < 0:
            gaps.append(f"M{index} {SPARK_HEIGHT - 2}h1")
            before = -1
            continue
        pieces.append(f"M{index} {height}h.1" if before < 0 else f"l1 {height - before}".replace(" -", "-"))
        before = height
    last = f"M{len(known) - 1} {before}h0" if before >= 0 else ""
    path = "".join(pieces).replace("h.1l1", "l1")
    return SmallLine(path=path, gap="".join(gaps), last=last, width=max(1, len(known) - 1), title=title)


def bytes_rate(value: float) -> str:
    """Bytes a second."""
    return NOTHING if value < 0 else f"{format_size(round(value))}/s"


NO_CELL = PageCell(text=NOTHING)
"""That of a value that is not there."""


def group_reference(group: str) -> Link:
    """A consumer group, with the way to its view."""
    return Link(text=format_name(group), href=group_link(group))


def number(value: int) -> PageCell:
    """A count, or that it is not known."""
    return PageCell(text=NOTHING if value < 0 else f"{value:,}")


def size(value: int) -> PageCell:
    """Bytes."""
    return PageCell(text=NOTHING if value < 0 else format_size(value))


def records_rate(value: float) -> str:
    """Records a second."""
    return NOTHING if value < 0 else f"{value:,.1f}/s" if value < 100 else f"{value:,.0f}/s"


def moment(ms: int, now_ms: int, otherwise: str = NOTHING) -> PageCell:
    """A point in time as how long ago it was, or how soon it will be."""
    return PageCell(text=otherwise) if ms < 0 else PageCell(text=format_age((now_ms - ms) / 1000), time=format_time(ms))


def span(ms: int) -> str:
    """A length of time."""
    return NOTHING if ms < 0 else format_duration(ms / 1000)
