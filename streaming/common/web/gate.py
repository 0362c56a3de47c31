"""Access over HTTP: TLS for each connection, a password for each request by the current web config file, and that file.

The file's format is that of a Go package; `prometheus_client` has TLS with a certificate that it reads once, and no passwords.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from threading import Lock
from typing import TypeVar

import bcrypt
import yaml

from streaming.common.certificates import read_ca, read_pair
from streaming.common.reloading import Reloading, read_secret
from streaming.common.web.places import RIGHT_PASSWORDS, WRONG_PASSWORDS
from streaming.errors import UsageError

_Value = TypeVar("_Value")

_TLS_KEYS = ("cert_file", "key_file", "client_ca_file", "client_auth_type", "client_allowed_sans", "min_version", "max_version")

_BCRYPT = re.compile(r"\$2[aby]\$\d\d\$[./A-Za-z0-9]{53}")
"""A whole hash: `bcrypt` takes one that was cut, and no password fits it."""

_VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH = {
    "": ssl.CERT_NONE,
    "NoClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}

OPEN_PATHS = frozenset({"/-/healthy", "/-/ready"})
"""Paths for health checks, which have no password. Their answers contain nothing of Kafka."""

_BCRYPT_BYTES = 72
"""The number of bytes of a password that bcrypt uses."""

_NOBODY = bcrypt.hashpw(b"", bcrypt.gensalt(10))
"""The hash for unknown users, so that the time of a refusal does not show which names exist."""

_OWN_NAMES = ("localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback")


class Gate:
    """Checks connections and requests. Without a file, every client is admitted, without TLS. Thread-safe.
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
        """The context for the TLS of a new connection; None if it has none."""
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


def read_web_config(path: Path) -> tuple[WebConfig, list[Path]]:
    """Read the configuration; returns it and every file that it was read from.

    The web config file: TLS and passwords of an HTTP server, in the format of Prometheus' own exporters. Format: prometheus/exporter-
    toolkit, docs/web-configuration.md. The options that an HTTP/1.1 server can follow are supported. Any other option is an error
    that names it, so that no operator relies on an option without effect. Paths in it are relative to the file itself. `ssl`,
    `bcrypt` and `yaml` do the work; what is left are the errors, which name the option and never show a hash.

    Raises:
        UsageError: a file cannot be read, or contains something that is not understood. Names the file and the option, but shows no hash.
    """
    raw = read_secret(path, "--web-config")
    try:
        content = yaml.safe_load(raw)
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)  # not the text itself: it may contain a hash
        raise UsageError(f"--web-config {path} is not YAML" + (f" at line {mark.line + 1}" if mark else "")) from None
    content = _mapping(path, "the file", {} if content is None else content)
    _refuse_unknown(path, "", content, ("tls_server_config", "http_server_config", "basic_auth_users"))
    _refuse_unknown(path, "http_server_config.", _mapping(path, "http_server_config", content.get("http_server_config") or {}), ("http2",))
    tls_options = content.get("tls_server_config")
    context, sans, files = (None, frozenset[str](), []) if not tls_options else _tls(path, _mapping(path, "tls_server_config", tls_options))
    users = _users(path, content.get("basic_auth_users") or {})
    if context is None and not users:  # also a file that is empty, or was cut: nothing would be shut, and no log would say so
        raise UsageError(
            f"--web-config {path} asks for neither TLS (tls_server_config) nor passwords (basic_auth_users): "
            "write them into it, or leave --web-config away"
        )
    return WebConfig(tls=context, allowed_sans=sans, users=users), [path, *files]


@dataclass(frozen=True, slots=True, kw_only=True)
class WebConfig:
    """The content of a web config file.

    ``users``: bcrypt hashes by name; ``allowed_sans``: if not empty, a client's certificate must have one of these names.
    """

    tls: ssl.SSLContext | None = None
    allowed_sans: frozenset[str] = frozenset()
    users: Mapping[str, bytes] = field(default_factory=dict, repr=False)


def _mapping(path: Path, name: str, value: object) -> dict[str, object]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise UsageError(f"--web-config {path}: {name} is not a mapping of options")
    return value


def _refuse_unknown(path: Path, where: str, given: Mapping[str, object], names: tuple[str, ...]) -> None:
    for name in given:
        if name not in names:
            raise UsageError(f"--web-config {path}: {where}{name} is not known; there are {', '.join(names)}")


