"""The files of a checkpoint on any file system of Hadoop's, by Spark's JVM."""

import re
from collections.abc import Callable
from contextlib import closing
from typing import Any, NoReturn

from py4j.protocol import Py4JError, Py4JJavaError

from streaming.queries.formats import LARGEST_BYTES
from streaming.queries.query_look import FileEntry
from streaming.spark.query.failure import reason

_STATUS = re.compile(r"\{path=(?P<path>[^;]*); isDirectory=false; .*?modification_time=(?P<modified>\d+);")
"""Of `FileStatus.toString`, also of those that extend it."""

_NOT_THERE = ("java.io.FileNotFoundException", "java.nio.file.NoSuchFileException")


class HadoopFiles:
    """As `CheckpointFiles`. Each call is a few calls into the JVM, however many files there are.

    Args:
        uri: of the checkpoint.
        session: Spark's JVM and its `org.apache.hadoop.conf.Configuration`; None while Spark is not there.
    """

    def __init__(self, uri: str, session: Callable[[], tuple[Any, Any] | None]) -> None:
        self._uri = uri.rstrip("/")
        self._session = session

    def entries(self, folder: str) -> list[FileEntry]:
        """As `CheckpointFiles.entries`."""
        try:
            jvm, files, path = self._open(folder)
            listed = str(jvm.java.util.Arrays.toString(files.listStatus(path)))
        except (Py4JError, OSError) as error:
            if _is_missing(error):
                return []
            _refuse(error)
        return [FileEntry(each["path"].rpartition("/")[2], int(each["modified"])) for each in _STATUS.finditer(listed)]

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
    raise OSError(reason(error)) from error
