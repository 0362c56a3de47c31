"""The page as a file for the textfile collector of Prometheus' node_exporter."""

import os
from pathlib import Path

from streaming.common.whole_files import write_whole
from streaming.errors import UsageError


def write_textfile(path: Path, page: bytes) -> None:
    """Write ``page`` (text format 0.0.4) to ``path``: every reader finds the old page or the new one, whole.

    Raises:
        UsageError: the file cannot be written there.
    """
    # Hidden and without .prom, the only ending that the collector reads.
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write_whole(path, page, unfinished, mode=0o666)  # for a node exporter, which is another user
    except OSError as error:
        raise UsageError(f"--textfile {path}: {error.strerror}; name a file in a directory that exists and can be written") from error
