"""Makes the archive of Spark's classes: a job over a small log lists what its JVM loads, and another JVM writes that into a file."""

import os
import subprocess
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from streaming.common import java
from streaming.common.settings import LogLevel, Settings
from streaming.common.start_from import StartFrom
from streaming.common.whole_files import write_whole
from streaming.errors import SegtailError, UsageError
from streaming.spark.job import class_archive
from streaming.spark.job.class_archive import ClassArchive
from streaming.spark.job.job import Job
from streaming.spark.job.jvm import spark_home

_DUMP_SECONDS = 600
_AS_JOBS = "-XX:+UseSerialGC"
_EARLIEST = (1980, 1, 1, 0, 0, 0)


def make(settings: Settings, log_dir: Path, scratch: Path, stop: threading.Event, begins: Callable[[str], None]) -> Path | None:
    """Make the archive for jobs of this installation, in place of one that is there; returns where it is, None if ``stop`` was set.

    It appears whole: a job that starts meanwhile finds the old one, or none.

    Args:
        log_dir: one that a job can read in a moment.
        scratch: an empty directory.
        begins: is given each step that takes long, in words, when it begins.

    Raises:
        ArchiveError: it could not be made. Nothing of it is left.
        UsageError: the directory of archives cannot be written.
    """
    java_home = java.find(os.environ, scratch / "java")
    archive = _place(settings, java_home)
    listed = scratch / "classes.list"
    own = {class_archive.JAVA_OPTIONS: f'"-XX:DumpLoadedClassList={listed}"'}
    job_settings = Settings(
        log_dirs=(log_dir,),
        checkpoint=scratch / "checkpoint",
        start_from=StartFrom.EARLIEST,
        class_archives=scratch / "none",  # all that is loaded is listed, wherever it would be loaded from
        log_level=LogLevel.DEBUG if settings.log_level is LogLevel.DEBUG else LogLevel.ERROR,
        log_format=settings.log_format,
        spark={**settings.spark, **own},
    )
    with _nothing_but_whole(archive):
        begins("running a job over a small log, to see what its JVM loads")
        with Job(job_settings, serve=False) as job:
            if not job.run_once(stop):
                return None
            compiled, *class_path = job.class_path
            jar = _packed(Path(compiled))
        refuse_directories(class_path)
        begins(f"writing the archive to {archive.classes}")
        write(archive, java_home / "bin" / "java", listed, class_path, jar)
    return archive.classes


def _place(settings: Settings, java_home: Path) -> ClassArchive:
    """The archive, whose folder is there and can be written: that is known before anything is started."""
    if class_archive.CLASS_PATH in settings.spark:
        raise UsageError(f"with Spark's option {class_archive.CLASS_PATH} no job uses an archive of Spark's classes: leave it out")
    configuration = Path(os.environ.get("SPARK_CONF_DIR") or spark_home(os.environ) / "conf")
    if not (configuration / "spark-env.sh").exists():  # which may name another one: it is known once the JVM runs
        refuse_directories([str(configuration)])
    try:
        archive = class_archive.place(settings.class_archives, java_home)
        archive.folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=archive.folder).close()
    except (OSError, RuntimeError) as error:
        raise UsageError(f"there is no place for an archive of Spark's classes ({error}): name one with --class-archives DIR") from error
    return archive


def refuse_directories(class_path: list[str]) -> None:
    """Refuse a class path of which Java makes no archive.

    Raises:
        UsageError: a directory of it has files, as Spark's own configuration.
    """
    filled = [each for each in class_path if Path(each).is_dir() and any(Path(each).iterdir())]
    if filled:
        raise UsageError(
            f"Java makes no archive of classes where a directory of the class path has files, as {filled[0]}: unset SPARK_CONF_DIR, "
            "or let it name an empty directory, and give Spark's options as segtail's (spark.* in its configuration)"
        )


@contextmanager
def _nothing_but_whole(archive: ClassArchive) -> Iterator[None]:
    """If there is no archive in the folder at the end, there is no folder."""
    try:
        yield
    finally:
        if not archive.classes.exists():
            archive.size.unlink(missing_ok=True)
            archive.jar.unlink(missing_ok=True)
            archive.folder.rmdir()


def _packed(classes: Path) -> bytes:
    """What a job has compiled for itself, as a jar. The same classes are the same bytes.

    Raises:
        ArchiveError: it has compiled nothing.
    """
    found = sorted(classes.rglob("*.class"))
    if not found:
        raise ArchiveError("Spark could not compile a class of the job's: see its message above")
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w") as jar:
        for file in found:
            jar.writestr(zipfile.ZipInfo(str(file.relative_to(classes)), _EARLIEST), file.read_bytes())
    return packed.getvalue()


class ArchiveError(SegtailError):
    """No archive could be made."""


def write(archive: ClassArchive, java: Path, listed: Path, class_path: list[str], jar: bytes) -> None:
    """Write jar and archive. The one is there first, because the other one holds its path and its time.

    Args:
        listed: a file that names the classes.
        class_path: what follows the jar on the class path.
        jar: its content.

    Raises:
        ArchiveError: they cannot be written. An archive that was there is there still, unless its jar was another one.
    """
    whole = os.pathsep.join([str(archive.jar), *class_path])
    try:
        if not archive.jar.is_file() or archive.jar.read_bytes() != jar:
            archive.classes.unlink(missing_ok=True)
            write_whole(archive.jar, jar, mode=0o644)
        with tempfile.TemporaryDirectory(dir=archive.folder) as unfinished:
            made = Path(unfinished, archive.classes.name)
            used = (f"-XX:SharedArchiveFile={made}", _AS_JOBS, "-cp", whole)
            _run(java, "-Xshare:dump", f"-XX:SharedClassListFile={listed}", *used)
            _run(java, "-Xshare:on", *used, "-version")
            made.chmod(0o644)
            with made.open("rb") as file:
                os.fsync(file.fileno())
            size = str(made.stat().st_size).encode()
            made.replace(archive.classes)
            write_whole(archive.size, size, mode=0o644)
    except OSError as error:
        raise ArchiveError(f"the archive of Spark's classes cannot be written: {error}") from error


def _run(*command: str | Path) -> None:
    """Run a JVM.

    Raises:
        ArchiveError: it fails. The message has its last line.
    """
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=_DUMP_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ArchiveError(f"Java has not written the archive within {_DUMP_SECONDS} s") from error
    if done.returncode:
        lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
        raise ArchiveError(f"Java has not written the archive, and ended with status {done.returncode}: {lines[-1] if lines else ''}")
