"""A port for HTTP/1.1, by Tornado, in a thread of its own: pages, metrics and the calls of an agent come through this one class.

Tornado does sockets, TLS and the form of requests, and bounds one request. What it does not know are clients. So here is: who may be
connected and for how long (`places`), which certificate the next client is shown, what a process without descriptors does, and how a
connection ends so that its client can read why.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
import sys
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from threading import Thread
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPInputError
from tornado.iostream import BaseIOStream, IOStream, SSLIOStream, StreamClosedError, UnsatisfiableReadError
from tornado.web import Application, HTTPError, RequestHandler, stream_request_body

from streaming.common.logs import RareLog
from streaming.common.web.messages import SECURED, Response, sentence, whole
from streaming.common.web.places import ConnectionPlace, ConnectionPlaces, Stage
from streaming.errors import quoted

log = logging.getLogger(__name__)

_BACKLOG = 128
_SWEEP_SECONDS = 0.25
_READ_BYTES = 16 << 10
_WRITE_BYTES = 256 << 10

_FULL_SECONDS, _CUT_SECONDS = 0.1, 0.01
"""How long nothing is accepted where the process has no descriptor left; and where a connection was cut for that."""

_LINGER_SECONDS = 10.0
"""How long a client may take to read why it was refused."""

_HANDSHAKE = 0x16
"""The first byte of a client's that begins TLS."""

_EARLIER_SECONDS = 600.0
"""How often the log says that a job of an earlier build asks, which does so again and again."""

