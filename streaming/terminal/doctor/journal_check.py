"""Finds whether an agent can go on with the journal of this checkpoint: its version, its size, its holder."""

from collections.abc import Iterator
from pathlib import Path

from streaming.broker.journal.database import VERSION
from streaming.common.formatting import format_size
from streaming.terminal.doctor.diagnosis import Diagnosis, Outcome, Setup, quoted
from streaming.terminal.doctor.locks import holder_of

_CHECK = "journal"
_MAGIC = b"SQLite format 3\0"
_VERSION_AT = 60
"""Where SQLite keeps ``user_version`` in the first page (https://www.sqlite.org/fileformat.html, 1.3), big-endian."""

_HEADER_BYTES = 100


def check(setup: Setup) -> Iterator[Diagnosis]:
    """Read the header of the file alone: SQLite itself would write beside a file that it opens."""
    directory = setup.settings.checkpoint.absolute() / "agent"
    path = directory / "journal.db"
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
        size = path.stat().st_size
    except FileNotFoundError:
        yield Diagnosis(check=_CHECK, state=Outcome.NOT_APPLICABLE, what=f"there is no journal in {directory} yet")
        return
    except PermissionError:
        command = f'sudo chown -R "$(id -u)" {quoted(directory)}'
        yield Diagnosis(check=_CHECK, state=Outcome.FAULT, what=f"{path} may not be read", command=command)
        return
    yield _version(path, header, size, setup.settings.journal_max_bytes)
    holder = holder_of(directory / "journal.lock")
    if holder is None:
        yield Diagnosis(check=_CHECK, state=Outcome.UNKNOWN, what=f"the kernel does not tell whether an agent holds {path}")
    elif holder:
        who = f"process {holder}" if holder > 0 else "a process of another container"
        yield Diagnosis(check=_CHECK, state=Outcome.FINE, what=f"{who} holds {path}: an agent runs with it, and a second one cannot")


def _version(path: Path, header: bytes, size: int, most: int) -> Diagnosis:
    aside = f"mv {quoted(path.parent)} {quoted(f'{path.parent}.damaged')}"
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        what = f"{path} is damaged: put its directory aside; what the job has counted stays counted once"
        return Diagnosis(check=_CHECK, state=Outcome.FAULT, what=what, command=aside)
    version = int.from_bytes(header[_VERSION_AT : _VERSION_AT + 4])
    if version not in (0, VERSION):  # 0: its first transaction is not in the file itself yet
        what = f"{path} is of version {version}, this segtail reads {VERSION}: use the segtail that wrote it, or put its directory aside"
        return Diagnosis(check=_CHECK, state=Outcome.FAULT, what=what, command=aside)
    if size > most:
        what = f"{path} has {format_size(size)}, more than journal_max_bytes, {format_size(most)}: the next start of its agent trims it"
        return Diagnosis(check=_CHECK, state=Outcome.WARNING, what=what)
    return Diagnosis(check=_CHECK, state=Outcome.FINE, what=f"{path} is of version {version or VERSION} and has {format_size(size)}")
