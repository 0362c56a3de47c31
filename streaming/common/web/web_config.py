"""The web config file: TLS and passwords of an HTTP server, in the format of Prometheus' own exporters.

Format: prometheus/exporter-toolkit, docs/web-configuration.md. The options that an HTTP/1.1 server can follow are supported. Any other
option is an error that names it, so that nobody relies on an option without effect. Paths in it are relative to the file itself. `ssl`,
`bcrypt` and `yaml` do the work; what is left are the errors, which name the option and never show a hash.
"""

import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import bcrypt
import yaml

from streaming.common.certificates import read_ca, read_pair
from streaming.common.reloading import read_secret
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


@dataclass(frozen=True, slots=True, kw_only=True)
class WebConfig:
    """The content of a web config file.

    ``users``: bcrypt hashes by name; ``allowed_sans``: if not empty, a client's certificate must have one of these names.
    """

    tls: ssl.SSLContext | None = None
    allowed_sans: frozenset[str] = frozenset()
    users: Mapping[str, bytes] = field(default_factory=dict, repr=False)


def read_web_config(path: Path) -> tuple[WebConfig, list[Path]]:
    """Read the configuration; returns it and every file that it was read from.

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
    if context is None and not users:  # also a file that is empty, or was cut: nothing would be shut, and nobody would know
        raise UsageError(
            f"--web-config {path} asks for neither TLS (tls_server_config) nor passwords (basic_auth_users): "
            "write them into it, or leave --web-config away"
        )
    return WebConfig(tls=context, allowed_sans=sans, users=users), [path, *files]


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


def _load(path: Path, option: str, load: Callable[[], None]) -> None:
    """Read again what was checked: it may have been replaced meanwhile, or be no certificate for OpenSSL."""
    try:
        load()
    except (ssl.SSLError, OSError) as error:
        raise UsageError(f"--web-config {path}: {option} cannot be used ({error})") from error


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


def _mapping(path: Path, name: str, value: object) -> dict[str, object]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise UsageError(f"--web-config {path}: {name} is not a mapping of options")
    return value


def _refuse_unknown(path: Path, where: str, given: Mapping[str, object], names: tuple[str, ...]) -> None:
    for name in given:
        if name not in names:
            raise UsageError(f"--web-config {path}: {where}{name} is not known; there are {', '.join(names)}")


def _file(path: Path, options: Mapping[str, object], name: str) -> Path | None:
    value = options.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise UsageError(f"--web-config {path}: tls_server_config.{name} takes the name of a file")
    return path.parent / value


def _one_of(path: Path, options: Mapping[str, object], name: str, default: str, values: Mapping[str, _Value]) -> _Value:
    value = options.get(name) or default
    if not isinstance(value, str) or value not in values:
        raise UsageError(f"--web-config {path}: tls_server_config.{name} takes one of {', '.join(filter(None, values))}, not {value}")
    return values[value]
