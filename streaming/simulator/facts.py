"""The facts of a simulated log: kept while writing, so that an observer can be compared with it."""

from dataclasses import dataclass
from pathlib import Path
from uuid import UUID


@dataclass(frozen=True, slots=True)
class FactTotals:
    """Bytes of all batches; batches and records of data alone."""

    bytes: int = 0
    batches: int = 0
    records: int = 0

    def __add__(self, other: "FactTotals") -> "FactTotals":
        return FactTotals(self.bytes + other.bytes, self.batches + other.batches, self.records + other.records)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One partition at rest.

    ``appended`` counts everything since the log was made, ``held`` what its segments hold now. ``open_transactions`` are
    (producer id, first offset), oldest first.
    """

    directory: Path
    topic: str
    partition: int
    topic_id: UUID | None
    log_start_offset: int
    log_end_offset: int
    last_stable_offset: int
    max_timestamp: int
    segments: int
    appended: FactTotals
    held: FactTotals
    committed: int
    aborted: int
    empty_markers: int
    open_transactions: tuple[tuple[int, int], ...]
