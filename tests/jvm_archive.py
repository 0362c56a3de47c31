"""A plugin of pytest that makes an archive of the classes of a job's JVM, once a machine: with it a JVM starts with half of the work.

Java maps an archive only where the class path begins as it did when the archive was made. So the one class that a job compiles for itself
comes from a jar beside the archive. Where there is no archive, or none can be made, jobs run as they do elsewhere.
"""

import os
import sys
import zipfile
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import class_archives
from tests.broker.install import UnavailableError, archives, java
from tests.limits import SECONDS

_CLASSES = "local-files.jar"
_NAME = "segtail.LocalFiles"


@pytest.hookimpl(wrapper=True, tryfirst=True)  # around the time limits of tests: the first one is not slower than others
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    if item.get_closest_marker("spark"):
        make()
    return (yield)


@dataclass(frozen=True, slots=True)
class Archive:
    """What makes Spark's JVM use one: an option of Java's, and options of Spark's."""

    java_option: str
    spark_options: Mapping[str, str]


def found() -> Archive | None:
    """The one that there is. Executors elsewhere do not have its jar."""
    place = _place()
    archive = class_archives.found(place) if place else None
    return _archive(archive.parent, f"-XX:SharedArchiveFile={archive} -Xlog:cds*=off") if archive else None


def make() -> None:
    """Have it made where there is none: in a process of its own, because a process has one JVM."""
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
        return class_archives.folder(archives(), "spark", java(), jars, local_files._SOURCE)
    except UnavailableError:
        return None


def _archive(directory: Path, option: str) -> Archive:
    from streaming.spark.job import local_files

    options = {"spark.driver.extraClassPath": str(directory / _CLASSES), local_files.OPTION: _NAME}
    return Archive(f"{option} -Xshare:auto", options)


def _main(directory: Path, scratch: Path) -> None:
    """A job over one small log, whose JVM writes down at its end what it has loaded."""
    from streaming.spark.job import jvm, spark
    from streaming.terminal.cli.app import main
    from tests import job_environment
    from tests.builders import batch, log_dir, partition

    jvm._STOP_SECONDS = spark._STOP_SECONDS = SECONDS
    _compile(directory, scratch)
    os.environ.update(job_environment.of_archive(_archive(directory, f"-XX:ArchiveClassesAtExit={scratch / class_archives.ARCHIVE}")))
    disk = log_dir(scratch)
    log = partition(disk, "orders")
    log.append(batch(5))
    log.close()
    disk.release()
    where = ("--log-dirs", disk.path, "--checkpoint", scratch / "checkpoint", "--textfile", scratch / "page.prom")
    sys.argv = ["segtail", "run", "--once", *map(str, where)]
    main()


def _compile(directory: Path, scratch: Path) -> None:
    """The job's own class as a jar, compiled as a job does it."""
    from pyspark import SparkConf

    from streaming.spark.job import local_files
    from streaming.spark.job.jvm import Jvm

    classes = scratch / "classes"
    classes.mkdir()
    conf = SparkConf(loadDefaults=False).setMaster("local").set("spark.driver.extraClassPath", str(classes))
    with (scratch / "lock").open("w") as lock:
        started = Jvm(conf, java_home=Path(java()).parents[1], scratch=scratch, lock_fd=lock.fileno(), private=False)
        assert local_files.compile_into(started.connect(conf).jvm, classes) == _NAME
        started.kill()
    with zipfile.ZipFile(scratch / _CLASSES, "w") as jar:
        for path in sorted(classes.rglob("*.class")):
            jar.write(path, path.relative_to(classes))
    (scratch / _CLASSES).rename(directory / _CLASSES)


if __name__ == "__main__":
    _main(*map(Path, sys.argv[1:3]))
