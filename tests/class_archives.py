"""Archives of the classes that JVMs load (AppCDS): with one a JVM starts with half of the work.

Each is made once a machine, by a program, and lies in a folder of its own in the tests' cache. Nothing about one is a reason to fail: where
there is none yet, or none can be made, JVMs start as they do elsewhere, and the file `failed` in the folder says why.
"""

import fcntl
import hashlib
import logging
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TextIO

from tests.limits import SECONDS

ARCHIVE = "classes.jsa"
_FAILED = "failed"
_log = logging.getLogger(__name__)


def folder(parent: Path, kind: str, java: str, jars: Iterable[Path], *more: str) -> Path:
    """Where the archive of a Java and of jars is, or will be: all that a JVM compares before it takes one has a part in the name."""
    known = [_version(java), *(f"{jar} {jar.stat().st_size} {jar.stat().st_mtime_ns}" for jar in jars), *more]
    return parent / f"{kind}-{hashlib.sha256(chr(10).join(known).encode()).hexdigest()[:16]}"


def found(place: Path) -> Path | None:
    """The archive in its folder, if it is there."""
    archive = place / ARCHIVE
    return archive if archive.is_file() else None


def make(place: Path, java: str, program: Sequence[str]) -> None:
    """Have an archive made unless it is there, or could not be made before. One process does; others go on without meanwhile.

    Args:
        program: a command. To its words come the folder of the archive, and another one that goes, in which it has to leave the archive.
    """
    if _settled(place):
        return
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        if not _settled(place):  # by another process, a moment ago
            _make(place, java, program)


def _settled(place: Path) -> bool:
    return found(place) is not None or (place / _FAILED).is_file()


def _make(place: Path, java: str, program: Sequence[str]) -> None:
    """An archive with which Java does not start, as one cut off, is none."""
    with tempfile.TemporaryDirectory(dir=place) as scratch, Path(scratch, "said").open("w+") as stated:
        made = Path(scratch, ARCHIVE)
        try:
            _run([*program, str(place), scratch], Path(__file__).parents[1], stated)
            _run([java, f"-XX:SharedArchiveFile={made}", "-version"], Path(scratch), stated)
            made.rename(place / ARCHIVE)
        except (subprocess.SubprocessError, OSError) as error:
            _log.warning("JVMs will start without an archive of classes: %s", error)
            stated.seek(0)
            (place / _FAILED).write_text(f"{error}\n{stated.read()}")


def _run(command: list[str], where: Path, stated: TextIO) -> None:
    subprocess.run(command, cwd=where, stdout=stated, stderr=subprocess.STDOUT, check=True, timeout=2 * SECONDS)


@cache
def _version(java: str) -> str:
    """What a Java says of itself. Its path may stay the same when it is replaced, as that of a script that starts another one."""
    return subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
