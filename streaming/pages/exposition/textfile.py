"""The page as a file for the textfile collector of Prometheus' node_exporter."""

import os
from pathlib import Path

from streaming.common.whole_files import write_whole
from streaming.errors import UsageError


def require_place(path: Path) -> None:
    """A file can be put there, and nothing that is no file is put away for it.

    Raises:
        UsageError: no directory is above it, or a device, a pipe or a socket is there: a rename would take the place of /dev/null.
    """
    if not path.absolute().parent.is_dir():
        raise UsageError(f"--textfile {path}: the directory {path.absolute().parent} does not exist")
    if path.exists() and not path.is_file():
        raise UsageError(f"--textfile {path}: it is no regular file, and would be replaced by one; name a file that ends with .prom")


def write_textfile(path: Path, page: bytes) -> None:
    """Write ``page`` (text format 0.0.4) to ``path``: every reader finds the old page or the new one, whole.

    Raises:
        UsageError: the file cannot be written there, as for ``require_place``.
    """
    require_place(path)
    # Hidden and without .prom, the only ending that the collector reads.
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write_whole(path, page, unfinished, mode=0o666)  # for a node exporter, which is another user
    except OSError as error:
        raise UsageError(f"--textfile {path}: {error.strerror}; name a file in a directory that exists and can be written") from error
