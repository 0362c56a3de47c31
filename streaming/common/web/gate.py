"""Access over HTTP: TLS for each connection and a password for each request, by the current web config file.

The file's format is that of a Go package; `prometheus_client` has TLS with a certificate that it reads once, and no passwords.
"""

import ssl
from collections.abc import Mapping
from pathlib import Path

from streaming.common.reloading import Reloading
from streaming.common.web.passwords import Passwords
from streaming.common.web.web_config import WebConfig, read_web_config, what_is_weaker

OPEN_PATHS = frozenset({"/-/healthy", "/-/ready"})
"""Paths for health checks, which have no password. Their answers contain nothing of Kafka."""


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
