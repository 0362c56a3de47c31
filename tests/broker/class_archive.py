"""An archive of the classes that brokers and Kafka's tools load (AppCDS): with it each of their JVMs takes half the processor to start.

It is made once for each Java and class path, of what `recording` JVMs have loaded, and lies in the tests' cache. Without it they start as
they always did: nothing about it is a reason to fail.
"""

import fcntl
import hashlib
import logging
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path

_log = logging.getLogger(__name__)
_DUMP_SECONDS = 900
_GC = "-XX:+UseSerialGC"
_TO_STDERR = ("-Xlog:disable", "-Xlog:all=warning:stderr")
"""What a JVM has to say of its archive must not stand in the output of a tool."""

_lists: Iterator[Path] | None = None


def options(java: str, class_path: str, folder: Path) -> tuple[str, ...]:
    """What a JVM is started with: the archive if there is one, or the list of its classes that is written while one is made."""
    if _lists is not None:
        return (f"-XX:DumpLoadedClassList={next(_lists)}",)
    archive = _archive(java, class_path, folder)
    return (f"-XX:SharedArchiveFile={archive}", *_TO_STDERR) if archive.is_file() else ()


def make(java: str, class_path: str, folder: Path, train: Callable[[Path], None]) -> None:
    """Make the archive unless it is there, or could not be made before. Processes side by side make it once.

    Args:
        train: starts and ends JVMs that load what others will load, in a folder that is empty.
    """
    archive = _archive(java, class_path, folder)
    given_up = archive.with_suffix(".given-up")
    folder.mkdir(parents=True, exist_ok=True)
    with archive.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if archive.exists() or given_up.exists():
            return
        try:
            with tempfile.TemporaryDirectory(dir=folder) as scratch:  # appears whole or not at all
                with recording(Path(scratch, "lists")) as lists:
                    train(Path(scratch, "training"))
                staged = Path(scratch, archive.name)
                _dump(java, class_path, lists, staged)
                staged.rename(archive)
        except (AssertionError, OSError, subprocess.SubprocessError) as error:
            _log.warning("JVMs will start without an archive of classes: %s", error)
            given_up.write_text(str(error))


@contextmanager
def recording(folder: Path) -> Iterator[Path]:
    """Every JVM that is started in the block writes the classes it loads into a file of the folder."""
    global _lists
    folder.mkdir()
    _lists = (folder / f"{number}.list" for number in count())
    try:
        yield folder
    finally:
        _lists = None


@cache
def _archive(java: str, class_path: str, folder: Path) -> Path:
    """Its path has all in its name that a JVM compares before it takes an archive."""
    jars = [Path(jar) for jar in class_path.split(os.pathsep)]
    facts = [(str(jar), jar.stat().st_size, jar.stat().st_mtime_ns) for jar in jars]
    return folder / f"{hashlib.sha256(repr((version(java), facts)).encode()).hexdigest()[:16]}.jsa"


@cache
def version(java: str) -> str:
    """What a Java says of itself. Its path may stay the same when it is replaced, as that of a script that starts another one."""
    return subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr


def _dump(java: str, class_path: str, lists: Path, archive: Path) -> None:
    lines = dict.fromkeys(line for path in sorted(lists.iterdir()) for line in path.read_text().splitlines() if not line.startswith("#"))
    together = lists / "together"
    together.write_text("\n".join(lines))
    command = [java, "-Xshare:dump", f"-XX:SharedClassListFile={together}", f"-XX:SharedArchiveFile={archive}", _GC, "-cp", class_path]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=_DUMP_SECONDS)
