"""All checks, one after the other."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from streaming.broker.disk.availability import LogDirs
from streaming.broker.disk.log_dir_search import open_below
from streaming.common.settings import Settings
from streaming.errors import LogDirError
from streaming.terminal.doctor.checkpoint_checks import check_checkpoint, check_journal, check_space
from streaming.terminal.doctor.connection_checks import check_agents, check_certificates, check_listening
from streaming.terminal.doctor.diagnosis import Diagnosis, Outcome, Setup
from streaming.terminal.doctor.installation_checks import check_java, check_python
from streaming.terminal.doctor.log_dir_checks import check_brokers, check_clocks, check_limits, check_permissions

_CHECKS = (
    check_python,
    check_java,
    check_limits,
    check_permissions,
    check_brokers,
    check_clocks,
    check_space,
    check_checkpoint,
    check_journal,
    check_certificates,
    check_agents,
    check_listening,
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
    return (*refused, *(finding for check in _CHECKS for finding in check(asked)))


def _opened(settings: Settings) -> tuple[LogDirs | None, list[Diagnosis]]:
    if not settings.log_dirs:
        return None, []
    try:
        return open_below(settings.log_dirs), []
    except LogDirError as error:
        return None, [Diagnosis(check="log dirs", state=Outcome.FAULT, what=str(error))]
