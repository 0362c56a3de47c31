"""HTTP by hand, for what no job would send to an agent's port."""

import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Event, Thread
from types import TracebackType

from streaming.common.units import Address

CALL = b"POST /calls/status HTTP/1.1\r\nHost: x\r\n"


def connect(address: str) -> socket.socket:
    where = Address.parse(address)
    return socket.create_connection((where.host, where.port), 10)


class Flood:
    """Sends bytes again and again without a pause, over one connection at a time, and reads nothing."""

    def __init__(self, address: str, data: bytes) -> None:
        self._address = address
        self._data = data * ((1 << 20) // len(data))
        self._ends = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self.sent = 0

    def __enter__(self) -> "Flood":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ends.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ends.is_set():
            with suppress(OSError), connect(self._address) as connection:
                while not self._ends.is_set():
                    self.sent += connection.send(self._data)


@contextmanager
def bare_call(address: str, headers: Sequence[tuple[bytes, bytes]] = ()) -> Iterator[bytes]:
    """Make a connection and a call without a message; yields what has come back, and holds the connection."""
    with connect(address) as connection:
        connection.sendall(CALL + b"".join(b"%s: %s\r\n" % each for each in headers) + b"Content-Length: 0\r\n\r\n")
        yield connection.recv(65536)


def endless_headers(address: str, part: bytes, most: int) -> int:
    """Begin a call whose headers do not end; returns how many bytes were taken, of ``most``."""
    sent = 0
    with connect(address) as connection:
        with suppress(OSError):
            connection.sendall(CALL)
            while sent < most:
                sent += connection.send(part)
        connection.settimeout(10)
        with suppress(OSError):
            while connection.recv(65536):
                pass
    return sent
