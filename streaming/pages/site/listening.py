"""The server of a page: a sentence where nothing can listen, and the address by which it is reached."""

from collections.abc import Callable

from streaming.common.units import Address
from streaming.common.web.gate import Gate
from streaming.common.web.messages import HttpRequest, Response
from streaming.common.web.server import Server
from streaming.errors import UsageError


def listen(host: str, port: int, answer: Callable[[HttpRequest], Response], gate: Gate, monotonic: Callable[[], float]) -> Server:
    """A server that listens and does not answer yet; arguments as for `Server`.

    Raises:
        UsageError: nothing can listen there.
    """
    try:
        return Server(host, port, answer, gate, monotonic)
    except OSError as error:
        raise UsageError(
            f"cannot listen on {host}:{port}: {error.strerror}; stop the process that uses it, "
            "or choose another address with --listen HOST:PORT"
        ) from error


def root_url(server: Server, gate: Gate) -> str:
    """The URL of what a server has at ``/``, which it ends with."""
    return f"{'https' if gate.encrypted else 'http'}://{Address(*server.address)}/"
