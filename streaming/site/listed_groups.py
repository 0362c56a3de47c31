"""All consumer groups for the page: the summaries of the last snapshot, made once for each."""

from collections.abc import Callable, Sequence
from threading import Lock

from streaming.api.group_pages import MOST_GROUPS, group_page, named_group
from streaming.metrics.export import Export
from streaming.metrics.group_snapshot import GroupBoard, GroupSnapshot
from streaming.protocol.group_json import GroupDetail, GroupSummary


class ListedGroups:
    """For several threads.

    Args:
        details: one group by its name, None if there is none.
        now_ms: the present time, Unix milliseconds.
    """

    def __init__(self, board: GroupBoard, export: Export, details: Callable[[str], GroupDetail | None], now_ms: Callable[[], int]) -> None:
        self._board = board
        self._export = export
        self._details = details
        self._now_ms = now_ms
        self._lock = Lock()  # protects what follows
        self._last: tuple[GroupSnapshot, Sequence[GroupSummary]] | None = None

    def groups(self) -> Sequence[GroupSummary] | None:
        """All groups that are exported; None if nothing is known of them yet."""
        snapshot = self._board.latest(self._now_ms())
        if snapshot is None:
            return None
        with self._lock:
            if self._last is None or self._last[0] is not snapshot:
                self._last = snapshot, self._all(snapshot)
            return self._last[1]

    def group(self, name: str) -> GroupDetail | None:
        """One group; None if there is none with this name, or it is not exported."""
        return named_group(name, self._export.has_consumer, self._details)

    def _all(self, snapshot: GroupSnapshot) -> list[GroupSummary]:
        found: list[GroupSummary] = []
        after, more = "", True
        while more:
            page = group_page(snapshot, self._export.has_consumer, after, MOST_GROUPS)
            found += page.groups
            after, more = page.next, bool(page.next)
        return found
