"""A plugin of pytest that makes an archive of the classes of a job's JVM, once a machine: with it a JVM starts with half of the work.

Java maps an archive only where the class path begins as it did when the archive was made. So the one class that a job compiles for itself
comes from a jar beside the archive. Where there is no archive, or none can be made, jobs run as they do elsewhere.
"""

import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from streaming.errors import JavaError
from streaming.java import find
from tests.broker.class_archive import version
from tests.broker.install import cache_dir

_ARCHIVE, _CLASSES, _FAILED = "classes.jsa", "local-files.jar", "failed"
_NAME = "segtail.LocalFiles"
_SECONDS = 900


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
    directory = _directory()
    if directory is None or not (directory / _ARCHIVE).is_file():
        return None
    return _archive(directory, f"-XX:SharedArchiveFile={directory / _ARCHIVE}")


def make() -> None:
    """Make it where there is none. One process does; others go on without meanwhile."""
    directory = _directory()
    if directory is None or (directory / _ARCHIVE).is_file() or (directory / _FAILED).is_file():
        return
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        _make(directory)


@cache
def _directory() -> Path | None:
    """Where the archive of this Java, these jars and this class is, or will be."""
    from streaming.job import local_files

    spec = find_spec("pyspark")
    try:
        java_home = find(os.environ, cache_dir() / "java")
    except JavaError:
        return None
    if spec is None or spec.origin is None:
        return None
    jars = sorted(Path(spec.origin).parent.glob("jars/*.jar"))
    known = [version(str(java_home / "bin" / "java")), *(f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in jars)]
    return cache_dir() / f"spark-{hashlib.sha256(chr(10).join([*known, local_files._SOURCE]).encode()).hexdigest()[:16]}"


def _archive(directory: Path, option: str) -> Archive:
    from streaming.job import local_files

    options = {"spark.driver.extraClassPath": str(directory / _CLASSES), local_files.OPTION: _NAME}
    return Archive(f"{option} -Xshare:auto -Xlog:cds*=off", options)


def _make(directory: Path) -> None:
    """In a process of its own, because a process has one JVM. An archive with which Java does not start, as one cut off, is none."""
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        made = Path(scratch, _ARCHIVE)
        java = find(os.environ, cache_dir() / "java") / "bin" / "java"
        try:
            _run([sys.executable, "-m", __spec__.name, str(directory), scratch], Path(__file__).parents[1])
            _run([str(java), f"-XX:SharedArchiveFile={made}", "-version"], Path(scratch))
            made.rename(directory / _ARCHIVE)
        except (subprocess.SubprocessError, OSError) as error:
            (directory / _FAILED).write_text(f"{error}\n{getattr(error, 'stderr', '')}")


def _run(command: list[str], where: Path) -> None:
    subprocess.run(command, cwd=where, capture_output=True, text=True, check=True, timeout=_SECONDS)


def _main(directory: Path, scratch: Path) -> None:
    """A job over one small log, whose JVM writes down at its end what it has loaded."""
    from streaming.cli.app import main
    from streaming.job import jvm, spark
    from tests import job_environment
    from tests.builders import batch, log_dir, partition

    jvm._STOP_SECONDS = spark._STOP_SECONDS = _SECONDS
    _compile(directory, scratch)
    os.environ.update(job_environment.of_archive(_archive(directory, f"-XX:ArchiveClassesAtExit={scratch / _ARCHIVE}")))
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

    from streaming.job import local_files
    from streaming.job.jvm import Jvm

    classes = scratch / "classes"
    classes.mkdir()
    conf = SparkConf(loadDefaults=False).setMaster("local").set("spark.driver.extraClassPath", str(classes))
    with (scratch / "lock").open("w") as lock:
        started = Jvm(conf, java_home=find(os.environ, cache_dir() / "java"), scratch=scratch, lock_fd=lock.fileno())
        assert local_files.compile_into(started.connect(conf).jvm, classes) == _NAME
        started.kill()
    with zipfile.ZipFile(scratch / _CLASSES, "w") as jar:
        for path in sorted(classes.rglob("*.class")):
            jar.write(path, path.relative_to(classes))
    (scratch / _CLASSES).rename(directory / _CLASSES)


if __name__ == "__main__":
    _main(*map(Path, sys.argv[1:3]))
