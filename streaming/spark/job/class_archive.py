"""The archive of the classes that Spark's JVM loads (Java's AppCDS): with one the JVM starts with half of the work.

`segtail warm-up` makes it (`archive_making`). A JVM maps an archive only where the Java, the jars and the beginning of the class path are
those that it was made of. So the one class that a job compiles for itself comes from a jar beside the archive, and the name of the folder
stands for the rest. Where none fits, a job starts as it always did.
"""

import hashlib
import logging
import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from streaming.common import java
from streaming.spark.job import local_files
from streaming.spark.job.jvm import spark_home

log = logging.getLogger(__name__)

CLASS_PATH = "spark.driver.extraClassPath"
"""Spark's option for what the class path begins with. An archive is of no use to who sets it."""

JAVA_OPTIONS = "spark.driver.defaultJavaOptions"
"""Spark's option for what the JVM is started with, before ``spark.driver.extraJavaOptions``."""

_FORMAT = 1
_SHARED_BITS = 0o022


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """The archive of one Java and one Spark in its folder, whether it is there or not."""

    folder: Path

    @property
    def classes(self) -> Path:
        """The archive itself."""
        return self.folder / "classes.jsa"

    @property
    def size(self) -> Path:
        """A file with the bytes that the archive has: Java ends by SIGBUS where it lacks some."""
        return self.folder / "classes.size"

    @property
    def jar(self) -> Path:
        """The jar with which the class path begins."""
        return self.folder / "local-files.jar"

    def options(self, given: Mapping[str, str], *, local: bool) -> dict[str, str]:
        """Options of Spark's by which its JVM starts from it.

        Args:
            given: those that the user gives.
            local: tasks run in this JVM. Others do not have the jar.
        """
        # Java says on standard output why it does without an archive, which is no matter
        own = f'"-XX:SharedArchiveFile={self.classes}" -Xshare:auto -Xlog:cds*=off'
        options = {CLASS_PATH: str(self.jar), JAVA_OPTIONS: f"{given.get(JAVA_OPTIONS, '')} {own}".strip()}
        return options | ({local_files.OPTION: local_files.NAME} if local and local_files.OPTION not in given else {})


def found(directory: Path | None, java_home: Path, given: Mapping[str, str]) -> ClassArchive | None:
    """The archive that a job can use; None if there is none.

    Args:
        directory: as in `place`.
        given: Spark's options that the user gives.
    """
    try:
        archive = place(directory, java_home)
        unfit = next(_unfit(archive, given), "")
    except (OSError, RuntimeError) as error:
        unfit = str(error)
    if unfit:
        log.debug("Spark's JVM starts without an archive of its classes: %s", unfit)
        return None
    log.debug("Spark's JVM starts from an archive of its classes", extra={"path": str(archive.classes)})
    return archive


def place(directory: Path | None, java_home: Path) -> ClassArchive:
    """Where the archive of this Java and this Spark is, or would be.

    Args:
        directory: of all archives; None for the user's own cache.

    Raises:
        OSError: a file of Java's or Spark's cannot be looked at.
        RuntimeError: it is not known where the user's cache is.
    """
    runtime, home = java.runtime(java_home), spark_home(os.environ)
    files = [runtime / "lib" / "server" / "libjvm.so", runtime / "lib" / "modules", *sorted((home / "jars").iterdir())]
    known = [str(_FORMAT), platform.machine(), local_files.SOURCE, *map(_as_java_compares, files)]
    digest = hashlib.sha256("\n".join(known).encode(errors="surrogateescape")).hexdigest()
    return ClassArchive((directory or _cache()).absolute() / f"classes-{digest[:16]}")


def _as_java_compares(file: Path) -> str:
    """Path, size and time. Seconds, because layers of an image keep no more."""
    found = file.stat()
    return f"{file} {found.st_size} {int(found.st_mtime)}"


def _cache() -> Path:
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (named if named.is_absolute() else Path.home() / ".cache") / "segtail"


def _unfit(archive: ClassArchive, given: Mapping[str, str]) -> Iterator[str]:
    """Why it is not used."""
    if CLASS_PATH in given:
        yield f"{CLASS_PATH} is given"
    for path in (archive.folder, archive.classes, archive.jar):
        found = path.stat()
        if found.st_uid not in (0, os.geteuid()) or found.st_mode & _SHARED_BITS:  # what is in it is executed
            yield f"{path} may be written by others"
    if archive.size.read_text() != str(archive.classes.stat().st_size):
        yield f"{archive.classes} is not whole"
