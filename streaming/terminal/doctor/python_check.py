"""Finds whether Python has what segtail needs here: its own version, and PySpark where a job is to run."""

import platform
import sys
from collections.abc import Iterator
from importlib.util import find_spec

from streaming import __version__
from streaming.terminal.doctor.diagnosis import Diagnosis, Outcome, Setup

_OLDEST = (3, 11)
_EXTRA = ("pyspark", "pandas")
_INSTALL = f"pip install './kafka_segment_tail-{__version__}-py3-none-any.whl[spark]'"


def check(setup: Setup) -> Iterator[Diagnosis]:
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
        command=_INSTALL if setup.is_of_job else "",
    )
