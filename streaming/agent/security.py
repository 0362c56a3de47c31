"""Who may talk to an agent: certificates, tokens, and the rule that without them it listens on loopback alone."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow.flight as flight

from streaming.agent.tokens import HEADER, accepts, read_tokens
from streaming.certificates import Pair, read_ca, read_pair, warn_if_open
from streaming.errors import UsageError
from streaming.fresh import Fresh
from streaming.targets import is_loopback
from streaming.units import Address


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFiles:
    """Where an agent's certificate, its key, the CA of its jobs and its tokens lie."""

    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_client_ca: Path | None = None
    token_file: Path | None = None


@dataclass(frozen=True, slots=True)
class Certificates:
    """What a TLS server needs. With ``client_ca`` a job has to show a certificate that is signed by it."""

    pair: Pair
    client_ca: bytes | None


@dataclass(frozen=True, slots=True)
class Security:
    """What stands in the files now; None where nothing was asked for."""

    certificates: Fresh[Certificates] | None
    tokens: Fresh[tuple[bytes, ...]] | None

    @property
    def failures(self) -> int:
        """How many changes of the files could not be used."""
        return sum(each.failures for each in (self.certificates, self.tokens) if each is not None)


OPEN = Security(None, None)
"""For loopback: whoever is on this machine may ask."""


def open_security(files: ServerFiles, listen: Address) -> Security:
    """Read the files, and hold them against the address.

    Raises:
        UsageError: a file cannot be used, one that belongs to another is missing, or the address can be reached from elsewhere and not
            everybody who asks would have to show who they are, over an encrypted connection.
    """
    if (files.tls_cert is None) != (files.tls_key is None):
        raise UsageError("--tls-cert and --tls-key belong together: name both")
    if files.tls_client_ca is not None and files.tls_cert is None:
        raise UsageError("--tls-client-ca asks jobs for a certificate, for which the agent needs one itself: name --tls-cert and --tls-key")
    if not is_loopback(listen.host):
        if files.tls_cert is None:
            raise UsageError(
                f"--listen {listen}: an agent without a certificate serves loopback addresses only, such as 127.0.0.1:8815: "
                "name --tls-cert and --tls-key"
            )
        if files.token_file is None and files.tls_client_ca is None:
            raise UsageError(
                f"--listen {listen}: an agent that knows nobody serves loopback addresses only, such as 127.0.0.1:8815: "
                "name --token-file, --tls-client-ca, or both"
            )
    return Security(_certificates(files), _tokens(files.token_file))


def _certificates(files: ServerFiles) -> Fresh[Certificates] | None:
    cert, key, client_ca = files.tls_cert, files.tls_key, files.tls_client_ca
    if cert is None or key is None:
        return None

    def make() -> tuple[Certificates, list[Path]]:
        read = [cert, key] if client_ca is None else [cert, key, client_ca]
        ca = None if client_ca is None else read_ca(client_ca, "--tls-client-ca")
        return Certificates(read_pair(cert, key, "--tls-cert, --tls-key"), ca), read

    found = Fresh(make)
    warn_if_open(key, "--tls-key")
    return found


def _tokens(path: Path | None) -> Fresh[tuple[bytes, ...]] | None:
    if path is None:
        return None
    found = Fresh(lambda: (read_tokens(path, "--token-file"), [path]))
    warn_if_open(path, "--token-file")
    return found


class TokenGate(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Turns away every call that shows none of the tokens."""

    def __init__(self, tokens: Fresh[tuple[bytes, ...]], refused: Callable[[], None]) -> None:
        super().__init__()
        self._tokens = tokens
        self._refused = refused

    def start_call(self, info: flight.CallInfo, headers: Mapping[str, list[str]]) -> None:
        """Called before each call."""
        del info
        shown = headers.get(HEADER, [""])[0]
        if not accepts(self._tokens.get(), shown):
            self._refused()
            raise flight.FlightUnauthenticatedError("segtail: this agent asks for a token that it knows")
