"""Whether an agent can listen at an address, found out before anything is made for it."""

from streaming.errors import UsageError
from streaming.units import Address
from streaming.web.acceptor import listen_at


def refuse_taken(listen: Address) -> None:
    """Listen at the address for a moment.

    Raises:
        UsageError: it is in use, or none of this host's.
    """
    try:
        listen_at(listen.host, listen.port).close()
    except OSError as error:
        raise cannot_listen(listen, error) from error


def cannot_listen(listen: Address, error: OSError) -> UsageError:
    """The error that names the address and the option."""
    return UsageError(
        f"cannot listen on {listen}: {error.strerror or error}; stop the process that uses it, or choose another address with "
        "--listen HOST:PORT"
    )
