"""Answers about the state of the cluster over HTTP: the paths of `/api/v1/` besides those of consumer groups."""

from collections.abc import Callable, Mapping
from urllib.parse import unquote

from streaming.api.state import State
from streaming.errors import UsageError
from streaming.protocol.cost_json import COST_PATH, Cost
from streaming.protocol.disk_json import DISK_PATH
from streaming.protocol.json_message import Message
from streaming.protocol.listing_json import PARTITIONS_PATH, RETENTION_PATH, TRANSACTIONS_PATH
from streaming.protocol.problem_json import PROBLEMS_PATH
from streaming.protocol.status_json import STATUS_PATH
from streaming.site.json_answers import bad_request, json_answer, not_found
from streaming.web.messages import Answer, Request

API = "/api/v1/"


class StateAnswers:
    """For several threads.

    Args:
        cost: makes the message about what a scrape costs.
    """

    def __init__(self, state: State, cost: Callable[[], Cost]) -> None:
        self._state = state
        self._of_paths: Mapping[str, Callable[[str], Message]] = {
            STATUS_PATH: lambda _: state.status(),
            PROBLEMS_PATH: state.problems,
            PARTITIONS_PATH: state.partitions,
            TRANSACTIONS_PATH: state.transactions,
            RETENTION_PATH: state.retention,
            DISK_PATH: state.disk,
            COST_PATH: lambda _: cost(),
        }

    def answer(self, request: Request) -> Answer:
        """The answer to a request for a path that begins with `API`."""
        make = self._of_paths.get(request.path)
        try:
            if make is not None:
                return json_answer(make(request.query), request)
        except UsageError as error:
            return bad_request(str(error))
        return self._partition(request)

    def _partition(self, request: Request) -> Answer:
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
