"""Answers about consumer groups over HTTP: `streaming.protocol.group_json`, from the last snapshot."""

from collections.abc import Callable
from urllib.parse import unquote

from streaming.api.group_pages import MOST_GROUPS, group_page, named_group
from streaming.api.paging import limit_of, parameters_of
from streaming.errors import UsageError
from streaming.metrics.export import Export
from streaming.metrics.group_snapshot import GroupBoard
from streaming.protocol.group_json import GROUPS_PATH, GroupDetail
from streaming.site.json_answers import bad_request, json_answer, not_found, unavailable
from streaming.web.messages import Answer, Request

_WHAT = "consumer group"


class GroupAnswers:
    """For several threads.

    Args:
        details: one group by its name, None if there is none.
        ready: whether everything that was there has been read once; until then no group is no answer.
    """

    def __init__(
        self, board: GroupBoard, export: Export, details: Callable[[str], GroupDetail | None], ready: Callable[[], bool] = lambda: True
    ) -> None:
        self._board = board
        self._export = export
        self._details = details
        self._ready = ready

    def answer(self, request: Request, now_ms: int) -> Answer:
        """The answer to a request for a path that begins with `GROUPS_PATH`."""
        if request.path == GROUPS_PATH:
            return self._page(request, now_ms)
        name = unquote(request.path.removeprefix(f"{GROUPS_PATH}/"), errors="strict") if _is_utf8(request.path) else None
        detail = None if name is None else named_group(name, self._export.has_consumer, self._details)
        return not_found(_WHAT) if detail is None else json_answer(detail, request)

    def _page(self, request: Request, now_ms: int) -> Answer:
        try:
            asked = parameters_of(request.query, ("after", "limit"))
            limit = limit_of(asked, MOST_GROUPS)
        except UsageError as error:
            return bad_request(str(error))
        snapshot = self._board.latest(now_ms)
        if snapshot is None:
            return unavailable("nothing is known of consumer groups yet")
        page = group_page(snapshot, self._export.has_consumer, asked.get("after", ""), limit)
        if not page.total and not page.unread and not self._ready():
            return unavailable("nothing is known of consumer groups yet: what is there is still on its way")
        return json_answer(page, request)


def _is_utf8(path: str) -> bool:
    try:
        unquote(path, errors="strict")
    except UnicodeDecodeError:
        return False
    return True
