"""HTTP/2 by hand, for what no client of gRPC would send."""

import socket
import struct
from collections.abc import Sequence

from streaming.units import Address

_HEADERS, _SETTINGS = 1, 4
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
