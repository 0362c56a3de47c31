"""Decides who may use an agent: certificates, tokens, and the rule that an agent without them listens on loopback only."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from streaming.broker.protocol.tokens import Token, read_tokens
from streaming.common.certificates import Pair, read_ca, read_pair, warn_if_open
from streaming.common.reloading import Reloading
from streaming.common.targets import is_loopback
from streaming.common.units import Address
from streaming.errors import UsageError


def open_security(files: ServerFiles, listen: Address) -> Security:
    """Read the files, and check that they suffice for the address.

    Raises:
        UsageError: a file cannot be used, or a file that another one needs is missing. Or the address can be reached from other machines
            and not every client would have to authenticate over an encrypted connection.
    """
    if (files.tls_cert is None) != (files.tls_key is None):
        raise UsageError("--tls-cert and --tls-key belong together: name both")
    if files.tls_client_ca is not None and files.tls_cert is None:
        raise UsageError("--tls-client-ca needs a certificate of the agent too: name --tls-cert and --tls-key")
    if not is_loopback(listen.host):
        if files.tls_cert is None:
            raise UsageError(
                f"--listen {listen}: an agent without a certificate serves loopback addresses only, such as 127.0.0.1:8815: "
                "name --tls-cert and --tls-key"
            )
        if files.token_file is None and files.tls_client_ca is None:
            raise UsageError(
                f"--listen {listen}: an agent that authenticates no jobs serves loopback addresses only, such as 127.0.0.1:8815: "
                "name --token-file, --tls-client-ca, or both"
            )
    return Security(_certificates(files), _tokens(files.token_file))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFiles:
    """The paths of the files with an agent's certificate, its key, the CA of its jobs, and its tokens."""

    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_client_ca: Path | None = None
    token_file: Path | None = None


@dataclass(frozen=True, slots=True)
class Certificates:
    """The certificates of a TLS server, and how it speaks TLS with them."""

    pair: Pair
    context: ssl.SSLContext


@dataclass(frozen=True, slots=True)
class Security:
    """The current content of the files, None for those that are not configured."""

    certificates: Reloading[Certificates] | None
    tokens: Reloading[tuple[Token, ...]] | None

    @property
    def failures(self) -> int:
        """How many changes of the files could not be used."""
        return sum(each.failures for each in (self.certificates, self.tokens) if each is not None)


def _certificates(files: ServerFiles) -> Reloading[Certificates] | None:
    cert, key, client_ca = files.tls_cert, files.tls_key, files.tls_client_ca
    if cert is None or key is None:
        return None

    def make() -> tuple[Certificates, list[Path]]:
        read = [cert, key] if client_ca is None else [cert, key, client_ca]
        ca = None if client_ca is None else read_ca(client_ca, "--tls-client-ca")
        pair = read_pair(cert, key, "--tls-cert, --tls-key")
        return Certificates(pair, _context(cert, key, ca)), read

    found = Reloading(make)
    warn_if_open(key, "--tls-key")
    return found


def _context(cert: Path, key: Path, client_ca: bytes | None) -> ssl.SSLContext:
    """With ``client_ca``, a job has to show a certificate that this CA has signed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    try:
        context.load_cert_chain(cert, key)
    except (ssl.SSLError, OSError) as error:  # they were changed since they were checked
        raise UsageError(f"--tls-cert {cert} and --tls-key {key} cannot be used: {error}") from error
    if client_ca is not None:
        context.load_verify_locations(cadata=client_ca.decode("ascii", "replace"))
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _tokens(path: Path | None) -> Reloading[tuple[Token, ...]] | None:
    if path is None:
        return None
    found = Reloading(lambda: (read_tokens(path, "--token-file"), [path]))
    warn_if_open(path, "--token-file")
    return found


OPEN = Security(None, None)
"""No certificates and no tokens, for loopback alone: everyone on this machine may send requests."""
