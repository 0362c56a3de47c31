"""HTTP/2 by hand, for what no client of gRPC would send."""

import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Event, Thread
from types import TracebackType

from streaming.common.units import Address

WINDOW_UPDATE = 8
_HEADERS, _SETTINGS, _CONTINUATION = 1, 4, 9
_END_STREAM_AND_HEADERS = 5


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def frame_of(kind: int, payload: bytes = b"") -> bytes:
    """A frame of no call."""
    return _frame(kind, 0, 0, payload)


_BEGIN = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame_of(_SETTINGS)


class Flood:
    """Sends a frame again and again without a pause, over one connection at a time, and reads nothing."""

    def __init__(self, address: str, frame: bytes) -> None:
        self._where = Address.parse(address)
        self._frames = frame * ((1 << 20) // len(frame))
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
            with suppress(OSError), socket.create_connection((self._where.host, self._where.port), 10) as connection:
                connection.sendall(_BEGIN)
                while not self._ends.is_set():
                    self.sent += connection.send(self._frames)


def _literal(name: bytes, value: bytes) -> bytes:
    assert max(len(name), len(value)) < 127  # of which the length is a byte
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def _of_call(path: str) -> bytes:
    names = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", path.encode()), (b":authority", b"x"), (b"te", b"trailers")]
    return b"".join(_literal(*each) for each in [*names, (b"content-type", b"application/grpc")])


@contextmanager
def bare_call(address: str, path: str, headers: Sequence[tuple[bytes, bytes]] = ()) -> Iterator[bytes]:
    """Make a connection and a call without a message; yields what has come back, as it is, and holds the connection."""
    where = Address.parse(address)
    block = _of_call(path) + b"".join(_literal(*each) for each in headers)
    with socket.create_connection((where.host, where.port), 10) as connection:
        connection.sendall(_BEGIN + _frame(_HEADERS, _END_STREAM_AND_HEADERS, 1, block))
        received = b""
        while b"grpc-status" not in received and (more := connection.recv(65536)):
            received += more
        yield received


def many_fields(address: str, calls: int) -> None:
    """Begin calls whose headers are a field of one byte, again and again, as far as they are taken."""
    where = Address.parse(address)
    asked, last = _of_call("/segtail.Agent/status"), _END_STREAM_AND_HEADERS
    known = asked + b"\x40\x01x\x7f\x81\x1d" + b"v" * 3_840
    with socket.create_connection((where.host, where.port), 10) as connection, suppress(OSError):
        connection.sendall(_BEGIN + _frame(_HEADERS, last, 1, known))
        for number in range(calls):
            connection.sendall(_frame(_HEADERS, last, 3 + 2 * number, asked + b"\xbe" * 15_000))
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass


def endless_headers(address: str, part: bytes, most: int) -> tuple[int, bytes]:
    """Begin a call whose headers do not end; returns how many bytes were taken, of ``most``, and what came back."""
    where = Address.parse(address)
    sent, received = 0, b""
    with socket.create_connection((where.host, where.port), 10) as connection:
        connection.sendall(_BEGIN + _frame(_HEADERS, 0, 1, part))
        more = _frame(_CONTINUATION, 0, 1, part)
        try:
            while sent < most:
                connection.sendall(more)
                sent += len(more)
        except OSError:
            pass
        connection.settimeout(10)
        with suppress(OSError):
            while chunk := connection.recv(65536):
                received += chunk
    return sent, received
