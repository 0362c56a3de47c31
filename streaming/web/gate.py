"""Access over HTTP: TLS for each connection and a password for each request, by the current web config file.

The file's format is that of a Go package; `prometheus_client` has TLS with a certificate that it reads once, and no passwords.
"""

import base64
import binascii
import hashlib
import hmac
import os
import socket
import ssl
import threading
from pathlib import Path

import bcrypt

from streaming.reloading import Reloading
from streaming.web.web_config import WebConfig, read_web_config

OPEN_PATHS = frozenset({"/-/healthy", "/-/ready"})
"""Paths for health checks, which have no password. Their answers contain nothing of Kafka."""

_REMEMBERED = 100
"""The most correct passwords that are kept (as keyed hashes): bcrypt takes a tenth of a second of CPU on purpose, and scrapes are many."""

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
        self._config = None if path is None else Reloading(lambda: read_web_config(path))
        self._lock = threading.Lock()
        self._key = os.urandom(32)
        self._known: dict[bytes, None] = {}
        self.encrypted = self._now().tls is not None
        """Whether it began with TLS, for the address that is shown to users."""

    def _now(self) -> WebConfig:
        return WebConfig() if self._config is None else self._config.get()

    def wrap(self, connection: socket.socket) -> socket.socket:
        """The connection, with TLS if it is configured. `shake` does the handshake, which may take as long as the client likes."""
        context = self._now().tls
        return connection if context is None else context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)

    def shake(self, connection: socket.socket) -> None:
        """Do the TLS handshake.

        Raises:
            OSError: the client does not use TLS, or has no accepted certificate.
        """
        if isinstance(connection, ssl.SSLSocket):
            connection.do_handshake()
            sans = self._now().allowed_sans
            if sans and not sans & _names(connection):
                raise ssl.SSLError("the client's certificate bears none of client_allowed_sans")

    def admits(self, path: str, authorization: str) -> bool:
        """Whether a request with this ``Authorization`` header (RFC 7617) may be answered."""
        users = self._now().users
        if not users or path in OPEN_PATHS:
            return True
        name, password = _basic(authorization)
        hashed = users.get(name)
        memory = hmac.new(self._key, b"\0".join([name.encode(), password, hashed or b""]), hashlib.sha256).digest()
        if hashed is not None and memory in self._known:
            return True
        with self._lock:  # one at a time: a client that tries passwords does not get every core
            good = bcrypt.checkpw(password[:_BCRYPT_BYTES], hashed or _NOBODY) and hashed is not None
            if good:
                while len(self._known) >= _REMEMBERED:
                    del self._known[next(iter(self._known))]
                self._known[memory] = None
        return good


def _basic(authorization: str) -> tuple[str, bytes]:
    kind, _, encoded = authorization.partition(" ")
    try:
        name, colon, password = base64.b64decode(encoded.strip(), validate=True).partition(b":")
        if kind.lower() == "basic" and colon:
            return name.decode(), password
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return "", b""
    return "", b""


def _names(connection: ssl.SSLSocket) -> set[str]:
    certificate = connection.getpeercert() or {}
    found: tuple[tuple[str, str], ...] = certificate.get("subjectAltName", ())  # type: ignore[assignment]
    return {value for _, value in found}