_REFUSALS = {
    "Unexpected HTTP version": (HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "HTTP/1.0 or HTTP/1.1, please"),
    "Content-Length too long": (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the request is too large"),
    "chunked body too large": (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the request is too large"),
}
"""What Tornado finds in bytes that are no request, by the beginning of its words; everything else is not understood."""


class Port:
    """Listens from its creation, answers from `start` to `close`.

    Args:
        handler: answers a request; its first argument is this port.
        tls: the context for a new connection, None for none.
        check: raises ssl.SSLError if a client's certificate is not the right one.

    Raises:
        OSError: nothing can listen there.
    """

    def __init__(
        self,
        host: str,
        port: int,
        handler: type[Handler],
        more: Mapping[str, object],
        *,
        options: PortOptions,
        places: ConnectionPlaces,
        notes: RareLog,
        monotonic: Callable[[], float],
        tls: Callable[[], ssl.SSLContext | None],
        check: Callable[[Mapping[str, Any]], None] = lambda _: None,
    ) -> None:
        self.places, self.notes, self.monotonic, self.options = places, notes, monotonic, options
        self._tls, self._check = tls, check
        self._application = Application([(".*", handler, {"port": self, **more})], log_function=lambda _: None)
        self._listener = listen_at(host, port)
        bound = self._listener.getsockname()
        self.address: tuple[str, int] = str(bound[0]), int(bound[1])
        """Host and port that it listens on."""
        self._loop = asyncio.new_event_loop()
        self._ends = asyncio.Event()
        self._grace = 0.0
        self._streams: set[_Stream] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._earlier = RareLog(log, monotonic, _EARLIER_SECONDS)
        self._thread: Thread | None = None
        log_rarely(notes)

    def start(self, name: str) -> None:
        """Begin to accept, in a thread that ends with the process."""
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def close(self, seconds: float = 0.0) -> None:
        """Accept no connection any more, give requests that are being answered a moment, cut all connections and release the port."""
        if self._thread is not None and self._thread.is_alive():
            self._grace = seconds
            self._loop.call_soon_threadsafe(self._ends.set)
            self._thread.join()
        self._listener.close()
        self._loop.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        idle = self.options.idle_seconds
        self._http = HTTPServer(
            self._application,
            no_keep_alive=idle is None,
            chunk_size=_READ_BYTES,
            max_header_size=self.options.head_bytes,
            idle_connection_timeout=idle,
            max_body_size=self.options.body_bytes,
            body_timeout=self.options.body_seconds,
        )
        self._do(self._sweep())
        self._listen()
        await self._ends.wait()
        self._loop.remove_reader(self._listener)
        self._listener.close()
        ends_at = self.monotonic() + self._grace
        while self.places.busy and self.monotonic() < ends_at:
            await asyncio.sleep(_CUT_SECONDS)
        for stream in list(self._streams):
            self.places.leave(stream.place)
            stream.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            self.places.cut_overdue(self.monotonic())

    def _listen(self) -> None:
        if not self._ends.is_set():
            self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        """Accept one connection a turn of the loop, so that none is cut for a later one before its request was looked at."""
        try:
            connection, address = self._listener.accept()
        except BlockingIOError:  # it has gone again
            return
        except OSError as error:
            self.notes.write(logging.WARNING, "no connection is accepted for now", {"error": str(error)})
            self._loop.remove_reader(self._listener)
            self._loop.call_later(_CUT_SECONDS if self.places.make_room() else _FULL_SECONDS, self._listen)
            return
        connection.setblocking(False)
        self._take(connection, address)

    def _take(self, connection: socket.socket, address: tuple[Any, ...]) -> None:
        context = self._tls()
        if context is None:
            stream: _Plain | _Tls = _Plain(connection, read_chunk_size=_READ_BYTES)
        else:
            try:
                connection = context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
            except OSError:  # it is gone
                connection.close()
                return
            stream = _Tls(connection, read_chunk_size=_READ_BYTES)
        stream.set_nodelay(True)
        stream.port, stream.place = self, self.places.enter(str(address[0]), self.monotonic(), stream.close)
        stream.left = self.options.head_bytes
        self._streams.add(stream)
        if isinstance(stream, _Tls):
            self._do(self._shake(stream, address))
        else:
            self._http.handle_stream(stream, address)

    async def _shake(self, stream: _Tls, address: tuple[Any, ...]) -> None:
        try:
            await stream.wait_for_handshake()
            self._check(stream.socket.getpeercert() or {})
        except (StreamClosedError, OSError):
            stream.close()
            return
        self._http.handle_stream(stream, address)

    def refuse(self, error: HTTPInputError, client: str) -> bytes:
        """The whole answer to bytes that are no request. Tornado's own has none of our headers, and no words."""
        status, words = next(
            (found for beginning, found in _REFUSALS.items() if str(error).startswith(beginning)),
            (HTTPStatus.BAD_REQUEST, "the request is not understood"),
        )
        if "HTTP/2" in str(error):  # a browser never asks so by itself
            self._earlier.write(logging.WARNING, "refused: HTTP/2 is what jobs of protocol 4 speak, upgrade the job", {"client": client})
        return whole(sentence(status, words))

    def let_go(self, stream: _Stream, connection: socket.socket) -> None:
        """End a connection. If one is closed with unread bytes it is reset, and its client might never read the answer."""
        self._streams.discard(stream)
        if not self.places.end(stream.place, self.monotonic()):  # it was cut
            connection.close()
            return
        if (refusal := self._refusal(stream)) is not None:
            with suppress(OSError):
                connection.send(whole(refusal))
        if isinstance(connection, ssl.SSLSocket):
            with suppress(OSError, ValueError):  # it does not wait for the client's word: the raw end follows
                connection.unwrap()
            connection = socket.socket(fileno=connection.detach())
        task = self._do(self._linger(connection))
        stream.place.cut = task.cancel

        def end(_: object) -> None:
            self.places.leave(stream.place)
            connection.close()

        task.add_done_callback(end)

    def _refusal(self, stream: _Stream) -> Response | None:
        """What is said to a client for which Tornado has no answer at all."""
        most = f"{self.options.head_bytes} bytes at most"
        match stream.error:
            case UnsatisfiableReadError() if not stream.lines:
                return sentence(HTTPStatus.REQUEST_URI_TOO_LONG, f"the address is too long: {most}")
            case UnsatisfiableReadError():
                return sentence(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"too many headers: {most}")
            case _TlsError():
                return sentence(HTTPStatus.BAD_REQUEST, "no TLS is spoken here")
        return None

    async def _linger(self, connection: socket.socket) -> None:
        with suppress(OSError):  # also when its time is over
            connection.shutdown(socket.SHUT_WR)
            async with asyncio.timeout(_LINGER_SECONDS):
                left = self.options.linger_bytes
                while left > 0 and (more := await self._loop.sock_recv(connection, _READ_BYTES)):
                    left -= len(more)

    def _do(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


@stream_request_body
class Handler(RequestHandler):
    """Looks at a request when its head has come; answers with the headers of every answer, and with a line of text for an error."""

    def initialize(self, port: Port) -> None:
        """Tornado calls it for each request."""
        self.port = port
        self.place: ConnectionPlace = self.request.connection.stream.place  # type: ignore[union-attr]

    def set_default_headers(self) -> None:
        """Set the headers of every response, also of errors."""
        self.clear_header("Content-Type")
        self.set_header("Server", "segtail")  # without versions, because anybody may read it
        for name, value in SECURED.items():
            self.set_header(name, value)

    def prepare(self) -> None:
        """Refuse what is expected and not done: Tornado knows one expectation, and ignores others (RFC 9110, 10.1.1)."""
        if self.request.headers.get("Expect", "100-continue").lower() != "100-continue":
            raise HTTPError(HTTPStatus.EXPECTATION_FAILED)

    def data_received(self, chunk: bytes) -> None:
        """A part of the body, which is not kept."""

    def compute_etag(self) -> None:
        """None: an answer is never the one before."""

    async def send(self, data: bytes | memoryview) -> None:
        """Send a part of an answer; it returns when the client has taken it."""
        view = memoryview(data)
        for begin in range(0, len(view), _WRITE_BYTES):
            self.write(bytes(view[begin : begin + _WRITE_BYTES]))
            await self.flush()
            self.place.since = self.port.monotonic()

    def write_error(self, status_code: int, **_: object) -> None:
        """A line for people."""
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        if status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            self.set_header("Allow", ", ".join(self.SUPPORTED_METHODS))
            self.finish(f"only {' and '.join(self.SUPPORTED_METHODS)}\n")
        else:
            self.finish(f"{self._reason}\n")

    def log_exception(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Once a second."""
        if isinstance(error, Exception) and not isinstance(error, StreamClosedError) and not hasattr(error, "status_code"):
            self.port.notes.write(logging.ERROR, "a request failed", {}, error)


@dataclass(frozen=True, slots=True, kw_only=True)
class PortOptions:
    """``head_bytes``, ``body_bytes``: the most of a request; ``body_seconds``: what its body may take; ``idle_seconds``: what a
    connection may be without a request, None where it ends with the first answer; ``linger_bytes``: what is read and thrown away behind a
    refused request, so that its client gets the answer and no reset.
    """

    head_bytes: int
    body_bytes: int
    body_seconds: float = 10.0
    idle_seconds: float | None = None
    linger_bytes: int


def listen_at(host: str, port: int) -> socket.socket:
    """A socket that listens at a name or an address of IPv4 or IPv6, and does not block; port 0 for any that is free.

    Raises:
        OSError: nothing can listen there.
    """
    family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    listener = socket.socket(family, kind)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


class _Stream(BaseIOStream):
    """With its place, and with words where Tornado has none."""

    port: Port
    place: ConnectionPlace
    socket: Any
    is_plain = False
    left: int
    lines = 0
    """How many lines of heads have come, among the ``left`` bytes that a head may have."""

    def read_from_fd(self, buf: bytearray | memoryview) -> int | None:
        """Look at what comes of a head: why it is none, Tornado does not say. Where a client begins TLS, both would wait for each other."""
        count = super().read_from_fd(buf)
        if count and self.place.stage is Stage.SILENT:
            if self.is_plain and not self.lines and buf[0] == _HANDSHAKE:
                raise _TlsError(errno.ECONNRESET, "a client begins TLS")
            self.lines += bytes(buf[: min(count, self.left)]).count(b"\n")
            self.left -= min(count, self.left)
        return count

    def write(self, data: bytes | memoryview) -> asyncio.Future[None]:
        """Also what Tornado says while it holds an error about the bytes of a client."""
        error = sys.exception()
        return super().write(self.port.refuse(error, self.place.client) if isinstance(error, HTTPInputError) else data)

    def close_fd(self) -> None:
        """Tornado calls it last, however the connection ends."""
        connection, self.socket = self.socket, None
        self.port.let_go(self, connection)


class _TlsError(ConnectionResetError):
    pass


def log_rarely(notes: RareLog) -> None:
    """Let Tornado's loggers write through ours."""
    tornados = logging.getLogger("tornado")
    if not any(isinstance(each, _Rarely) for each in tornados.handlers):
        tornados.addHandler(_Rarely(notes))
        tornados.propagate = False


class _Rarely(logging.Handler):
    """What Tornado itself logs, such as a handshake that failed: strangers cause it."""

    def __init__(self, notes: RareLog) -> None:
        super().__init__()
        self._notes = notes

    def emit(self, record: logging.LogRecord) -> None:
        self._notes.write(logging.DEBUG, "a connection ended", {"why": quoted(record.getMessage()), "where": record.name})


class _Plain(_Stream, IOStream):
    is_plain = True


class _Tls(_Stream, SSLIOStream):
    pass
