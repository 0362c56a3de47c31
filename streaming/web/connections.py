"""A threaded HTTP server that no client can block: connections are limited in number and in time.

`prometheus_client.start_http_server` limits neither, and reads its certificate once.
"""

import logging
import socket
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from threading import Lock
from typing import Any

from streaming.web.gate import Gate

log = logging.getLogger(__name__)

MAX_CONNECTIONS = 32
"""The most connections at a time. A page of a million series takes some 100 MB of memory, and more clients at once are no scrapes."""

MAX_THREADS = 2 * MAX_CONNECTIONS
"""The most threads. If a connection was cut, its thread continues until it notices; with this many threads, the next client is refused."""

CONNECTION_SECONDS = 30.0
"""A connection is cut after this time, however slowly its client sends or reads. Prometheus itself ends a scrape after 10 s."""


class BoundedServer(ThreadingHTTPServer):
    """One thread for each connection. If there are more than ``MAX_CONNECTIONS``, the oldest is cut: only a slow client is that old.

    Args:
        host: name or address, of IPv4 or IPv6.
        gate: puts TLS around each connection if it is configured.
        port: 0 for any that is free.
        monotonic: seconds of a monotonic clock.

    Raises:
        OSError: nothing can listen there.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(
        self,
        host: str,
        port: int,
        handler: Callable[[Any, Any, Any], BaseHTTPRequestHandler],
        gate: Gate,
        monotonic: Callable[[], float],
    ) -> None:
        self._gate = gate
        self._monotonic = monotonic
        self._lock = Lock()  # protects the connections, and prevents that one is cut while it is being closed
        self._began: dict[socket.socket, float] = {}  # when each began, for those that may still be cut; oldest first
        self._served: set[socket.socket] = set()  # those that have a thread
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        self.address_family = family
        super().__init__((str(address[0]), port), handler)

    def server_bind(self) -> None:
        """Bind without the base class's request to the name service, which may take seconds."""
        TCPServer.server_bind(self)
        host, port = self.server_address[:2]
        self.server_name, self.server_port = str(host), int(port)

    def get_request(self) -> tuple[Any, Any]:
        """Accept the next connection."""
        connection, client_address = super().get_request()
        return self._gate.wrap(connection), client_address

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Whether a thread is available."""
        with self._lock:
            return len(self._served) < MAX_THREADS

    def process_request(self, request: Any, client_address: Any) -> None:
        """Note when the connection began, and pass it to its thread."""
        with self._lock:
            self._served.add(request)
            self._began[request] = self._monotonic()
            if len(self._began) > MAX_CONNECTIONS:
                self._cut(next(iter(self._began)))
        super().process_request(request, client_address)

    def close_request(self, request: Any) -> None:
        """Forget the connection and close it."""
        with self._lock:
            self._served.discard(request)
            self._began.pop(request, None)
            super().close_request(request)

    def service_actions(self) -> None:
        """Cut connections that have lasted too long. The server calls this repeatedly."""
        latest = self._monotonic() - CONNECTION_SECONDS
        with self._lock:
            for request in [request for request, began in self._began.items() if began <= latest]:
                self._cut(request)

    def server_close(self) -> None:
        """Close the socket and cut every connection."""
        super().server_close()
        with self._lock:
            for request in list(self._began):
                self._cut(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that went away: this is no error of the server."""
        quiet = isinstance(sys.exception(), OSError)
        log.log(logging.DEBUG if quiet else logging.ERROR, "connection from %s failed", client_address[0], exc_info=True)

    def _cut(self, request: socket.socket) -> None:
        """Wake the thread that reads from or writes to a connection. It then closes the connection. The lock must be held."""
        del self._began[request]
        try:
            socket.socket.shutdown(request, socket.SHUT_RDWR)  # below TLS: its own shutdown would let a late answer pass unencrypted
        except OSError as error:
            log.debug("connection had already ended: %s", error)