def _tls(path: Path, options: Mapping[str, object]) -> tuple[ssl.SSLContext, frozenset[str], list[Path]]:
    _refuse_unknown(path, "tls_server_config.", options, _TLS_KEYS)
    cert, key, client_ca = (_file(path, options, name) for name in ("cert_file", "key_file", "client_ca_file"))
    if cert is None or key is None:
        raise UsageError(f"--web-config {path}: tls_server_config needs cert_file and key_file")
    read_pair(cert, key, f"--web-config {path}: cert_file, key_file")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _load(path, "cert_file, key_file", lambda: context.load_cert_chain(cert, key))
    context.minimum_version = _one_of(path, options, "min_version", "TLS12", _VERSIONS)
    context.maximum_version = _one_of(path, options, "max_version", "TLS13", _VERSIONS)
    if context.minimum_version > context.maximum_version:
        raise UsageError(f"--web-config {path}: min_version is above max_version")
    context.verify_mode = _one_of(path, options, "client_auth_type", "", _CLIENT_AUTH)
    sans = options.get("client_allowed_sans") or []
    if not isinstance(sans, list) or not all(isinstance(each, str) for each in sans):
        raise UsageError(f"--web-config {path}: client_allowed_sans takes a list of names")
    if (context.verify_mode is ssl.CERT_NONE) != (client_ca is None):
        raise UsageError(f"--web-config {path}: client_ca_file and a client_auth_type that verifies belong together")
    if sans and context.verify_mode is not ssl.CERT_REQUIRED:
        raise UsageError(f"--web-config {path}: client_allowed_sans needs client_auth_type: RequireAndVerifyClientCert")
    if client_ca is not None:
        read_ca(client_ca, f"--web-config {path}: client_ca_file")
        _load(path, "client_ca_file", lambda: context.load_verify_locations(client_ca))
    return context, frozenset(sans), [each for each in (cert, key, client_ca) if each is not None]


def _file(path: Path, options: Mapping[str, object], name: str) -> Path | None:
    value = options.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise UsageError(f"--web-config {path}: tls_server_config.{name} takes the name of a file")
    return path.parent / value


def _load(path: Path, option: str, load: Callable[[], None]) -> None:
    """Read again what was checked: it may have been replaced meanwhile, or be no certificate for OpenSSL."""
    try:
        load()
    except (ssl.SSLError, OSError) as error:
        raise UsageError(f"--web-config {path}: {option} cannot be used ({error})") from error


def _one_of(path: Path, options: Mapping[str, object], name: str, default: str, values: Mapping[str, _Value]) -> _Value:
    value = options.get(name) or default
    if not isinstance(value, str) or value not in values:
        raise UsageError(f"--web-config {path}: tls_server_config.{name} takes one of {', '.join(filter(None, values))}, not {value}")
    return values[value]


def _users(path: Path, given: object) -> dict[str, bytes]:
    users = {}
    for name, hashed in _mapping(path, "basic_auth_users", given).items():
        if not isinstance(hashed, str) or ":" in name or not _is_bcrypt(hashed.encode()):
            raise UsageError(
                f"--web-config {path}: basic_auth_users: {name} has no bcrypt hash, or not all of its 60 characters; "
                f"make one with `htpasswd -nBC 10 {name}`"
            )
        users[name] = hashed.encode()
    return users


def _is_bcrypt(hashed: bytes) -> bool:
    if not _BCRYPT.fullmatch(hashed.decode()):
        return False
    try:
        bcrypt.checkpw(b"", hashed)
    except ValueError:
        return False
    return True


def what_is_weaker(before: WebConfig, after: WebConfig) -> str:
    """What of a server's protection a change would turn off, "" for nothing: a file that is being written must not open what was shut."""
    lost = {
        "TLS (tls_server_config)": before.tls is not None and after.tls is None,
        "passwords (basic_auth_users)": bool(before.users) and not after.users,
        "client certificates (client_auth_type)": _verifies(before) > _verifies(after),
        "the names in client certificates (client_allowed_sans)": bool(before.allowed_sans) and not after.allowed_sans,
    }
    return " and ".join(name for name, is_lost in lost.items() if is_lost)


def _verifies(config: WebConfig) -> int:
    """0 for clients that are not verified, up to 2 for those that have to be."""
    return 0 if config.tls is None else int(config.tls.verify_mode)


class Passwords:
    """Checks names and passwords (RFC 7617) against bcrypt hashes, and remembers the outcome: bcrypt takes long on purpose.

    What is remembered are keyed hashes, as `exporter-toolkit` does; the wrong ones apart, so that tries displace no right one.
    Thread-safe.
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
        """Whether it does, by bcrypt: let one thread do so, so that a client that tries passwords does not get every core."""
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


def _names(certificate: Mapping[str, object]) -> set[str]:
    found: tuple[tuple[str, str], ...] = certificate.get("subjectAltName", ())  # type: ignore[assignment]
    return {value for _, value in found}


def is_foreign(host: str, listening: str) -> bool:
    """Whether a request's ``Host`` header names another host, although the server listens on a loopback address.

    Whom a request takes the server for: a server on a loopback address answers only to names of its own host. A page on the web may
    let its own name resolve to 127.0.0.1, and then read what is served there as if it came from itself (DNS rebinding). The browser
    names the page's host in the request, so a foreign name gives it away. A server on another address may have any name (of a pod, a
    service, a proxy, an alias), and scrapes come by each of them. There TLS or passwords keep such pages out: no certificate is for
    the foreign name, and a browser sends no password to it.

    Args:
        host: the header, "" if there is none: only programs send none.
        listening: the address that the server listens on.
    """
    if not host or not _is_loopback(listening):
        return False
    name = _name(host)
    return not (name in _OWN_NAMES or name.endswith(".localhost") or name == listening.lower() or _is_loopback(name))


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return address.lower() in _OWN_NAMES


def _name(host: str) -> str:
    """The name without port, brackets, and the dot of the root."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.rpartition(":")[0].lower().removesuffix(".") if ":" in host else host.lower().removesuffix(".")
