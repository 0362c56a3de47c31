"""Whole log dirs of real clusters, frozen, beside what the brokers and Kafka's own tools answered at that moment."""

import os
import shutil
import tarfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from streaming.kafka.formats.names import HIGH_WATERMARK_CHECKPOINT, OFFSET_CHECKPOINTS
from tests import unpacking

LOG_DIRS = Path(__file__).parent / "data" / "log_dirs"
NAMES = tuple(sorted(path.stem for path in LOG_DIRS.glob("*.tsv")))


@dataclass(frozen=True)
class Frozen:
    """One of them. ``rows`` are the answers: kind, then fields, all text."""

    log_dirs: tuple[Path, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def frozen_ms(self) -> int:
        return int(self.of("frozen")[0][0])

    def of(self, kind: str) -> list[tuple[str, ...]]:
        """The answers of one kind."""
        return [row[1:] for row in self.rows if row[0] == kind]


def as_running(log_dirs: Iterable[Path]) -> None:
    """Let it be not known whether brokers run whose log dirs were saved without ``.lock``: where nothing is written, nobody runs.

    The time is ahead of the clock, so that no test is too slow for it.
    """
    ahead = time.time() + 86_400
    for path in (log_dir / name for log_dir in log_dirs for name in OFFSET_CHECKPOINTS if name != HIGH_WATERMARK_CHECKPOINT):
        if path.exists():
            os.utime(path, (ahead, ahead))


def unpack(name: str, directory: Path) -> Frozen:
    """Put one of them below a directory, as of running brokers; files keep their times."""
    with tarfile.open(LOG_DIRS / f"{name}.tar.gz") as packed:
        unpacking.unpack(packed, directory)
    lines = (LOG_DIRS / f"{name}.tsv").read_text().splitlines()
    log_dirs = tuple(sorted(directory.glob("n*/d*")))
    as_running(log_dirs)
    return Frozen(log_dirs, tuple(tuple(line.split("\t")) for line in lines))


FROZEN = {"overdue": 1795145309688, "deletions": 1795145276600, "node_down": 1795145961800}
"""About when each was copied, Unix milliseconds."""


def dirs(case: Path, *nodes: int) -> str:
    chosen = [case / f"n{node}" for node in nodes] or sorted(case.glob("n*"))
    return ",".join(str(path) for node in chosen for path in sorted(node.glob("d*")))


def properties(case: Path) -> str:
    return ",".join(map(str, sorted(case.glob("n*/server.properties"))))


@pytest.fixture
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of the log dirs of a case, the zeros of its preallocated segment put back."""
    copied = tmp_path / "case"
    shutil.copytree(LOG_DIRS / request.param, copied)
    for segment in copied.glob("n1/*/prealloc-A-0/*.log"):
        os.truncate(segment, 2 << 20)
    as_running(copied.glob("n*/d*"))
    return copied
