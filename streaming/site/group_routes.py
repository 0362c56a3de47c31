"""Answers about consumer groups over HTTP: `streaming.protocol.group_json`, from the last snapshot."""

from collections.abc import Callable
from urllib.parse import parse_qs, unquote

from streaming.api.group_pages import MOST_GROUPS, group_page, named_group
from streaming.metrics.export import Export
from streaming.metrics.group_snapshot import GroupBoard
from streaming.protocol.group_json import GROUPS_PATH, GroupDetail
from streaming.site.json_answers import bad_request, json_answer, not_found, unavailable
from streaming.web.handler import Answer, Request

_WHAT = "consumer group"


class GroupAnswers:
    """For several threads.

    Args:
        details: one group by its name, None if there is none.
    """

    def __init__(self, board: GroupBoard, export: Export, details: Callable[[str], GroupDetail | None]) -> None:
        self._board = board
        self._export = export
        self._details = details

    def answer(self, request: Request, now_ms: int) -> Answer:
        """The answer to a request for a path that begins with `GROUPS_PATH`."""
        if request.path == GROUPS_PATH:
            return self._page(request, now_ms)
        name = unquote(request.path.removeprefix(f"{GROUPS_PATH}/"), errors="strict") if _is_utf8(request.path) else None
        detail = None if name is None else named_group(name, self._export.has_consumer, self._details)
        return not_found(_WHAT) if detail is None else json_answer(detail, request)

    def _page(self, request: Request, now_ms: int) -> Answer:
        asked = parse_qs(request.query, keep_blank_values=True)
        limit = asked.get("limit", [str(MOST_GROUPS)])[-1]
        if not (limit.isascii() and limit.isdigit() and int(limit[:9])):
            return bad_request("limit is not a number of groups from 1 on")
        snapshot = self._board.latest(now_ms)
        if snapshot is None:
            return unavailable("nothing is known of consumer groups yet")
        return json_answer(group_page(snapshot, self._export.has_consumer, asked.get("after", [""])[-1], int(limit[:9])), request)


def _is_utf8(path: str) -> bool:
    try:
        unquote(path, errors="strict")
    except UnicodeDecodeError:
        return False
    return True
