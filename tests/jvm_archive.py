"""A plugin of pytest that makes an archive of the classes of a job's JVM, once a machine, by `segtail warm-up`.

With it a JVM starts with half of the work. Where there is none, or none can be made, jobs run without.
"""

import os
import subprocess
import sys
from collections.abc import Generator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import class_archives
from tests.broker.install import UnavailableError, archives, java
from tests.limits import SECONDS


@pytest.hookimpl(wrapper=True, tryfirst=True)  # around the time limits of tests: the first one is not slower than others
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    if item.get_closest_marker("spark"):
        make()
    return (yield)


def found() -> Path | None:
    """The directory in which a job finds the one that there is."""
    place = _place()
    return place if place and class_archives.found(place) else None


def make() -> None:
    """Have it made where there is none."""
    place = _place()
    if place:
        class_archives.make(place, java(), [sys.executable, "-m", __spec__.name])


@cache
def _place() -> Path | None:
    """Where the archive of this Java, these jars and this class is, or will be."""
    from streaming.spark.job import local_files

    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        return None
    jars = sorted(Path(spec.origin).parent.glob("jars/*.jar"))
    try:
        return class_archives.folder(archives(), "job", java(), jars, local_files.SOURCE)
    except UnavailableError:
        return None


def _main(directory: Path, scratch: Path) -> None:
    """Leave the archive in its place, too, as the sign that it is there."""
    from tests.job_environment import PATIENT_OPTIONS

    command = [sys.executable, "-m", "streaming.terminal.cli", "warm-up", "--class-archives", str(directory)]
    environ = {**os.environ, **PATIENT_OPTIONS, "JAVA_HOME": str(Path(java()).parents[1])}
    subprocess.run(command, env=environ, check=True, timeout=SECONDS)
    (made,) = directory.glob(f"*/{class_archives.ARCHIVE}")
    (scratch / class_archives.ARCHIVE).hardlink_to(made)


if __name__ == "__main__":
    _main(*map(Path, sys.argv[1:3]))
