"""Writes checkpoints as Spark does, for tests that need no query."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

Offsets = Mapping[str, Mapping[int, int]]


class Written:
    """A checkpoint in a directory; the times of its files are those that are given, in seconds."""

    def __init__(self, directory: Path, query_id: str = "q1") -> None:
        self.directory = directory
        for folder in ("offsets", "commits"):
            (directory / folder).mkdir(parents=True, exist_ok=True)
        (directory / "metadata").write_text(json.dumps({"id": query_id}))

    def plan(self, number: int, *sources: Offsets | str, at: float = 0) -> None:
        """Plan a micro-batch."""
        lines = [each if isinstance(each, str) else json.dumps(each) for each in sources]
        self._write(f"offsets/{number}", "\n".join(["v1", "{}", *lines]), at)

    def commit(self, number: int, at: float = 0) -> None:
        """Commit it."""
        self._write(f"commits/{number}", 'v1\n{"nextBatchWatermarkMs":0}', at)

    def both(self, number: int, *sources: Offsets | str, at: float = 0) -> None:
        """Plan and commit one."""
        self.plan(number, *sources, at=at)
        self.commit(number, at)

    def tear(self, path: str, size: int = 5) -> None:
        """Cut off a file, as a crash may."""
        os.truncate(self.directory / path, size)

    def _write(self, path: str, text: str, at: float) -> None:
        file = self.directory / path
        file.write_text(text)
        os.utime(file, (at, at))


CHECKPOINTS = Path(__file__).parents[1] / "data" / "spark_checkpoints"
