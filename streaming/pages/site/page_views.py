"""What each view of the page shows, as values that its template only has to write down."""

from collections.abc import Iterable
from dataclasses import dataclass

from streaming.broker.protocol.status_json import Status
from streaming.common.formatting import format_time
from streaming.pages.listings import details
from streaming.pages.site.page_tables import FormChoice, PageTable
from streaming.pages.site.page_words import PageCell, drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class PageView:
    """What all views have."""

    title: str
    here: str  # the entry of the navigation
    status: Status
    json: str = ""  # the same for programs, "" if there is none

    @property
    def as_of(self) -> PageCell:
        """When this was so."""
        return PageCell(text=format_time(self.status.at_ms), time=format_time(self.status.at_ms))

    @property
    def tone(self) -> str:
        """The class of the verdict: a severity, or none of them while the job starts."""
        return "starting" if self.status.start is not None else self.status.severity or "fine"

    @property
    def badge(self) -> str:
        """One word for how it is."""
        return "starting" if self.status.start is not None else badge(self.status.severity)

    @property
    def not_current(self) -> str:
        """The band above everything, "" if what is below is current."""
        return f"Not current: {lower_first(self.status.not_current)}." if self.status.not_current else ""

    @property
    def counts(self) -> str:
        """How many problems there are, in words; while the job starts, how far it is."""
        status = self.status
        if status.start is not None:
            return status.start.what
        numbers = ((status.critical, "critical"), (status.warning, "warning"), (status.info, "info"))
        return ", ".join(counted(count, word) for count, word in numbers if count) or "no problems"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A name and a value; ``long``: a sentence, which has a row of its own."""

    name: str
    value: PageCell
    long: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A form that filters a table. ``parameters``: those that it does not change, as hidden fields; ``sorts``: its choices, if any."""

    path: str
    text: str
    label: str
    parameters: tuple[tuple[str, str], ...] = ()
    sorts: tuple[FormChoice, ...] = ()
    order: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListView(PageView):
    """A table."""

    intro: str
    table: PageTable
    filter: Filter | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorView(PageView):
    """Why there is no view."""

    words: str


def badge(severity: str) -> str:
    """The word for a severity, as everywhere else."""
    return severity or "fine"


def drawn_facts(facts: Iterable[details.Fact]) -> tuple[Fact, ...]:
    """What is said of a thing, as it is drawn."""
    return tuple(Fact(name=each.name, value=drawn(each.cell, each.tone, name=each.is_name), long=each.long) for each in facts)


def lower_first(sentence: str) -> str:
    """A sentence behind a colon."""
    return f"{sentence[:1].lower()}{sentence[1:]}"


def counted(count: int, word: str) -> str:
    """Some problems of one severity."""
    plural = "s" if word == "warning" and count != 1 else ""
    return f"{count:,} {word}{plural}"
