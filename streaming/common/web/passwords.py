"""Checks names and passwords (RFC 7617) against bcrypt hashes, and remembers the outcome: bcrypt takes long on purpose.

What is remembered are keyed hashes, as `exporter-toolkit` does; the wrong ones apart, so that tries displace no right one.
"""

import base64
import binascii
import hashlib
import hmac
import os
from collections.abc import Mapping
from threading import Lock

import bcrypt

from streaming.common.web.client_limits import RIGHT_PASSWORDS, WRONG_PASSWORDS

_BCRYPT_BYTES = 72
"""The number of bytes of a password that bcrypt uses."""

_NOBODY = bcrypt.hashpw(b"", bcrypt.gensalt(10))
"""The hash for unknown users, so that the time of a refusal does not show which names exist."""


class Passwords:
    """For several threads."""

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
