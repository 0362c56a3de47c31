"""Sockets of which a call gets no more time and no more bytes than it has, whatever a server sends.

A socket's own timeout begins again with each piece: a byte a second in a head or a body, or 100 Continue without end, would keep a call for
as long as the server likes. So here each single step (connect, handshake, send, receive) gets what is left of the whole, and each byte that
arrives counts, those of heads and of what is skipped too. Only the look-up of a name is not bounded: nothing ends `getaddrinfo`.
"""

import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from streaming.broker.protocol.agent_calls import Reason
from streaming.errors import AgentError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer


@dataclass(slots=True)
class Bounds:
    """What is left to a call: until when, a time of ``clock``, and how many bytes it may still receive, of ``most``."""

    ends_at: float
    most: int
    clock: Callable[[], float] = time.monotonic
    received: int = 0

    def seconds(self) -> float:
        """The seconds that are left. Raises TimeoutError: none is."""
        left = self.ends_at - self.clock()
        if left <= 0:
            raise TimeoutError("it does not answer in time")
        return left

    def count(self, received: int) -> None:
        """So many bytes have arrived. Raises AgentError: they are more than the call may receive."""
        self.received += received
        if self.received > self.most:
            raise AgentError(f"its answer is larger than {self.most >> 20} MiB", Reason.PROTOCOL)


class BoundedSocket(socket.socket):
    """``bounds``: of the call that uses it now."""

    bounds: Bounds

    def recv_into(self, buffer: "WriteableBuffer", nbytes: int | None = None, flags: int = 0) -> int:
        """As of any socket."""
        self.settimeout(self.bounds.seconds())
        received = super().recv_into(buffer, nbytes or 0, flags)
        self.bounds.count(received)
        return received

    def send(self, data: "ReadableBuffer", flags: int = 0) -> int:
        """As of any socket: with TLS a request is sent in pieces."""
        self.settimeout(self.bounds.seconds())
        return super().send(data, flags)

    def sendall(self, data: "ReadableBuffer", flags: int = 0) -> None:
        """As of any socket."""
        self.settimeout(self.bounds.seconds())
        super().sendall(data, flags)


def connect(host: str, port: int, bounds: Bounds) -> BoundedSocket:
    """A connection; each address of the host gets an equal part of the time that is left.

    Raises:
        OSError: there is none.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    for left, (family, kind, protocol, _, address) in zip(range(len(found), 0, -1), found, strict=True):
        made = BoundedSocket(family, kind, protocol)
        made.bounds = bounds
        try:
            made.settimeout(bounds.seconds() / left)
            made.connect(address)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            made.close()
            if left == 1:
                raise
        else:
            return made
    raise socket.gaierror("the name has no address")


def with_tls(plain: BoundedSocket, context: ssl.SSLContext, name: str) -> BoundedSocket:
    """The connection with TLS, to the server with this name in its certificate. Raises OSError: there is no handshake."""
    bounds, context.sslsocket_class = plain.bounds, _TlsSocket
    plain.settimeout(bounds.seconds())
    made = cast(BoundedSocket, context.wrap_socket(plain, server_hostname=name))
    made.bounds = bounds
    return made


class _TlsSocket(BoundedSocket, ssl.SSLSocket):
    pass
