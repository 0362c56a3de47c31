"""One archive with what a maintainer needs to know of an installation, and without any secret of it."""

import io
import platform
import re
import subprocess
import tarfile
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from urllib.parse import unquote, urlsplit

from streaming import __version__
from streaming.broker.protocol.status_json import STATUS_PATH
from streaming.broker.protocol.tokens import LEAST_CHARACTERS
from streaming.common.settings import Settings
from streaming.common.whole_files import write_whole
from streaming.errors import SegtailError, UsageError
from streaming.terminal.cli.job_answers import fetch
from streaming.terminal.configuration import MASK, SECRET_NAMES, render_yaml

_PACKAGES = ("pyspark", "pyarrow", "pandas", "numpy", "tornado", "protobuf")
_UNITS = ("segtail-agent", "segtail-job")
_LOG_LINES = 2_000
_LOG_SECONDS = 10.0

_LEAST_PASSWORD = 4
"""A shorter one would be masked in the middle of words; where it stands in an address it is masked in any case."""

_NAMED = re.compile(
    rf"""(?i)([\w.-]*(?:{SECRET_NAMES})(?![\w.-]*file)[\w.-]*["']?\s*[=:]\s*)("[^"]*"|'[^']*'|(?:(?:basic|bearer)\s+)?[^\s,;]+)"""
)
_KEY = re.compile(r"-----BEGIN ([A-Z ]*PRIVATE KEY)-----.*?(?:-----END \1-----|\Z)", re.DOTALL)
_IN_ADDRESS = re.compile(r"://[^/@\s]*:[^/@\s]*@")
_HASH = re.compile(r"\$2[abxy]\$\d\d\$[./A-Za-z0-9]*")


def write_bundle(path: Path, settings: Settings, job: str, findings: Iterable[str]) -> list[str]:
    """Write the archive; returns the names of its files.

    Raises:
        UsageError: it is there already, or cannot be written.
    """
    if path.exists():
        raise UsageError(f"--bundle {path} is there already: name another file")
    secrets = [*_secrets(settings, job)]
    files = {name: _without(secrets, text) for name, text in _files(settings, job, findings)}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(f"segtail-bundle/{name}")
            member.size, member.mode = len(text), 0o600
            archive.addfile(member, io.BytesIO(text))
    try:
        write_whole(path, packed.getvalue())
    except OSError as error:
        raise UsageError(f"--bundle {path} cannot be written: {error.strerror}") from error
    return list(files)


def _secrets(settings: Settings, job: str) -> Iterator[str]:
    """All words of the files that hold some, and the password in the job's address, as it is written and as it is meant."""
    files = (settings.token_file, settings.agent_token_file, settings.tls_key, settings.agent_key)
    for file in filter(None, files):
        try:
            yield from (word for word in file.read_text(errors="replace").split() if len(word) >= LEAST_CHARACTERS)
        except OSError:
            continue  # doctor says so; what this user cannot read is in no file here
    for address in (job, settings.job):
        password = urlsplit(address).password or ""
        yield from (each for each in (password, unquote(password)) if len(each) >= _LEAST_PASSWORD)


def _without(secrets: Iterable[str], text: str) -> bytes:
    for secret in sorted(set(secrets), key=len, reverse=True):
        text = text.replace(secret, MASK)
    text = _KEY.sub(MASK, _HASH.sub(MASK, _IN_ADDRESS.sub(f"://{MASK}@", text)))
    return _NAMED.sub(rf"\1{MASK}", text).encode()


def _files(settings: Settings, job: str, findings: Iterable[str]) -> Iterator[tuple[str, str]]:
    packages = [f"{name} {_version(name)}" for name in _PACKAGES]
    yield "versions.txt", "\n".join([f"segtail {__version__}", f"Python {platform.python_version()}", platform.platform(), *packages, ""])
    yield "config.yaml", render_yaml(settings)
    yield "doctor.txt", "\n".join([*findings, ""])
    if job:
        yield "status.json", _asked(job, STATUS_PATH)
        yield "metrics.prom", _asked(job, "/metrics")
    if settings.metrics_listen is not None:
        yield "agent.prom", _asked(f"http://{settings.metrics_listen}", "/metrics")
    yield "log.txt", _log() or f"systemd has no log of {' or '.join(_UNITS)}: please add what segtail has written to its stderr\n"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "is not installed"


def _asked(address: str, path: str) -> str:
    try:
        return (fetch(address, path, _LOG_SECONDS) or b"it has no such page\n").decode(errors="replace")
    except SegtailError as error:
        return f"{error}\n"


def _log() -> str:
    """The last lines of the units, "" if there are none: what was started otherwise wrote to wherever its stderr leads."""
    units = [word for unit in _UNITS for word in ("--unit", unit)]
    try:
        command = ["journalctl", "--quiet", "--no-pager", "--output", "cat", "--lines", str(_LOG_LINES), *units]
        return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, timeout=_LOG_SECONDS).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
