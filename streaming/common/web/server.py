"""The HTTP server: one thread has all connections until they have sent a whole request, and again when they take their answers.

So clients that send nothing, end no handshake or read no answer cost a place and no thread. Threads are for requests alone: some for
probes, one for passwords, the others for the rest (`streaming.common.web.answering`). `prometheus_client.start_http_server` and the
standard library's servers have a thread for each connection, which any client holds as long as it likes.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from email.utils import formatdate
from http import HTTPStatus

from streaming.common.rare_log import RareLog
from streaming.common.web import client_limits as limits
from streaming.common.web.acceptor import Acceptor
from streaming.common.web.answering import Answering
from streaming.common.web.channel import Channel
from streaming.common.web.client_limits import ServerCounts
from streaming.common.web.gate import OPEN_PATHS, Gate
from streaming.common.web.hosts import is_foreign
from streaming.common.web.messages import HttpRequest, Response, head_of, sentence
from streaming.common.web.places import ConnectionPlace, ConnectionPlaces
from streaming.common.web.request_head import RequestError, RequestHead, head_length, parse_head

log = logging.getLogger(__name__)

_CHUNK_BYTES = 64 << 10


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
        self._gate = gate
        self._monotonic = monotonic
        self._log = RareLog(log)
        self._places = ConnectionPlaces()
        self._acceptor = Acceptor(host, port, self._converse, lambda: self._places.cut_overdue(monotonic()), self._log)
        self.address = self._acceptor.address
        """Host and port that it listens on."""
        self._answering = Answering(answer, gate, self._log)

    def start(self, name: str) -> None:
        """Begin to answer, in threads that end with the process."""
        self._acceptor.start(name)

    def close(self) -> None:
        """Stop answering and release the port; connections that are still open are cut."""
        self._acceptor.close()
        self._answering.close()

    async def _converse(self, connection: socket.socket, host: str) -> None:
        task = asyncio.current_task()
        assert task is not None
        place = self._places.enter(host, self._monotonic(), task.cancel)
        channel = Channel(self._acceptor.loop, connection)
        try:
            await self._shake(channel)
            await self._exchange(channel, place, host)
        except (OSError, asyncio.CancelledError) as error:  # it went away, has no accepted certificate, or was cut
            log.debug("connection ended", extra={"client": host, "error": str(error)})
        except Exception as error:  # noqa: BLE001 - whatever it is, the next connection is served
            self._log.write(logging.ERROR, "connection failed", {"client": host}, error)
        finally:
            self._places.leave(place)
            channel.close()

    async def _shake(self, channel: Channel) -> None:
        """The TLS handshake, if there is one."""
        context = self._gate.context()
        if context is None:
            return
        try:
            self._gate.check_names(await channel.shake(context))
        except ssl.SSLError:
            await channel.end(limits.LINGER_BYTES)  # so that the client gets the reason
            raise

    async def _exchange(self, channel: Channel, place: ConnectionPlace, host: str) -> None:
        try:
            head = await _read_head(channel, host)
        except RequestError as error:
            answer, method = sentence(error.status, str(error)), ""
        else:
            if head is None:
                return
            answer, method = await self._answer(head, place), head.method
        self._places.take(place, self._monotonic(), len(answer.body))
        for data in (head_of(answer, formatdate(usegmt=True)), b"" if method == "HEAD" else answer.body):
            rest = memoryview(data)
            while rest:
                rest = rest[await channel.write(rest[:_CHUNK_BYTES]) :]
                place.since = self._monotonic()
        self._places.end(place, self._monotonic())
        del answer, data, rest  # it may be large, and the client slow to go
        await channel.end(limits.LINGER_BYTES)

    def counts(self) -> ServerCounts:
        """Its refusals since its creation. For any thread."""
        return ServerCounts(cuts=self._places.cuts, refusals=self._answering.refusals, failures=self._gate.failures)

    async def _answer(self, head: RequestHead, place: ConnectionPlace) -> Response:
        if head.method not in ("GET", "HEAD"):
            return sentence(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD", Allow="GET, HEAD")
        if head.request.path not in OPEN_PATHS and is_foreign(head.request.host, self.address[0]):
            why = "this server has another name: ask it by the address that it listens on, or by localhost"
            return sentence(HTTPStatus.MISDIRECTED_REQUEST, why)
        return await self._answering.answer(head, lambda is_probe: self._places.ask(place, self._monotonic(), is_probe))


async def _read_head(channel: Channel, client: str) -> RequestHead | None:
    """The head of the request, None if the client ends before it does."""
    received, before = bytearray(), 0
    while (length := head_length(received, before)) is None:
        before = len(received)
        more = await channel.read(_CHUNK_BYTES)
        if not more:
            return None
        received += more
    return parse_head(bytes(received[:length]), client)
