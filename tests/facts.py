"""The truth about simulated logs, which they have written: what a test compares with what was read."""

from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from streaming.simulator.broker import SimulatedBroker
from streaming.simulator.log import FactTotals, PartitionLog, totals_of


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


def facts_of(log: PartitionLog) -> Facts:
    """The facts of a log now."""
    entries = [entry for segment in log.segments for entry in segment.entries]
    return Facts(
        directory=log.directory,
        topic=log.topic,
        partition=log.partition,
        topic_id=log.topic_id,
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        last_stable_offset=log.last_stable_offset(),
        max_timestamp=max((segment.max_timestamp for segment in log.segments), default=-1),
        segments=len(log.segments),
        appended=log._appended,
        held=sum(map(totals_of, entries), FactTotals()),
        committed=log._committed,
        aborted=log._aborted,
        empty_markers=log._empty_markers,
        open_transactions=log._producers.open_transactions(),
    )


def facts_of_all(broker: SimulatedBroker) -> tuple[Facts, ...]:
    """The facts of every partition, the metadata log included, ordered by topic and partition. Not while `run` runs."""
    logs = (*broker._logs.values(), broker._controller.log)
    return tuple(facts_of(log) for log in sorted(logs, key=lambda log: (log.topic, log.partition)))
