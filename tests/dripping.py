"""Servers that begin an answer to a call and do not end it. Each piece they send takes time of the test's clock, so no test waits."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import chain, repeat

from tests.clocks import Clock

Pieces = Callable[[], Iterator[bytes]]

_OK = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"


def _then_bytes(begin: bytes) -> Pieces:
    return lambda: chain([begin], repeat(b"x"))


NEVER_ENDING: Mapping[str, Pieces] = {
    "a head": _then_bytes(_OK + b"X: "),
    "a first line": _then_bytes(b"HTTP/1.1 200 "),
    "a body": _then_bytes(_OK + b"Content-Length: 100008\r\n\r\n\x00\x01\x86\xa0"),
    "a body in chunks": lambda: chain([_OK + b"Transfer-Encoding: chunked\r\n\r\n4\r\n\x00\x01\x86\xa0\r\n"], repeat(b"1\r\nx\r\n")),
    "the length of a chunk": _then_bytes(_OK + b"Transfer-Encoding: chunked\r\n\r\n"),
    "a refusal": _then_bytes(b"HTTP/1.1 409 X\r\nContent-Length: 60000\r\n\r\n"),
    "the end of a stream": _then_bytes(_OK + b"Content-Length: 60000\r\n\r\n\xff\xff\xff\xff"),
    "100 Continue": lambda: repeat(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "100 Continue, fast": lambda: repeat(b"HTTP/1.1 100 Continue\r\n\r\n" * 4_000),
}

MESSAGES: Pieces = lambda: chain([_OK + b"\r\n"], repeat(b"\x00\x00\x00\x01x"))  # noqa: E731 - as those above
"""Whole messages, of which a stream may have many."""


@contextmanager
def dripping(pieces: Pieces, clock: Clock, context: ssl.SSLContext | None = None, seconds: float = 1) -> Iterator[tuple[str, int]]:
    """A server on loopback that answers each request with these pieces, until its client has gone; yields host and port.

    Args:
        seconds: of the clock that each piece takes.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threads: list[threading.Thread] = []

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    threads.append(threading.Thread(target=serve, args=(connection,)))
                    threads[-1].start()

        def serve(plain: socket.socket) -> None:
            with suppress(OSError), plain:
                connection = plain if context is None else context.wrap_socket(plain, server_side=True)
                with connection:
                    connection.recv(1 << 16)
                    for piece in pieces():
                        connection.sendall(piece)
                        clock.now += seconds
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(1 << 16):  # what is unread would reset the connection
                        pass

        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield listener.getsockname()
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            accepting.join()
            for each in threads:
                each.join()
