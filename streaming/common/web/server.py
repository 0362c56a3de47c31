"""The HTTP server of pages: Tornado has all connections, and threads are for whole requests alone.

So clients that send nothing, end no handshake or read no answer cost a place and no thread. `prometheus_client.start_http_server` and the
standard library's servers have a thread for each connection, which any client holds as long as it likes.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from functools import partial
from http import HTTPStatus

from streaming.common.lanes import BusyError, Lane
from streaming.common.logs import RareLog
from streaming.common.web import places as limits
from streaming.common.web.gate import OPEN_PATHS, Gate, is_foreign
from streaming.common.web.messages import HttpRequest, Response, accepts_gzip, sentence
from streaming.common.web.places import ConnectionPlace, ConnectionPlaces, ServerCounts, Stage, client_of
from streaming.common.web.port import Handler, Port, PortOptions

log = logging.getLogger(__name__)

_SHOWN = 200
"""So many characters of a path are logged, and of a client's name for itself are kept."""


class Server:
    """Listens from its creation, answers from `start` to `close`.

    Args:
        host: name or address, of IPv4 or IPv6.
        port: 0 for any that is free.
        answer: returns the answer to a request; called by several threads.
        gate: TLS and passwords.
        monotonic: seconds of a monotonic clock.

    Raises:
        OSError: nothing can listen there.
    """

    def __init__(self, host: str, port: int, answer: Callable[[HttpRequest], Response], gate: Gate, monotonic: Callable[[], float]) -> None:
        self._make = answer
        self._gate = gate
        self._monotonic = monotonic
        self._log = RareLog(log)
        self._places = ConnectionPlaces()
        self._port = Port(
            host,
            port,
            _Page,
            {"server": self},
            options=PortOptions(head_bytes=limits.HEAD_BYTES, body_bytes=limits.LINGER_BYTES, linger_bytes=limits.LINGER_BYTES),
            places=self._places,
            notes=self._log,
            monotonic=monotonic,
            tls=gate.context,
            check=gate.check_names,
        )
        self.address = self._port.address
        """Host and port that it listens on."""
        self._probes = Lane("http-probe", limits.PROBE_THREADS, limits.PROBES)
        self._requests = Lane("http", limits.REQUEST_THREADS, limits.REQUESTS)
        self._passwords = Lane("http-password", 1, limits.PASSWORDS_WAITING)
        self._checking: Counter[str] = Counter()  # passwords that wait, by client
        self._refusals = self._wrong = 0
        self._wrong_log = RareLog(log, monotonic, limits.WRONG_LOG_SECONDS)

    def start(self, name: str) -> None:
        """Begin to answer, in threads that end with the process."""
        self._port.start(name)

    def close(self) -> None:
        """Stop answering and release the port; connections that are still open are cut."""
        self._port.close()
        for lane in (self._probes, self._requests, self._passwords):
            lane.close()

    def counts(self) -> ServerCounts:
        """Its refusals since its creation. Any thread may call it."""
        return ServerCounts(cuts=self._places.cuts, refusals=self._refusals, wrong=self._wrong, failures=self._gate.failures)

    async def answer(self, request: HttpRequest, authorization: str, place: ConnectionPlace) -> Response:
        """The answer, or the reason why there is none."""
        is_probe = request.path in OPEN_PATHS
        if not is_probe and is_foreign(request.host, self.address[0]):
            why = "this server has another name: ask it by the address that it listens on, or by localhost"
            return sentence(HTTPStatus.MISDIRECTED_REQUEST, why)
        try:
            if not await self._is_admitted(request, authorization):
                asks = 'Basic realm="segtail", charset="UTF-8"'
                return sentence(HTTPStatus.UNAUTHORIZED, "a name and a password are needed", WWW_Authenticate=asks)
            if not self._places.ask(place, self._monotonic(), is_probe):  # only now: a client that is not known takes no other's place
                raise BusyError
            lane = self._probes if is_probe else self._requests
            return await asyncio.wrap_future(lane.do(partial(self._made, request)))
        except BusyError:
            self._refusals += 1
            return sentence(HTTPStatus.SERVICE_UNAVAILABLE, "busy: try again", Retry_After=str(limits.RETRY_SECONDS))

    async def _is_admitted(self, request: HttpRequest, authorization: str) -> bool:
        """Whether the request may be answered. One whose password was right before does not wait; one that is wrong waits for a while.

        Raises:
            BusyError: too many others wait to have theirs checked.
        """
        admitted = self._gate.remembers(request.path, authorization)
        if admitted:
            return True
        try:
            if admitted is None and await self._is_right(client_of(request.client), authorization):
                return True
        except BusyError:
            await asyncio.sleep(limits.WRONG_SECONDS)
            raise
        if authorization:
            self._wrong += 1
            self._wrong_log.write(logging.WARNING, "wrong password", {"client": request.client, "wrong_so_far": self._wrong})
            await asyncio.sleep(limits.WRONG_SECONDS)
        return False

    async def _is_right(self, client: str, authorization: str) -> bool:
        if self._checking[client] >= limits.PASSWORDS_PER_CLIENT:
            raise BusyError
        self._checking[client] += 1
        try:
            return await asyncio.wrap_future(self._passwords.do(lambda: self._gate.admits(authorization)))
        finally:
            self._checking[client] -= 1
            self._checking += Counter()  # forgets those with none

    def _made(self, request: HttpRequest) -> Response:
        try:
            return self._make(request)
        except Exception as error:  # noqa: BLE001 - the next request is answered
            self._log.write(logging.ERROR, f"no answer to {request.path[:_SHOWN]}", {}, error)
            return sentence(HTTPStatus.INTERNAL_SERVER_ERROR, "an error; the log of this process has it")


class _Page(Handler):
    SUPPORTED_METHODS = ("GET", "HEAD")

    def initialize(self, port: Port, server: Server) -> None:  # type: ignore[override]
        super().initialize(port)
        self._server = server

    async def get(self) -> None:
        headers, places, place = self.request.headers, self.port.places, self.place
        request = HttpRequest(
            path=self.request.path,
            query=self.request.query,
            client=self.request.remote_ip or "",
            user_agent=headers.get("User-Agent", "")[:_SHOWN],
            accept=headers.get("Accept", ""),
            gzip=accepts_gzip(headers.get("Accept-Encoding", "")),
            host=headers.get("Host", ""),
        )
        answer = await self._server.answer(request, headers.get("Authorization", ""), place)
        if place.stage is not Stage.SILENT:  # an answer of some words to who may not ask: it takes no reader's place
            places.take(place, self.port.monotonic(), len(answer.body))
        self.set_status(answer.status, answer.status.phrase)
        packed = {"Content-Encoding": "gzip"} if answer.gzip else {}
        more = {"Content-Type": answer.content_type, "Vary": "Accept, Accept-Encoding", **packed, **answer.headers}
        for name, value in {**more, "Content-Length": str(len(answer.body))}.items():
            self.set_header(name, value)
        if self.request.method == "GET":
            await self.send(answer.body)
        places.end(place, self.port.monotonic())
        del answer  # it may be large, and the client slow to go
        await self.finish()

    head = get
