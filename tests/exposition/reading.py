"""Pages read back with the parsers of prometheus_client."""

from collections.abc import Iterator

from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from streaming.cluster.consumers.group_snapshot import GroupBoard
from streaming.cluster.view.observer import Observer
from streaming.cluster.view.table import Table
from streaming.pages.exposition.render import render
from tests.view.rows import new_observer

Series = tuple[str, frozenset[tuple[str, str]]]


def page(
    table: Table, observer: Observer | None = None, *, now: float = 0.0, openmetrics: bool = False, groups: GroupBoard | None = None
) -> str:
    return render(table, observer or new_observer(), now, openmetrics, groups).decode()


def samples(text: str, *, openmetrics: bool = False) -> dict[Series, float]:
    """All samples of a page; a series that comes twice fails."""
    found: dict[Series, float] = {}
    for series, value in _samples(text, openmetrics):
        assert series not in found
        found[series] = value
    return found


def series(name: str, **labels: object) -> Series:
    return name, frozenset((label, str(value)) for label, value in labels.items())


def named(table: Table, name: str, observer: Observer | None = None, *, now: float = 0.0) -> dict[frozenset[tuple[str, str]], float]:
    """The samples of one name on the table's page, by their labels."""
    return {labels: value for (each, labels), value in samples(page(table, observer, now=now)).items() if each == name}


def _samples(text: str, openmetrics: bool) -> Iterator[tuple[Series, float]]:
    for family in (read_openmetrics if openmetrics else read_text)(text):
        for sample in family.samples:
            yield (sample.name, frozenset(sample.labels.items())), sample.value
