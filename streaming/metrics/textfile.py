"""The page as a file for the textfile collector of Prometheus' node_exporter."""

import os
from pathlib import Path

from streaming.errors import UsageError


def write_textfile(path: Path, page: bytes) -> None:
    """Write ``page`` (text format 0.0.4) to ``path``: every reader finds the old page or the new one, whole.

    Raises:
        UsageError: the file cannot be written there.
    """
    # Hidden and without .prom, the only ending that the collector reads.
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        try:
            _write_through(unfinished, page)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
        _sync_directory(path.parent)
    except OSError as error:
        raise UsageError(f"--textfile {path}: {error.strerror}; name a file in a directory that exists and can be written") from error


def _write_through(path: Path, page: bytes) -> None:
    with path.open("wb") as file:
        file.write(page)
        file.flush()
        os.fsync(file.fileno())


def _sync_directory(directory: Path) -> None:
    """Make the rename itself survive a loss of power."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
