"""The addresses of agents in their text form.

``https://broker-1:8815``, ``http://127.0.0.1:8815``, or ``dns:///name:8815`` for all addresses behind a name.
"""

import ipaddress
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from streaming.common.units import Address

FORM = "HOST:PORT, https://HOST:PORT, http://HOST:PORT or dns:///NAME:PORT"


class Scheme(StrEnum):
    """How agents are found, and which protocol is used."""

    PLAIN = "http"
    TLS = "https"
    NAME = "dns"


@dataclass(frozen=True, slots=True)
class Target:
    """One agent or, behind a name, any number of them. ``name`` is the name in the certificate, if it differs from the address' host."""

    scheme: Scheme
    address: Address
    name: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a target; without a scheme it is ``http://``.

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
    """Whether a host name or address belongs to this machine only, so that no other machine can reach it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
