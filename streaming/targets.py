"""Where agents are, as people write it.

``grpc+tls://broker-1:8815``, ``grpc://127.0.0.1:8815``, or ``dns:///name:8815`` for all addresses behind a name.
"""

import ipaddress
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from streaming.units import Address

FORM = "grpc+tls://HOST:PORT, grpc://HOST:PORT or dns:///NAME:PORT"


class Scheme(StrEnum):
    """How agents are found and spoken to."""

    PLAIN = "grpc"
    TLS = "grpc+tls"
    NAME = "dns"


@dataclass(frozen=True, slots=True)
class Target:
    """One or, behind a name, any number of agents. ``name`` is what a certificate has to say where that is not the address' host."""

    scheme: Scheme
    address: Address
    name: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads a target; one without a scheme is ``grpc://``.

        Raises:
            ValueError: it has another form.
        """
        match = re.fullmatch(r"(?:(?P<scheme>[a-z+]+)://)?(?P<slash>/)?(?P<address>[^/]+)(?:/(?P<name>[^/\s]+))?", text)
        if match is None:
            raise ValueError(FORM)
        try:
            scheme = Scheme(match["scheme"] or Scheme.PLAIN)
            address = Address.parse(match["address"])
        except ValueError as error:
            raise ValueError(FORM) from error
        if (scheme is Scheme.NAME) != bool(match["slash"]) or (match["name"] and scheme is not Scheme.TLS) or not address.port:
            raise ValueError(FORM)
        return cls(scheme, address, match["name"] or "")

    def __str__(self) -> str:
        slash, name = "/" if self.scheme is Scheme.NAME else "", f"/{self.name}" if self.name else ""
        return f"{self.scheme}://{slash}{self.address}{name}"


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine's own, which no other machine can reach."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
