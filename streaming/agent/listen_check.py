"""Whether an agent can listen at an address, found out before anything is made for it: gRPC itself does not say why it cannot."""

import socket

from streaming.errors import UsageError
from streaming.units import Address


def refuse_taken(listen: Address) -> None:
    """Bind the address for a moment, without listening.

    Raises:
        UsageError: it is in use, or none of this host's.
    """
    errors = []
    try:
        for family, kind, protocol, _, place in socket.getaddrinfo(
            listen.host, listen.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        ):
            try:
                with socket.socket(family, kind, protocol) as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as gRPC does
                    probe.bind(place)
            except OSError as error:
                errors.append(error)
            else:
                return  # gRPC takes what it can get of several, too
    except OSError as error:
        errors.append(error)
    if errors:
        raise cannot_listen(listen, errors[0])


def cannot_listen(listen: Address, error: OSError) -> UsageError:
    """The error that names the address and the option."""
    return UsageError(
        f"cannot listen on {listen}: {error.strerror or error}; stop the process that uses it, or choose another address with "
        "--listen HOST:PORT"
    )
