"""The addresses of one installation, filled into alerts and dashboards: nothing else of a file changes."""

import re
from dataclasses import dataclass

from streaming.shipped.alert_links import dashboard_link, page_link, runbook_path
from streaming.shipped.shipped_files import ShippedFile, ShippedKind

_RUNBOOK = re.compile(r"(?m)^( +)runbook_url: docs/runbooks/\w+\.md\n")
_RUNBOOKS = '"docs/runbooks"'


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


HELD = {ShippedKind.ALERTS: frozenset({"page", "runbooks", "grafana"}), ShippedKind.DASHBOARDS: frozenset({"page", "runbooks"})}
"""Which addresses the files of a kind hold, by field; the files of other kinds hold none."""


def with_addresses(kind: ShippedKind, file: ShippedFile, addresses: Addresses) -> str:
    """The text of a file with these addresses."""
    if kind is ShippedKind.ALERTS:
        return _alert(file, addresses)
    if kind is ShippedKind.DASHBOARDS and addresses.runbook_folder:
        return file.text.replace(_RUNBOOKS, f'"{addresses.runbook_folder}"')
    return file.text


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


def _scalar(link: str) -> str:
    """A text in YAML: plain where it may be, else in quotes."""
    return f"'{link}'" if "{" in link else link
