"""Whole log dirs of real clusters, frozen, beside what the brokers and Kafka's own tools answered at that moment."""

import tarfile
from dataclasses import dataclass
from pathlib import Path

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


def unpack(name: str, directory: Path) -> Frozen:
    """Put one of them below a directory; files keep their times."""
    with tarfile.open(LOG_DIRS / f"{name}.tar.gz") as packed:
        unpacking.unpack(packed, directory)
    lines = (LOG_DIRS / f"{name}.tsv").read_text().splitlines()
    return Frozen(tuple(sorted(directory.glob("n*/d*"))), tuple(tuple(line.split("\t")) for line in lines))
