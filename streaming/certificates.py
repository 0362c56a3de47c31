"""Certificates and keys in files (PEM): read, checked before they are used, and when they end."""

import logging
import ssl
import time
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509

from streaming.errors import UsageError
from streaming.fresh import read_secret

log = logging.getLogger(__name__)

_WARN_SECONDS = 7 * 24 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A certificate (with those that lead to its CA) and its private key, PEM; ``ends_at``: when the first of them ends, Unix seconds."""

    cert: bytes
    key: bytes
    ends_at: float

    def __repr__(self) -> str:
        return f"Pair(ends_at={self.ends_at})"  # a key that stands in a message or a traceback is a key that is lost


def read_pair(cert: Path, key: Path, options: str) -> Pair:
    """A certificate and its key that fit together.

    Raises:
        UsageError: one of them cannot be read or is none, the key has a password, or is another certificate's.
    """
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


def read_ca(path: Path, option: str) -> bytes:
    """The certificates of CAs.

    Raises:
        UsageError: the file cannot be read or holds none.
    """
    pem = read_secret(path, option)
    try:
        x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise UsageError(f"{option} {path} holds no certificate (PEM): {error}") from error
    return pem


def warn_if_open(path: Path, option: str) -> None:
    """Say so where every user of the machine may read a secret."""
    if path.stat().st_mode & 0o004:
        log.warning(
            "every user of this machine can read a secret: take the right away (chmod o-r)", extra={"option": option, "path": str(path)}
        )


def _no_password() -> str:
    raise ValueError("the key has a password")
