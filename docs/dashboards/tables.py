"""The tables of the dashboards as values: what a panel asks, in words for people, and how it is shown."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import yaml
from pydantic import ConfigDict, TypeAdapter

from docs.dashboards.pairs import one_of_a_pair

FOLDER = Path(__file__).parent
SHARED = "late_transactions"
"""The table of one panel that several dashboards use."""

_CLUSTER = 'job=~"$job"'
_BROKER = f'{_CLUSTER},broker=~"$broker"'
_WORDS = {
    "CLUSTER": _CLUSTER,
    "BROKER": _BROKER,
    "TOPICS": f'{_CLUSTER},topic=~"$topic"',
    "TOPIC": f'{_BROKER},topic=~"$topic"',
    "PARTITION": f'{_BROKER},topic=~"$topic",partition=~"$partition"',
    "ONE": 'job="$job",broker=~"$broker",topic="$topic",partition="$partition"',
    "GROUP": f'{_CLUSTER},group=~"$group"',
    "CONSUMED": f'{_CLUSTER},group=~"$group",topic=~"$topic"',
    "UNLESS_UNUSED": f'unless on (job, group) segtail_group_use{{{_CLUSTER},use=~"abandoned|throw_away"}}',
    "RATE": "$__rate_interval",
    "KNOWN": (
        f"max by (job) (last_over_time(segtail_build_info{{{_CLUSTER}}}[1d])"
        f' or up{{{_CLUSTER},job=~".*segtail.*",job!~".*agent.*"}} or up{{{_CLUSTER},pod=~".*segtail.*",pod!~".*agent.*"}}'
        f' or up{{{_CLUSTER},job=~".*segtail.*-job"}} or up{{{_CLUSTER},pod=~".*segtail.*-job-0"}}'
        f" or up{{{_CLUSTER}}} and on (job, instance) count_over_time(segtail_build_info{{{_CLUSTER}}}[30d:1h]))"
    ),
}
"""Words of the queries, and the PromQL that they stand for: what a user has chosen, and Grafana's interval of rates.

`UNLESS_UNUSED` leaves out the groups of which no alert of their own is sent, so that a number that is red is one of alerts.

`KNOWN` are the clusters that there are, as ObserverDown finds them: a segtail answered within a day, or is a target that answers no more
within a month, or by its name, a target that never did.

A cluster is the `job` label of its scrapes, and each of these selectors chooses it.
"""

_ALL_CLUSTERS = re.compile(r'\b(?:(?:segtail|scrape)_\w+|ALERTS|up)\b(?!\{job=~?"\$job"|\{alertname="Watchdog")')
"""A metric without such a selector: it would add up all clusters of a Prometheus. Watchdog is no cluster's."""

_CLOSED = ConfigDict(extra="forbid")  # what a table says by mistake is named

Kind = Literal["stat", "chart", "bars", "table", "matrix"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Show:
    """How a panel looks.

    Args:
        unit: Grafana's name of it; of a table it is that of the column Value.
        top: only so many series, those that are largest at the end of the time shown; 0 is all.
        steps: from which value on which colour; below the first a value is green. Without any no value is bad by itself.
        none: what stands where a query has no answer.
        linked: each series leads to its partition.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _CLOSED

    unit: str
    top: int = 0
    steps: tuple[tuple[int | float, str], ...] = ()
    width: int = 0
    height: int = 0
    none: str = "none"
    runbook: str = ""
    legend: str = ""
    decimals: int | None = None
    trend: bool = True
    stacked: bool = False
    linked: bool = False
    most: int | float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """How the values of one query of a matrix look.

    Args:
        unit: Grafana's name of it.
        steps: as of a panel.
        texts: words that stand for single values.
        width: of the column, in pixels.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _CLOSED

    unit: str = "short"
    steps: tuple[tuple[int | float, str], ...] = ()
    texts: dict[int, str] = field(default_factory=dict)
    width: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One panel: PromQL by the legend of its series; ``columns`` of a table are label, head and width.

    A width is in pixels; a column of names of any length has at least that, and grows. ``texts`` are words that stand for single values
    of labels, "" for an empty one; other labels that are empty, and a table that is, show what ``show`` has for none.

    A matrix has a row for each cluster, and a column for each query, whose legend is the column's head; ``cells`` are the columns by these
    heads. Rows are sorted by the first two, the largest first.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _CLOSED

    kind: Kind
    title: str
    text: str
    queries: dict[str, str]
    columns: tuple[tuple[str] | tuple[str, str] | tuple[str, str, int], ...] = ()
    texts: dict[str, dict[str, str]] = field(default_factory=dict)
    cells: dict[str, Cell] = field(default_factory=dict)
    show: Show


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """One dashboard; of the variables in ``one`` just one value can be chosen, of the others any and all."""

    title: str
    text: str
    variables: tuple[str, ...]
    one: tuple[str, ...] = ()
    rows: tuple[tuple[str, tuple[Panel, ...]], ...]


_PANEL = TypeAdapter(Panel)


def names() -> list[str]:
    """The dashboards that there are."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml") if path.stem != SHARED)


def read(name: str) -> Dashboard:
    """The dashboard of a file.

    Raises:
        ValueError: a panel has a field that there is not, or lacks one.
    """
    table = _load(name)
    rows = tuple((row["row"], tuple(map(_panel, row["panels"]))) for row in table["rows"])
    return Dashboard(
        title=table["title"], text=table["text"], variables=tuple(table["variables"]), one=tuple(table.get("one", ())), rows=rows
    )


def promql(short: str, words: Mapping[str, str] = _WORDS) -> str:
    """A query with its words filled in.

    Raises:
        ValueError: a metric in it is that of all clusters.
    """
    filled = re.sub(rf"\b({'|'.join(words)})\b", lambda word: words[word[0]], short)
    if mixed := _ALL_CLUSTERS.search(filled):
        raise ValueError(f"{mixed[0]} is not that of the chosen cluster, write {mixed[0]}{{CLUSTER}}: {short}")
    return filled


def _panel(given: dict[str, Any]) -> Panel:
    words: Mapping[str, str] = _WORDS
    if "use" in given:
        words = {"SELECTOR": _WORDS[given["selector"]], "ROWS": str(given["rows"])}
        shared = _load(given["use"])
        given = shared | {"show": shared["show"] | {"height": given["height"]}}
    (kind,) = {"stat", "chart", "bars", "table", "matrix"} & given.keys()
    fields = {name: value for name, value in given.items() if name not in (kind, "query", "queries")}
    queries = given.get("queries") or {given["show"].get("legend", ""): given["query"]}
    filled = {legend: one_of_a_pair(promql(query, words)) for legend, query in queries.items()}
    return _PANEL.validate_python({"kind": kind, "title": given[kind], "queries": filled, **fields})


def _load(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    return loaded
