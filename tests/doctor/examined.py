"""What the doctor finds, for tests that are about one check."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.common.settings import Settings
from streaming.terminal.doctor.diagnosis import Diagnosis, Outcome, Setup

NOW = 1_700_000_000.0

FINE, WARNING, FAULT, UNKNOWN = Outcome.FINE, Outcome.WARNING, Outcome.FAULT, Outcome.UNKNOWN
NOT_APPLICABLE = Outcome.NOT_APPLICABLE

Check = Callable[[Setup], Iterator[Diagnosis]]


def examined(
    check: Check, *log_dirs: Path, now: float = NOW, environ: dict[str, str] | None = None, given: Iterable[str] = (), **settings: object
) -> list[Diagnosis]:
    """All that a check finds of some log dirs and settings."""
    found = open_log_dirs(log_dirs) if log_dirs else None
    return list(
        check(Setup(settings=Settings(**settings), environ=environ or {}, now=now, log_dirs=found, given=frozenset(given)))  # type: ignore[arg-type]
    )


def only(check: Check, *log_dirs: Path, now: float = NOW, **settings: object) -> Diagnosis:
    """The one finding."""
    (finding,) = examined(check, *log_dirs, now=now, **settings)
    return finding
