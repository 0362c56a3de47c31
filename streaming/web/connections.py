"""A threaded HTTP server that no client can hold up: connections are bounded in number and in time."""

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
"""A page of a million series is some 100 MB in memory; more clients at once than this are no scrapes."""

MAX_THREADS = 2 * MAX_CONNECTIONS
"""A thread whose connection was cut goes on until it notices; with so many the next client is turned away."""

CONNECTION_SECONDS = 30.0
"""A connection is cut after so long, however slowly its client asks or reads. Prometheus itself gives a scrape up after 10 s."""


class BoundedServer(ThreadingHTTPServer):
    """One thread a connection. For one more than ``MAX_CONNECTIONS`` the oldest is cut: only a slow client is that old.

    Args:
        host: name or address, of IPv4 or IPv6.
        gate: puts TLS around each connection where it is asked for.
        port: 0 for any that is free.
        monotonic: seconds that only go forward.

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
        self._lock = Lock()  # protects the connections, and that none is cut while it is being closed
        self._began: dict[socket.socket, float] = {}  # of those that may still be cut; oldest first
        self._served: set[socket.socket] = set()  # those that have a thread
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        self.address_family = family
        super().__init__((str(address[0]), port), handler)

    def server_bind(self) -> None:
        """Bind, without the base class's question to the name service, which may take seconds."""
        TCPServer.server_bind(self)
        host, port = self.server_address[:2]
        self.server_name, self.server_port = str(host), int(port)

    def get_request(self) -> tuple[Any, Any]:
        """The next connection."""
        connection, client_address = super().get_request()
        return self._gate.wrap(connection), client_address

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Is there a thread to be had?"""
        with self._lock:
            return len(self._served) < MAX_THREADS

    def process_request(self, request: Any, client_address: Any) -> None:
        """Note when the connection began, and hand it to its thread."""
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
        """Cut what has lasted too long; called again and again while the server serves."""
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
        """A client that went away is no error of ours."""
        quiet = isinstance(sys.exception(), OSError)
        log.log(logging.DEBUG if quiet else logging.ERROR, "connection from %s failed", client_address[0], exc_info=True)

    def _cut(self, request: socket.socket) -> None:
        """Wake the thread that reads from or writes to a connection: it finds it ended and closes it. The lock must be held."""
        del self._began[request]
        try:
            socket.socket.shutdown(request, socket.SHUT_RDWR)  # below TLS: its own shutdown would let a late answer pass in the clear
        except OSError as error:
            log.debug("connection had already ended: %s", error)
