"""Answers about the state of the cluster over HTTP: the paths of `/api/v1/`."""

from collections.abc import Callable
from urllib.parse import unquote

from streaming.broker.protocol.cost_json import COST_PATH, Cost
from streaming.broker.protocol.group_json import GROUPS_PATH
from streaming.broker.protocol.listing_json import PARTITIONS_PATH
from streaming.common.web.messages import HttpRequest, Response
from streaming.errors import NotYetError, UsageError
from streaming.pages.api.state import State
from streaming.pages.site.json_answers import bad_request, json_answer, not_found, unavailable

API = "/api/v1/"


class StateAnswers:
    """For several threads.

    Args:
        cost: makes the message about what a scrape costs.
    """

    def __init__(self, state: State, cost: Callable[[], Cost]) -> None:
        self._state = state
        self._cost = cost

    def answer(self, request: HttpRequest) -> Response:
        """The answer to a request for a path that begins with `API`."""
        try:
            message = self._cost() if request.path == COST_PATH else self._state.answer(request.path, request.query)
            if message is not None:
                return json_answer(message, request)
            return self._group(request) if request.path.startswith(f"{GROUPS_PATH}/") else self._partition(request)
        except NotYetError as error:
            return unavailable(str(error))
        except UsageError as error:
            return bad_request(str(error))

    def _group(self, request: HttpRequest) -> Response:
        """One consumer group: ``groups/NAME``."""
        try:
            name = unquote(request.path.removeprefix(f"{GROUPS_PATH}/"), errors="strict")
        except UnicodeDecodeError:
            return not_found("consumer group")
        detail = self._state.group(name, request.query)
        return not_found("consumer group") if detail is None else json_answer(detail, request)

    def _partition(self, request: HttpRequest) -> Response:
        """One partition: ``partitions/TOPIC/NUMBER``."""
        parts = request.path.removeprefix(f"{PARTITIONS_PATH}/").split("/")
        if not request.path.startswith(f"{PARTITIONS_PATH}/") or len(parts) != 2:
            return not_found("path")
        try:
            topic = unquote(parts[0], errors="strict")
        except UnicodeDecodeError:
            return not_found("partition")
        if not (parts[1].isascii() and parts[1].isdigit() and len(parts[1]) <= 10):
            return bad_request("the number of a partition is not a number")
        detail = self._state.partition(topic, int(parts[1]))
        return not_found("partition") if detail is None else json_answer(detail, request)
