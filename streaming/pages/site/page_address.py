"""Where people reach the page, if nobody has said so: the address that the exporter listens on, or its host's name."""

import re
import socket

from streaming.common.units import Address

_EVERY_ADDRESS = ("", "0.0.0.0", "::")  # not to listen on: what stands for all addresses of the host
_REACHABLE = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+")


def page_address(host: str, port: int, *, encrypted: bool) -> str:
    """The address of a page that is served there; "" if it is none that others could use, as one of a single link is.

    The name of the host is as the system has it: to ask a resolver for a longer one could take a minute.
    """
    name = socket.gethostname() if host in _EVERY_ADDRESS else host
    return f"{'https' if encrypted else 'http'}://{Address(name, port)}" if _REACHABLE.fullmatch(name) else ""
