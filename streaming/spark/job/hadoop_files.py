"""The files of a checkpoint on any file system of Hadoop's, by Spark's JVM."""

from collections.abc import Callable
from contextlib import closing
from typing import Any, NoReturn

from py4j.protocol import Py4JError, Py4JJavaError

from streaming.queries.formats import LARGEST_BYTES
from streaming.queries.query_look import FileEntry
from streaming.spark.query.failure import reason

_RENEWED = 3
"""The times of so many files with the largest numbers are asked for again: others are not written any more, and each time is a call."""

_NOT_THERE = ("java.io.FileNotFoundException", "java.nio.file.NoSuchFileException")


class HadoopFiles:
    """As `CheckpointFiles`. Each look is some twenty calls into the JVM, however many files there are; the first one asks for all times.

    Args:
        uri: of the checkpoint.
        session: Spark's JVM and its `org.apache.hadoop.conf.Configuration`; None while Spark is not there.
    """

    def __init__(self, uri: str, session: Callable[[], tuple[Any, Any] | None]) -> None:
        self._uri = uri.rstrip("/")
        self._session = session
        self._times: dict[str, dict[int, int]] = {}

    def entries(self, folder: str) -> list[FileEntry]:
        """As `CheckpointFiles.entries`, of the files with a number alone."""
        try:
            jvm, files, path = self._open(folder)
            statuses = files.listStatus(path)
            # no text of a status is used: that of ViewFs has no path in it
            paths = str(jvm.scala.collection.mutable.ArraySeq.make(jvm.org.apache.hadoop.fs.FileUtil.stat2Paths(statuses)).mkString("\n"))
            names = [each.rpartition("/")[2] for each in paths.split("\n")]
            known, self._times[folder] = self._times.get(folder, {}), {}
            numbers = sorted(((int(name), at) for at, name in enumerate(names) if name.isascii() and name.isdigit()), reverse=True)
            for place, (number, at) in enumerate(numbers):
                renewed = place < _RENEWED or number not in known
                self._times[folder][number] = int(statuses[at].getModificationTime()) if renewed else known[number]
        except (Py4JError, OSError) as error:
            if _is_missing(error):
                return []
            _refuse(error)
        return [FileEntry(str(number), modified_ms) for number, modified_ms in self._times[folder].items()]

    def content(self, path: str) -> bytes:
        """As `CheckpointFiles.content`."""
        try:
            _, files, at = self._open(path)
            with closing(files.open(at)) as stream:
                return bytes(stream.readNBytes(LARGEST_BYTES + 1))
        except (Py4JError, OSError) as error:
            if _is_missing(error):
                raise FileNotFoundError(f"{path} is not there") from error
            _refuse(error)

    def _open(self, path: str) -> tuple[Any, Any, Any]:
        session = self._session()
        if session is None:
            raise OSError("Spark is being started")
        jvm, configuration = session
        at = jvm.org.apache.hadoop.fs.Path(f"{self._uri}/{path}")
        return jvm, at.getFileSystem(configuration), at


def _is_missing(error: Exception) -> bool:
    return isinstance(error, Py4JJavaError) and error.java_exception.getClass().getName() in _NOT_THERE


def _refuse(error: Exception) -> NoReturn:
    """Say what the JVM says: the class of its exception, and the first line of its message."""
    why = str(error.java_exception.toString()) if isinstance(error, Py4JJavaError) else reason(error)
    raise OSError(why.partition("\n")[0]) from error
