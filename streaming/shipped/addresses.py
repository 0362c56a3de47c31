"""The addresses of one installation, filled into alerts and dashboards: nothing else of a file changes."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache

import yaml

from streaming.shipped.shipped_files import ShippedFile, ShippedKind, shipped

_VIEWS = (
    (re.compile("Transaction|LastStableOffset"), "/transactions"),
    (re.compile("Retention|ArrivesExpired|TimestampsInFuture|CompactionStalled"), "/retention"),
)
"""The view of the page that lists what an alert about a topic is about, by its name; of the others it is the view of the topic."""

_WITHOUT_LABELS = {"GroupsAbandoned": "/groups"}
"""The view of an alert that is about nothing alone; of all others it is the page's first."""

_PREFERRED = ("groups", "transactions", "retention", "observer", "overview")
"""The dashboard of an alert is the first of these that leads to its runbook. None needs a partition to be chosen."""

_OF_SCOPE = {"group": "groups", "observer": "observer"}
"""The dashboard of an alert of which none leads to the runbook; of other scopes it is the overview."""

_RUNBOOK = re.compile(r"(?m)^( +)runbook_url: docs/runbooks/\w+\.md\n")
_RUNBOOKS = '"docs/runbooks"'

HELD = {ShippedKind.ALERTS: frozenset({"page", "runbooks", "grafana"}), ShippedKind.DASHBOARDS: frozenset({"page", "runbooks"})}
"""Which addresses the files of a kind hold, by field; the files of other kinds hold none."""


def with_addresses(kind: ShippedKind, file: ShippedFile, addresses: Addresses) -> str:
    """The text of a file with these addresses."""
    if kind is ShippedKind.ALERTS:
        return _alert(file, addresses)
    if kind is ShippedKind.DASHBOARDS and addresses.runbook_folder:
        return file.text.replace(_RUNBOOKS, f'"{addresses.runbook_folder}"')
    return file.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Each "" if there is none: of the job's page, of a folder of runbooks (NAME.md), and of a Grafana."""

    page: str = ""
    runbooks: str = ""
    grafana: str = ""

    @property
    def runbook_folder(self) -> str:
        """Where runbooks are, by default on the page."""
        return self.runbooks or (f"{self.page}/runbooks" if self.page else "")


def _alert(file: ShippedFile, addresses: Addresses) -> str:
    """An alert with the address of its runbook, and annotations that lead to the page and to a dashboard."""
    links = {"runbook_url": f"docs/runbooks/{file.stem}.md"}
    if addresses.runbooks:
        links["runbook_url"] = f"{addresses.runbooks}/{file.stem}.md"
    elif addresses.page:
        links["runbook_url"] = addresses.page + runbook_path(file)
    if addresses.page:
        links["page"] = addresses.page + page_link(file)
    if addresses.grafana:
        links["dashboard"] = addresses.grafana + dashboard_link(file)
    place = _RUNBOOK.search(file.text)
    assert place is not None, file.name
    lines = "".join(f"{place[1]}{name}: {_scalar(link)}\n" for name, link in links.items())
    return file.text[: place.start()] + lines + file.text[place.end() :]


def runbook_path(alert: ShippedFile) -> str:
    """The path of an alert's runbook on a job's page."""
    return f"/runbooks/{alert.stem}"


def page_link(alert: ShippedFile) -> str:
    """The path of the view on a job's page that shows what an alert is about."""
    listing = next((f"{path}?filter" for names, path in _VIEWS if names.search(alert.stem)), "/topics?topic")
    return (
        "{{ if $labels.group }}/groups?group={{ urlquery $labels.group }}"
        "{{ else if and $labels.topic $labels.partition }}"
        "/partitions?topic={{ urlquery $labels.topic }}&partition={{ urlquery $labels.partition }}"
        f"{{{{ else if $labels.topic }}}}{listing}={{{{ urlquery $labels.topic }}}}"
        f"{{{{ else }}}}{_WITHOUT_LABELS.get(alert.stem, '/')}{{{{ end }}}}"
    )


def dashboard_link(alert: ShippedFile) -> str:
    """The path of an alert's dashboard in a Grafana, with what it can choose by the alert's labels.

    Where an alert leads: its runbook, the view of the job's page and the dashboard that show the same, as ends of addresses. They are
    templates of Prometheus: `urlquery` makes a name from a label part of an address, whatever it holds.
    """
    name = _dashboard_of(alert)
    chosen = (f"{{{{ with $labels.{each} }}}}&var-{each}={{{{ urlquery . }}}}{{{{ end }}}}" for each in _dashboards()[name].variables)
    return f"/d/segtail-{name}?from=now-3h&to=now{''.join(chosen)}"


def _dashboard_of(alert: ShippedFile) -> str:
    leading = [name for name in _PREFERRED if alert.stem in _dashboards()[name].runbooks]
    return leading[0] if leading else _OF_SCOPE.get(_scope(alert), "overview")


@cache
def _dashboards() -> dict[str, _Dashboard]:
    found = {}
    for each in shipped(ShippedKind.DASHBOARDS):
        choices = [choice for choice in json.loads(each.text)["templating"]["list"] if choice["type"] == "query"]
        runbooks = frozenset(re.findall(r"\$\{runbooks\}/(\w+)\.md", each.text))
        found[each.stem] = _Dashboard(runbooks=runbooks, variables=tuple(choice["name"] for choice in choices))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dashboard:
    """What a dashboard leads to, and what can be chosen on it by labels."""

    runbooks: frozenset[str]
    variables: tuple[str, ...]


def _scope(alert: ShippedFile) -> str:
    (group,) = yaml.safe_load(alert.text)["groups"]
    return str(group["rules"][0]["labels"]["scope"])


def _scalar(link: str) -> str:
    """A text in YAML: plain where it may be, else in quotes."""
    return f"'{link}'" if "{" in link else link
