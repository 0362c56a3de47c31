"""What the page writes for one value: text, and where it has more to say a link, a time for machines, a line, a command."""

from collections.abc import Sequence
from dataclasses import dataclass

from streaming.broker.protocol.shown import Unit
from streaming.common.formatting import NONE, format_age, format_count, format_duration, format_name, format_size, format_time
from streaming.pages.listings.list_cells import Cell, count
from streaming.pages.site.page_charts import SmallLine, spark
from streaming.pages.site.page_links import group_link, partition_link, topic_link

NOTHING = NONE
"""Stands in a table where there is nothing to say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A text that leads somewhere, or only a text if ``href`` is ""."""

    text: str
    href: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCell:
    """One value. ``time``: as ISO 8601; ``note``: a second line; ``tone``: a severity; ``name``: the value is somebody's name."""

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


NO_CELL = PageCell(text=NOTHING)
"""That of a value that is not there."""


def drawn(cell: Cell, tone: str = "", *, name: bool = False) -> PageCell:
    """A cell of a list, with the way to what it names, a time for machines, and its curve as a line; ``name``: as in `PageCell`."""
    at = format_time(cell.at_ms) if cell.at_ms >= 0 else ""
    if cell.command:
        return PageCell(command=cell.command, note=cell.note)
    if cell.curve:
        line = hour_line(cell.curve, Unit.BYTES_RATE)
        return NO_CELL if line is None else PageCell(line=line)
    if cell.topic is not None:
        return PageCell(text=cell.text, href=topic_link(cell.topic), name=True, tone=tone)
    if cell.partition is not None:
        if cell.note == "":
            return PageCell(text=cell.text, href=partition_link(*cell.partition), name=True, tone=tone)
        return PageCell(text=cell.text, links=(Link(text=cell.note, href=partition_link(*cell.partition)),), time=at)
    if cell.group is not None:
        return PageCell(text=cell.text, href=group_link(cell.group), name=True)
    if cell.groups:
        return PageCell(links=tuple(map(group_reference, cell.groups)), note=cell.note)
    return PageCell(text=cell.text, time=at, note=cell.note, tone=tone, name=name)


def number(value: int) -> PageCell:
    """A count, or that it is not known."""
    return PageCell(text=NOTHING if value < 0 else f"{value:,}")


def size(value: int) -> PageCell:
    """Bytes."""
    return PageCell(text=NOTHING if value < 0 else format_size(value))


def bytes_rate(value: float) -> str:
    """Bytes a second."""
    return NOTHING if value < 0 else f"{format_size(round(value))}/s"


def records_rate(value: float) -> str:
    """Records a second."""
    return NOTHING if value < 0 else f"{value:,.1f}/s" if value < 100 else f"{value:,.0f}/s"


def moment(ms: int, now_ms: int, otherwise: str = NOTHING) -> PageCell:
    """A point in time as how long ago it was, or how soon it will be."""
    return PageCell(text=otherwise) if ms < 0 else PageCell(text=format_age((now_ms - ms) / 1000), time=format_time(ms))


def span(ms: int) -> str:
    """A length of time."""
    return NOTHING if ms < 0 else format_duration(ms / 1000)


def group_reference(group: str) -> Link:
    """A consumer group, with the way to its view."""
    return Link(text=format_name(group), href=group_link(group))


_AT_MOST = {Unit.BYTES_RATE: bytes_rate, Unit.RATE: records_rate}


def _extreme(numbers: Sequence[float], unit: Unit) -> str:
    """The largest value, and of times until a moment the least: what comes nearer is what somebody looks for."""
    if unit is Unit.MOMENT:
        return f"At least {span(round(min(each for each in numbers if each >= 0)))} left"
    return f"At most {_AT_MOST.get(unit, count)(max(numbers, default=-1.0))}"


def hour_line(values: Sequence[float], unit: Unit) -> SmallLine | None:
    """A line of numbers of some unit, one a minute up to now, with what it shows in words; None if it would be a point."""
    if sum(value >= 0 for value in values) < 2:
        return None
    first = next((index for index, value in enumerate(values) if value >= 0), len(values))
    known = values[first:]
    missing = sum(value < 0 for value in known)
    gap = f", {missing} of them not known" if missing else ""
    return spark(values, f"{_extreme(known, unit)} in the last {format_count(len(known), 'minute')}{gap}")
