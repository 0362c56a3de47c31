"""The views of the page about runbooks: the list of all, and one."""

from dataclasses import dataclass

from streaming.broker.protocol.status_json import Status
from streaming.pages.site.markdown_pieces import DocumentPiece, pieces_of
from streaming.pages.site.page_views import PageView
from streaming.shipped.runbooks import Runbook, find_runbook, runbook_index


@dataclass(frozen=True, slots=True, kw_only=True)
class RunbookView(PageView):
    """A document."""

    pieces: tuple[DocumentPiece, ...]


def runbook_view(name: str, status: Status) -> RunbookView | None:
    """The runbook of this name, with "" the list; None if there is none."""
    found = find_runbook(name) if name else runbook_index()
    return None if found is None else _view(found, status)


def _view(runbook: Runbook, status: Status) -> RunbookView:
    return RunbookView(title=runbook.name, here="", status=status, pieces=pieces_of(runbook.text))
