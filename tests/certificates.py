"""Certificates and tokens in files, of a CA of the tests' own."""

import ssl
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import trustme

from streaming.broker.agent.security import ServerFiles
from streaming.spark.client.address_lookup import ClientFiles

TOKEN = "0123456789abcdef-right"
OTHER_TOKEN = "fedcba9876543210-wrong"


@dataclass(frozen=True)
class Files:
    """A certificate and its key."""

    cert: Path
    key: Path


class Authority:
    """A CA that writes into a folder."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._ca = trustme.CA(key_type=trustme.KeyType.ECDSA)
        self.ca = directory / "ca.pem"
        self._ca.cert_pem.write_to_path(self.ca)

    def issue(self, name: str, *names: str, expired: bool = False) -> Files:
        """A certificate for some names, loopback if none is given, in ``<name>.pem``."""
        begin, end = (datetime(2020, 1, 1), datetime(2021, 1, 1)) if expired else (None, None)  # noqa: DTZ001 - as trustme wants them
        made = self._ca.issue_cert(*(names or ("127.0.0.1", "localhost")), not_before=begin, not_after=end, key_type=trustme.KeyType.ECDSA)
        files = Files(self._directory / f"{name}.pem", self._directory / f"{name}.key")
        _replace(files.cert, b"".join(blob.bytes() for blob in made.cert_chain_pems))
        _replace(files.key, made.private_key_pem.bytes())
        return files

    def server(self, *, client_ca: bool = False, token_file: Path | None = None, name: str = "agent") -> ServerFiles:
        """What an agent on loopback takes."""
        files = self.issue(name)
        return ServerFiles(tls_cert=files.cert, tls_key=files.key, tls_client_ca=self.ca if client_ca else None, token_file=token_file)

    def client(self, *, cert: bool = False, token_file: Path | None = None) -> ClientFiles:
        """What a job takes."""
        files = self.issue("job", "job") if cert else None
        return ClientFiles(ca=self.ca, cert=files and files.cert, key=files and files.key, token_file=token_file)


def token_file(path: Path, *tokens: str) -> Path:
    """A file of tokens that only this user may read; whoever reads it sees the old one or the new one."""
    _replace(path, "\n".join(tokens or (TOKEN,)).encode())
    return path


def _replace(path: Path, data: bytes) -> None:
    temporary = path.with_suffix(".new")
    temporary.write_bytes(data)
    temporary.chmod(0o600)
    temporary.replace(path)


def trusting(authority: Authority, files: Files | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority.ca)
    if files is not None:
        context.load_cert_chain(files.cert, files.key)
    return context
