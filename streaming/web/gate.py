"""Who may ask over HTTP: TLS for each connection and a password for each request, as the web config file has it at that moment."""

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

from streaming.fresh import Fresh
from streaming.web.config import WebConfig, read_web_config

OPEN_PATHS = frozenset({"/-/healthy", "/-/ready"})
"""Asked by those who keep the process alive, who have no password; they tell nothing of Kafka."""

_REMEMBERED = 100
"""So many good passwords are remembered (as keyed hashes): bcrypt takes a tenth of a second of CPU on purpose, and scrapes come often."""

_BCRYPT_BYTES = 72
"""As much of a password as bcrypt looks at."""

_NOBODY = bcrypt.hashpw(b"", bcrypt.gensalt(10))
"""Held against the password of an unknown user, so that names cannot be told from how long a refusal takes."""


class Gate:
    """For several threads. Without a file everybody may ask, without TLS.

    Raises:
        UsageError: the file cannot be used.
    """

    def __init__(self, path: Path | None) -> None:
        self._config = None if path is None else Fresh(lambda: read_web_config(path))
        self._lock = threading.Lock()
        self._key = os.urandom(32)
        self._known: dict[bytes, None] = {}
        self.encrypted = self._now().tls is not None
        """Whether it began with TLS, for the address that is told to people."""

    def _now(self) -> WebConfig:
        return WebConfig() if self._config is None else self._config.get()

    def wrap(self, connection: socket.socket) -> socket.socket:
        """The connection with TLS where the file asks for it; the handshake is `shake`'s, which may take as long as its client likes."""
        context = self._now().tls
        return connection if context is None else context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)

    def shake(self, connection: socket.socket) -> None:
        """Do what TLS begins with.

        Raises:
            OSError: the client does not speak TLS, or shows no certificate that is accepted.
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
        with self._lock:  # one at a time: who tries passwords does not get every core
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
