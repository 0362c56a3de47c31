"""The files of a checkpoint in a directory of this machine: no JVM is needed for it."""

import os
from pathlib import Path

from streaming.queries.formats import LARGEST_BYTES
from streaming.queries.query_look import FileEntry


class LocalCheckpoint:
    """As `CheckpointFiles`. Nothing in the directory is written or locked."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def entries(self, folder: str) -> list[FileEntry]:
        """As `CheckpointFiles.entries`. What goes while it is listed is left out."""
        found = []
        try:
            with os.scandir(self._directory / folder) as entries:
                for entry in entries:
                    try:
                        found.append(FileEntry(entry.name, entry.stat().st_mtime_ns // 1_000_000))
                    except FileNotFoundError:
                        continue
        except FileNotFoundError:
            return []
        return found

    def content(self, path: str) -> bytes:
        """As `CheckpointFiles.content`."""
        with (self._directory / path).open("rb") as file:
            return file.read(LARGEST_BYTES + 1)
