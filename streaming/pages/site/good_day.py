"""The numbers of a good day as the first view draws them: each with its last hour, and what it is about or why it is not known."""

from dataclasses import dataclass

from streaming.broker.protocol.status_json import ClusterNumbers
from streaming.common.formatting import format_time
from streaming.pages.listings.details import listed_facts
from streaming.pages.listings.list_cells import Times
from streaming.pages.listings.listing import Field
from streaming.pages.listings.problem_list import CLUSTER_NUMBERS, FIGURES
from streaming.pages.site.page_charts import SmallLine
from streaming.pages.site.page_links import group_link, log_dir_link
from streaming.pages.site.page_views import Fact, drawn_facts
from streaming.pages.site.page_words import Link, hour_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number of now. ``time``: for machines, "" if it is none; ``about``: what it is about, or why it is not known."""

    name: str
    text: str
    time: str
    about: Link
    line: SmallLine | None


def figures_of(numbers: ClusterNumbers) -> tuple[Figure, ...]:
    """The numbers of now."""
    return tuple(_figure(each, numbers) for each in CLUSTER_NUMBERS.columns[:FIGURES])


def coming_of(numbers: ClusterNumbers) -> tuple[Fact, ...]:
    """What comes next."""
    without = [each.name for each in CLUSTER_NUMBERS.columns[:FIGURES]]
    return drawn_facts(listed_facts(CLUSTER_NUMBERS, numbers, Times(numbers.at_ms), without=without))


def _figure(field: Field, numbers: ClusterNumbers) -> Figure:
    cell = field.cell_in(numbers, Times(numbers.at_ms))
    href = group_link(cell.group) if cell.group else log_dir_link(cell.log_dir) if cell.log_dir else ""
    return Figure(
        name=field.heading,
        text=cell.text,
        time=format_time(cell.at_ms) if cell.at_ms >= 0 else "",
        about=Link(text=cell.note, href=href),
        line=hour_line(cell.curve, field.unit),
    )
