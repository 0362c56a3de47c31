"""What the doctor finds, for tests that are about one check."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from streaming.disk.logdirs import open_log_dirs
from streaming.doctor.diagnosis import Asked, Finding, State
from streaming.settings import Settings

NOW = 1_700_000_000.0

FINE, WARNING, FAULT, UNKNOWN = State.FINE, State.WARNING, State.FAULT, State.UNKNOWN

Check = Callable[[Asked], Iterator[Finding]]


def examined(
    check: Check, *log_dirs: Path, now: float = NOW, environ: dict[str, str] | None = None, given: Iterable[str] = (), **settings: object
) -> list[Finding]:
    """All that a check finds of some log dirs and settings."""
    found = open_log_dirs(log_dirs) if log_dirs else None
    return list(
        check(Asked(settings=Settings(**settings), environ=environ or {}, now=now, log_dirs=found, given=frozenset(given)))  # type: ignore[arg-type]
    )


def only(check: Check, *log_dirs: Path, now: float = NOW, **settings: object) -> Finding:
    """The one finding."""
    (finding,) = examined(check, *log_dirs, now=now, **settings)
    return finding
