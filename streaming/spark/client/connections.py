"""Connections to one agent, by the standard library's client: one for each call that runs, kept for the next."""

import http.client
import logging
import socket
import ssl
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from http import HTTPStatus
from typing import cast

from streaming.broker.protocol.agent_calls import PATH, messages_of, refusal_of
from streaming.common.targets import Scheme, Target
from streaming.common.units import Address

_KEPT = 8
_MOST_REFUSAL = 64 << 10


class Connections:
    """For several threads.

    Args:
        context: for TLS, None without it.
        name: that in the agent's certificate, if it is not the host's.
    """

    def __init__(self, host: str, port: int, context: ssl.SSLContext | None = None, name: str = "") -> None:
        self._make: Callable[[], http.client.HTTPConnection] = (
            (lambda: http.client.HTTPConnection(host, port)) if context is None else lambda: _Tls(host, port, context, name or host)
        )
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []
        self._closed = False
        weakref.finalize(self, _close, self._idle)

    def close(self) -> None:
        """Close all without a call; the others are closed when theirs has ended."""
        with self._lock:
            self._closed = True
            _close(self._idle)

    def call(self, name: str, request: bytes, seconds: float, headers: tuple[tuple[str, str], ...]) -> Iterator[bytes]:
        """The messages of the answer.

        An agent ends its connections now and then, and a call may be on its way: one without any answer is made once more, over another.

        Raises:
            OSError, http.client.HTTPException: there is none.
            Refusal: the agent refuses.
        """
        ends_at = time.monotonic() + seconds
        connection, answer = self._begun(name, request, dict(headers), ends_at)
        try:
            if answer.status != HTTPStatus.OK:
                raise refusal_of(answer.read(_MOST_REFUSAL), answer.status)

            def read(most: int) -> bytes:
                _limit(connection, ends_at)
                return answer.read(most)

            yield from messages_of(read)
            if not answer.read(1) and not answer.will_close:
                connection = self._keep(connection)
        finally:
            if connection is not None:
                connection.close()

    def _begun(
        self, name: str, request: bytes, headers: dict[str, str], ends_at: float
    ) -> tuple[http.client.HTTPConnection | None, http.client.HTTPResponse]:
        with self._lock:
            kept = self._idle.pop() if self._idle else None
        if kept is not None:
            with suppress(ConnectionResetError, BrokenPipeError, http.client.RemoteDisconnected):
                return kept, _asked(kept, name, request, headers, ends_at)
        made = self._make()
        return made, _asked(made, name, request, headers, ends_at)

    def _keep(self, connection: http.client.HTTPConnection | None) -> http.client.HTTPConnection | None:
        with self._lock:
            if self._closed or len(self._idle) >= _KEPT:
                return connection
            self._idle.append(cast(http.client.HTTPConnection, connection))
            return None


def _asked(
    connection: http.client.HTTPConnection, name: str, request: bytes, headers: dict[str, str], ends_at: float
) -> http.client.HTTPResponse:
    try:
        _limit(connection, ends_at)
        if connection.sock is None:
            connection.connect()
            _limit(connection, ends_at)
        with suppress(
            ConnectionResetError, BrokenPipeError, ssl.SSLEOFError
        ):  # an agent refuses before all is sent: its reason can be read
            connection.request("POST", PATH + name, request, headers)
        _limit(connection, ends_at)
        return connection.getresponse()
    except BaseException:
        connection.close()
        raise


def _close(idle: list[http.client.HTTPConnection]) -> None:
    while idle:
        idle.pop().close()


def _limit(connection: http.client.HTTPConnection | None, ends_at: float) -> None:
    """Let the next step take no longer than there is time."""
    assert connection is not None
    left = ends_at - time.monotonic()
    if left <= 0:
        raise TimeoutError("it does not answer in time")
    connection.timeout = left
    if connection.sock is not None:
        connection.sock.settimeout(left)


class _Tls(http.client.HTTPConnection):
    def __init__(self, host: str, port: int, context: ssl.SSLContext, name: str) -> None:
        super().__init__(host, port)
        self._tls, self._name = context, name

    def connect(self) -> None:
        super().connect()
        try:
            self.sock = self._tls.wrap_socket(self.sock, server_hostname=self._name)
        except (TimeoutError, ssl.SSLEOFError) as error:  # a server without TLS waits for the rest of a request, or ends
            raise ssl.SSLError("no handshake") from error


# --- looks up the addresses of agents. Names are resolved in the background again and again, because pods come and go.


log = logging.getLogger(__name__)

AGAIN_SECONDS = 5.0
"""How often a name is looked up."""

_FIRST_SECONDS = 3.0


def resolve(host: str) -> list[str]:
    """All addresses of a host name, as the system resolves them. Raises OSError."""
    return sorted({str(found[4][0]) for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)})


class Name:
    """One host name. For several threads. Only the first call of `hosts` waits for an answer, others take the last one.

    The last addresses are kept while the name service is away or finds nothing. If an agent is really gone, it does not answer anyway.
    """

    def __init__(self, host: str, look_up: Callable[[str], list[str]] = resolve, clock: Callable[[], float] = time.monotonic) -> None:
        self._host = host
        self._look_up = look_up
        self._clock = clock
        self._lock = threading.Lock()
        self._answered = threading.Event()
        self._waited = self._running = False
        self._next = clock()
        self._addresses: tuple[str, ...] = ()
        self.problem = ""
        """The reason why the last lookup found nothing, "" if it found something."""

    def hosts(self) -> tuple[str, ...]:
        """The addresses, as far as they are known."""
        with self._lock:
            first, self._waited = not self._waited, True
            if not self._running and self._clock() >= self._next:
                self._running = True
                threading.Thread(target=self._look, daemon=True, name=f"look up {self._host}").start()
        if first:
            self._answered.wait(_FIRST_SECONDS)
        return self._addresses

    def _look(self) -> None:
        try:
            found = tuple(self._look_up(self._host))
            problem = "" if found else "it has no address"
        except OSError as error:
            found, problem = (), str(error.strerror or error)
        with self._lock:
            if problem and problem != self.problem:
                log.warning("a name of agents has no address", extra={"host": self._host, "error": problem, "kept": len(self._addresses)})
            elif found and found != self._addresses:
                log.info("a name of agents has other addresses", extra={"host": self._host, "addresses": ",".join(found)})
            self._addresses, self.problem = found or self._addresses, problem
            self._next = self._clock() + AGAIN_SECONDS
            self._running = False
        self._answered.set()


@cache
def _name(host: str) -> Name:
    return Name(host)


def addresses(targets: Iterable[Target], *, tls: bool) -> tuple[str, ...]:
    """The current addresses of agents, each once, in the form of `streaming.spark.client.agent_client`. ``tls``: for those of names."""
    return tuple(dict.fromkeys(address for target in targets for address in _of_target(target, tls=tls)))


def _of_target(target: Target, *, tls: bool) -> list[str]:
    if target.scheme is Scheme.PLAIN:
        return [str(target.address)]
    if target.scheme is Scheme.TLS:
        return [str(target)]
    found = [Address(host, target.address.port) for host in _name(target.address.host).hosts()]
    return [str(Target(Scheme.TLS, address, target.address.host)) if tls else str(address) for address in found]


def unresolved(targets: Iterable[Target]) -> list[str]:
    """The targets whose name had no address at the last lookup."""
    return [str(target) for target in targets if target.scheme is Scheme.NAME and _name(target.address.host).problem]
