"""HTTP/2 by hand, for what no client of gRPC would send."""

import socket
import struct
from collections.abc import Sequence
from contextlib import suppress

from streaming.units import Address

_HEADERS, _SETTINGS, _CONTINUATION = 1, 4, 9
_END_STREAM_AND_HEADERS = 5


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def _literal(name: bytes, value: bytes) -> bytes:
    assert max(len(name), len(value)) < 127  # of which the length is a byte
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def bare_call(address: str, path: str, headers: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Make a connection and a call without a message; returns what comes back, as it is."""
    where = Address.parse(address)
    names = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", path.encode()), (b":authority", b"x"), (b"te", b"trailers")]
    block = b"".join(_literal(*each) for each in [*names, (b"content-type", b"application/grpc"), *headers])
    with socket.create_connection((where.host, where.port), 10) as connection:
        connection.sendall(
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(_SETTINGS, 0, 0) + _frame(_HEADERS, _END_STREAM_AND_HEADERS, 1, block)
        )
        received = b""
        while b"grpc-status" not in received:
            more = connection.recv(65536)
            if not more:
                break
            received += more
    return received


def endless_headers(address: str, part: bytes, most: int) -> tuple[int, bytes]:
    """Begin a call whose headers do not end; returns how many bytes were taken, of ``most``, and what came back."""
    where = Address.parse(address)
    sent, received = 0, b""
    with socket.create_connection((where.host, where.port), 10) as connection:
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(_SETTINGS, 0, 0) + _frame(_HEADERS, 0, 1, part))
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
