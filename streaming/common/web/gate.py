"""Access over HTTP: TLS for each connection, a password for each request by the current web config file, and the names of the server.

The file's format is that of a Go package; `prometheus_client` has TLS with a certificate that it reads once, and no passwords.
"""

import base64
import binascii
import hashlib
import hmac
import os
import ssl
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from threading import Lock

import bcrypt

from streaming.common.reloading import Reloading
from streaming.common.web.places import RIGHT_PASSWORDS, WRONG_PASSWORDS
from streaming.common.web.web_config import WebConfig, read_web_config, what_is_weaker

OPEN_PATHS = frozenset({"/-/healthy", "/-/ready"})
"""Paths for health checks, which have no password. Their answers contain nothing of Kafka."""

_BCRYPT_BYTES = 72
"""The number of bytes of a password that bcrypt uses."""

_NOBODY = bcrypt.hashpw(b"", bcrypt.gensalt(10))
"""The hash for unknown users, so that the time of a refusal does not show which names exist."""


class Gate:
    """Checks connections and requests. For several threads. Without a file, every client is admitted, without TLS.

    Raises:
        UsageError: the file cannot be used.
    """

    def __init__(self, path: Path | None) -> None:
        self._config = None if path is None else Reloading(lambda: read_web_config(path), what_is_weaker, f"--web-config {path}")
        self._passwords = Passwords()
        self.encrypted = self._now().tls is not None
        """Whether it began with TLS, for the address that is shown to users."""

    @property
    def failures(self) -> int:
        """The number of changes of the files that could not be used."""
        return 0 if self._config is None else self._config.failures

    @property
    def is_open(self) -> bool:
        """Whether anybody gets an answer, without TLS and without a password."""
        now = self._now()
        return now.tls is None and not now.users

    def _now(self) -> WebConfig:
        return WebConfig() if self._config is None else self._config.get()

    def context(self) -> ssl.SSLContext | None:
        """For the TLS of a new connection; None if it has none."""
        return self._now().tls

    def check_names(self, certificate: Mapping[str, object]) -> None:
        """Check the names in a client's certificate.

        Raises:
            ssl.SSLError: it bears none that is allowed.
        """
        sans = self._now().allowed_sans
        if sans and not sans & _names(certificate):
            raise ssl.SSLError("the client's certificate bears none of client_allowed_sans")

    def remembers(self, path: str, authorization: str) -> bool | None:
        """Whether a request with this ``Authorization`` header (RFC 7617) may be answered. None: only `admits` knows."""
        users = self._now().users
        return True if not users or path in OPEN_PATHS else self._passwords.remembered(users, authorization)

    def admits(self, authorization: str) -> bool:
        """Whether it may. Takes a tenth of a second of CPU."""
        users = self._now().users
        return not users or self._passwords.check(users, authorization)


def _names(certificate: Mapping[str, object]) -> set[str]:
    found: tuple[tuple[str, str], ...] = certificate.get("subjectAltName", ())  # type: ignore[assignment]
    return {value for _, value in found}


class Passwords:
    """Checks names and passwords (RFC 7617) against bcrypt hashes, and remembers the outcome: bcrypt takes long on purpose.

    What is remembered are keyed hashes, as `exporter-toolkit` does; the wrong ones apart, so that tries displace no right one.
    For several threads.
    """

    def __init__(self) -> None:
        self._key = os.urandom(32)
        self._lock = Lock()  # protects both memories
        self._right: dict[bytes, None] = {}
        self._wrong: dict[bytes, None] = {}

    def remembered(self, users: Mapping[str, bytes], authorization: str) -> bool | None:
        """Whether an ``Authorization`` header names one of the users with the password; None if that has to be checked."""
        name, password = _basic(authorization)
        if not name:
            return False
        memory = self._memory(users, name, password)
        with self._lock:
            if memory in self._right:
                return True
            return False if memory in self._wrong else None

    def check(self, users: Mapping[str, bytes], authorization: str) -> bool:
        """Whether it does, by bcrypt: let one thread do so, so that whoever tries passwords does not get every core."""
        name, password = _basic(authorization)
        hashed = users.get(name)
        good = bcrypt.checkpw(password[:_BCRYPT_BYTES], hashed or _NOBODY) and hashed is not None
        memories, most = (self._right, RIGHT_PASSWORDS) if good else (self._wrong, WRONG_PASSWORDS)
        with self._lock:
            while len(memories) >= most:
                del memories[next(iter(memories))]
            memories[self._memory(users, name, password)] = None
        return good

    def _memory(self, users: Mapping[str, bytes], name: str, password: bytes) -> bytes:
        return hmac.new(self._key, repr((name, password, users.get(name))).encode(), hashlib.sha256).digest()


def _basic(authorization: str) -> tuple[str, bytes]:
    kind, _, encoded = authorization.partition(" ")
    try:
        name, colon, password = base64.b64decode(encoded.strip(), validate=True).partition(b":")
        if kind.lower() == "basic" and colon:
            return name.decode(), password
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return "", b""
    return "", b""


# --- whom a request takes the server for: a server on a loopback address answers only to names of its own host. A page on the web may let
# its own name resolve to 127.0.0.1, and then read what is served there as if it came from itself (DNS rebinding). The browser names the
# page's host in the request, so a foreign name gives it away. A server on another address may have any name (of a pod, a service, a proxy,
# an alias), and scrapes come by each of them. There TLS or passwords keep such pages out: no certificate is for the foreign name, and a
# browser sends no password to it.


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
