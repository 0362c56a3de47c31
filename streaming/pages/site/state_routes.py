"""Answers about the state of the cluster over HTTP: the paths of `/api/v1/`, as JSON; and the server of a page, with its address."""

from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import unquote

import cramjam

from streaming.broker.protocol.group_json import GROUPS_PATH
from streaming.broker.protocol.json_message import Message
from streaming.broker.protocol.listing_json import PARTITIONS_PATH, TOPICS_PATH
from streaming.broker.protocol.restart_json import SAFE, UNSAFE
from streaming.broker.protocol.status_json import COST_PATH, Cost
from streaming.common.units import Address
from streaming.common.web.gate import Gate
from streaming.common.web.messages import HttpRequest, Response, sentence
from streaming.common.web.server import Server
from streaming.errors import MissingError, NotYetError, UsageError
from streaming.pages.api.paging import parameters_of
from streaming.pages.api.state import State

API = "/api/v1/"
JSON_TYPE = "application/json"

_SMALL = 1024
"""A body of fewer bytes is not worth packing."""

RESTART_HOOK = "/-/restart/"


class StateAnswers:
    """Answers about a state, by paths. ``cost``: makes the message about a scrape's cost; None where nothing is scraped. Thread-safe."""

    def __init__(self, state: State, cost: Callable[[], Cost] | None) -> None:
        self._state = state
        self._cost = no_cost if cost is None else cost

    def answer(self, request: HttpRequest) -> Response:
        """The answer to a request for a path that begins with `API`."""
        try:
            message = self._state.answer(request.path, request.query)
            if message is not None:
                return _json(message, request)
            _, _, name = request.path.removeprefix(API).partition("/")
            if request.path.startswith(f"{GROUPS_PATH}/"):
                return _single("consumer group", name, request, lambda group: self._state.group(group, request.query))
            parameters_of(request.query, ())  # of the others none has any
            if request.path == COST_PATH:
                return _json(self._cost(), request)
            if request.path.startswith(f"{TOPICS_PATH}/"):
                return _single("topic", name, request, self._state.topic)
            return self._partition(request)
        except NotYetError as error:
            return sentence(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        except UsageError as error:
            return _bad_request(str(error))

    def _partition(self, request: HttpRequest) -> Response:
        """One partition: ``partitions/TOPIC/NUMBER``."""
        topic, *numbers = request.path.removeprefix(f"{PARTITIONS_PATH}/").split("/")
        if not request.path.startswith(f"{PARTITIONS_PATH}/") or len(numbers) != 1:
            return _not_found("path")
        number = numbers[0]
        if not (number.isascii() and number.isdigit() and len(number) <= 10):
            return _bad_request("the number of a partition is not a number")
        return _single("partition", topic, request, lambda name: self._state.partition(name, int(number)))


def no_cost() -> Cost:
    """Where nothing is scraped.

    Raises:
        NotYetError: always, with a sentence for the client.
    """
    raise NotYetError("what a scrape costs is known of a running job alone")


def _json(message: Message, request: HttpRequest) -> Response:
    """A message."""
    body = message.encode() + b"\n"
    packs = request.gzip and len(body) > _SMALL
    packed = bytes(cramjam.gzip.compress(body, 1)) if packs else body
    return Response(status=HTTPStatus.OK, content_type=JSON_TYPE, body=packed, gzip=packs)


def _single(what: str, encoded: str, request: HttpRequest, found: Callable[[str], Message | None]) -> Response:
    """The thing whose name stands in a path."""
    try:
        detail = found(unquote(encoded, errors="strict"))
    except UnicodeDecodeError:
        detail = None
    return _not_found(what) if detail is None else _json(detail, request)


def _not_found(what: str) -> Response:
    """There is no such thing."""
    return sentence(HTTPStatus.NOT_FOUND, f"no such {what}")


def _bad_request(why: str) -> Response:
    """The client asked for something that cannot be; ``why`` is a sentence that names it."""
    return sentence(HTTPStatus.BAD_REQUEST, why)


def restart_answer(state: State, request: HttpRequest) -> Response:
    """Whether the broker may be restarted whose id ends the path: 200, 409 with the reasons, 503 where that is not known. What it costs is
    in further lines.

    ``?accept=CODE,...``: as for `RESTART_PATH`; 400 if a code is unknown.
    """
    broker = request.path.removeprefix(RESTART_HOOK)
    if not (broker.isascii() and broker.isdigit()):
        return _not_found("broker: the path is /-/restart/BROKER")
    try:
        (row,) = state.restart(f"{request.query}&broker={broker}").rows
    except MissingError as error:
        return sentence(HTTPStatus.NOT_FOUND, str(error))
    except UsageError as error:
        return _bad_request(str(error))
    phase = [] if row.running else ["it hangs" if row.hangs else "it is not running: this is about its start"]
    why = "; ".join([*phase, *row.against])
    status = {SAFE: HTTPStatus.OK, UNSAFE: HTTPStatus.CONFLICT}.get(row.verdict, HTTPStatus.SERVICE_UNAVAILABLE)
    costs = "".join(f"\nit costs: {each.what}" for each in row.costs)
    return sentence(status, (f"{row.verdict}: {why}" if why else row.verdict) + costs)


def listen(host: str, port: int, answer: Callable[[HttpRequest], Response], gate: Gate, monotonic: Callable[[], float]) -> Server:
    """A server that listens and does not answer yet; arguments as for `Server`.

    Raises:
        UsageError: nothing can listen there.
    """
    try:
        return Server(host, port, answer, gate, monotonic)
    except OSError as error:
        raise UsageError(
            f"cannot listen on {host}:{port}: {error.strerror}; stop the process that uses it, "
            "or choose another address with --listen HOST:PORT"
        ) from error


def root_url(server: Server, gate: Gate) -> str:
    """The URL of what a server has at ``/``, which it ends with."""
    return f"{'https' if gate.encrypted else 'http'}://{Address(*server.address)}/"
