"""Sockets that listen, for an event loop."""

import socket

_BACKLOG = 128


def listen_at(host: str, port: int) -> socket.socket:
    """A socket that listens at a name or an address of IPv4 or IPv6, and does not block; port 0 for any that is free.

    Raises:
        OSError: nothing can listen there.
    """
    family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    listener = socket.socket(family, kind)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener
