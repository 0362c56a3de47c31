"""Whom a request takes the server for: a server on a loopback address answers only to names of its own host.

A page on the web may let its own name resolve to 127.0.0.1, and then read what is served there as if it came from itself (DNS rebinding).
The browser names the page's host in the request, so a foreign name gives it away. A server on another address may have any name (of a
pod, a service, a proxy, an alias), and scrapes come by each of them. There TLS or passwords keep such pages out: no certificate is for the
foreign name, and a browser sends no password to it.
"""

from ipaddress import ip_address

_OWN_NAMES = ("localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback")


def is_foreign(host: str, listening: str) -> bool:
    """Whether a request's ``Host`` header names another host, although the server listens on a loopback address.

    Args:
        host: the header, "" if there is none: only programs send none.
        listening: the address that the server listens on.
    """
    if not host or not _is_loopback(listening):
        return False
    name = _name(host)
    return not (name in _OWN_NAMES or name.endswith(".localhost") or name == listening.lower() or _is_loopback(name))


def _name(host: str) -> str:
    """The name without port, brackets, and the dot of the root."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.rpartition(":")[0].lower().removesuffix(".") if ":" in host else host.lower().removesuffix(".")


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return address.lower() in _OWN_NAMES
