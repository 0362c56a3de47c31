"""Certificates and keys in files (PEM): they are read and checked before they are used, with the time when they end."""

from __future__ import annotations

import logging
import ssl
import time
from dataclasses import dataclass
from pathlib import Path

from streaming.common.reloading import read_secret
from streaming.errors import UsageError

log = logging.getLogger(__name__)

_WARN_SECONDS = 7 * 24 * 3600.0


def read_pair(cert: Path, key: Path, options: str) -> Pair:
    """Read a certificate and its key, and check that they belong together.

    Raises:
        UsageError: one of them cannot be read or has another format, the key has a password, or belongs to another certificate.
    """
    from cryptography import x509  # 8 MB, for those with TLS

    pems = read_secret(cert, options), read_secret(key, options)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(cert, key, password=_no_password)
        ends_at = min(each.not_valid_after_utc.timestamp() for each in x509.load_pem_x509_certificates(pems[0]))
    except (ssl.SSLError, ValueError) as error:
        raise UsageError(f"{options}: {cert} and {key} are not a certificate and its key without a password, both PEM ({error})") from error
    if ends_at < time.time() + _WARN_SECONDS:
        log.warning("a certificate has ended or soon will", extra={"path": str(cert), "ends_at": int(ends_at)})
    return Pair(cert=pems[0], key=pems[1], ends_at=ends_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A certificate (with those up to its CA) and its private key, PEM; ``ends_at``: when the first certificate ends, Unix seconds."""

    cert: bytes
    key: bytes
    ends_at: float

    def __repr__(self) -> str:
        return f"Pair(ends_at={self.ends_at})"  # a key in a message or a traceback is no longer secret


def _no_password() -> str:
    raise ValueError("the key has a password")


def read_ca(path: Path, option: str) -> bytes:
    """Read the certificates of CAs.

    Raises:
        UsageError: the file cannot be read or has no certificate.
    """
    from cryptography import x509

    pem = read_secret(path, option)
    try:
        x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise UsageError(f"{option} {path} holds no certificate (PEM): {error}") from error
    return pem


def warn_if_open(path: Path, option: str) -> None:
    """Log a warning if every user of the machine may read a secret."""
    if path.stat().st_mode & 0o004:
        log.warning(
            "every user of this machine can read a secret: take the right away (chmod o-r)", extra={"option": option, "path": str(path)}
        )
