"""Connections to one agent, by the standard library's client: one for each call that runs, kept for the next."""

import http.client
import ssl
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from http import HTTPStatus
from typing import cast

from streaming.broker.protocol.agent_calls import MOST_REFUSAL, PATH, messages_of, refusal_of

_KEPT = 8


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
                raise refusal_of(answer.read(MOST_REFUSAL), answer.status)

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
