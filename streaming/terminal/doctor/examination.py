"""All checks, one after the other."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from streaming.broker.disk.availability import LogDirs
from streaming.broker.disk.log_dir_search import open_below
from streaming.common.settings import Settings
from streaming.errors import LogDirError
from streaming.terminal.doctor import (
    agents_check,
    brokers_check,
    certificates_check,
    checkpoint_check,
    clocks_check,
    java_check,
    journal_check,
    limits_check,
    listening_check,
    permissions_check,
    python_check,
    space_check,
)
from streaming.terminal.doctor.diagnosis import Diagnosis, Outcome, Setup

_CHECKS = (
    python_check,
    java_check,
    limits_check,
    permissions_check,
    brokers_check,
    clocks_check,
    space_check,
    checkpoint_check,
    journal_check,
    certificates_check,
    agents_check,
    listening_check,
)


def examine(settings: Settings, environ: Mapping[str, str], now: float, given: Iterable[str] = (), job: str = "") -> tuple[Diagnosis, ...]:
    """Everything that the checks find, check by check.

    Args:
        now: Unix seconds.
        given: the names of the settings that somebody has given.
        job: the address of a job that is asked, too: it listens where it should.
    """
    log_dirs, refused = _opened(settings)
    asked = Setup(settings=settings, environ=environ, now=now, log_dirs=log_dirs, given=frozenset(given), job=job)
    for each in refused:
        asked = replace(asked, no_log_dirs=f"not checked: {each.what}")
    return (*refused, *(finding for each in _CHECKS for finding in each.check(asked)))


def _opened(settings: Settings) -> tuple[LogDirs | None, list[Diagnosis]]:
    if not settings.log_dirs:
        return None, []
    try:
        return open_below(settings.log_dirs), []
    except LogDirError as error:
        return None, [Diagnosis(check="log dirs", state=Outcome.FAULT, what=str(error))]
