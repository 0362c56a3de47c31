"""The archive of the classes that brokers and Kafka's tools load: made of what `recording` JVMs have loaded."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path

from tests import class_archives
from tests.limits import SECONDS

_GC = "-XX:+UseSerialGC"
_TO_STDERR = ("-Xlog:disable", "-Xlog:all=warning:stderr")
"""What a JVM has to say of its archive must not stand in the output of a tool."""

_lists: tuple[str, Iterator[Path]] | None = None  # of the JVMs with this class path


def options(java: str, class_path: str, archives: Path) -> tuple[str, ...]:
    """What a JVM is started with: the archive if there is one, or the list of its classes that is written while one is made."""
    if _lists is not None:
        recorded, lists = _lists
        return (f"-XX:DumpLoadedClassList={next(lists)}",) if recorded == class_path else ()
    archive = class_archives.found(place(java, class_path, archives))
    return (f"-XX:SharedArchiveFile={archive}", *_TO_STDERR) if archive else ()


@cache
def place(java: str, class_path: str, archives: Path) -> Path:
    """The folder of the archive, among those of others."""
    return class_archives.folder(archives, "kafka", java, map(Path, class_path.split(os.pathsep)))


@contextmanager
def recording(folder: Path, class_path: str) -> Iterator[Path]:
    """Every JVM with this class path that is started in the block writes the classes it loads into a file of the folder."""
    global _lists
    folder.mkdir()
    _lists = class_path, (folder / f"{number}.list" for number in count())
    try:
        yield folder
    finally:
        _lists = None


def dump(java: str, class_path: str, lists: Path, archive: Path) -> None:
    """Make an archive of all classes that a folder lists."""
    lines = dict.fromkeys(line for path in sorted(lists.iterdir()) for line in path.read_text().splitlines() if not line.startswith("#"))
    together = lists / "together"
    together.write_text("\n".join(lines))
    command = [java, "-Xshare:dump", f"-XX:SharedClassListFile={together}", f"-XX:SharedArchiveFile={archive}", _GC, "-cp", class_path]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=SECONDS)
