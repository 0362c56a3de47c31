"""What an agent costs while each of many partitions is appended to, and while none is: every log is looked at once a second.

The agent's inside in one process (`bench.host`), no JVM: its polls, with leaders, the journal, the status of its host and what
ladders note, and its ladders' own thread, every five seconds. Appends do not count. The broker's checkpoints are written at their time;
batches are those of clients that are not idempotent, of one idempotent producer a partition, and of twelve.

Left out: reading the journal, and answering a job; transactions, segments that roll, several leader epochs; a cold page cache.
"""

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.host import Host
from bench.measuring import Bounds, show
from bench.partitions import Partitions
from tests.watcher.journalled import events_of

BYTES_A_SECOND = 96 << 10
"""Of each partition."""

LOADS = ((0, 6), (1, 6), (12, 12))
"""Producers of a partition, and in how many batches a second their bytes come."""

LADDERS_SECONDS = 5
MEGABYTES = 100
"""The load for which the share of a core is given."""


@dataclass(slots=True)
class _Spent:
    """CPU seconds of polls and of the ladders' thread; the ranges that were found, and their bytes."""

    polls: float = 0.0
    ladders: float = 0.0
    ranges: int = 0
    bytes: int = 0


def run(bounds: Bounds) -> None:
    """Print one table."""
    rows = []
    for producers, batches in LOADS:
        with (
            tempfile.TemporaryDirectory(prefix="segtail-bench-") as scratch,
            Partitions(Path(scratch, "log"), bounds.active, BYTES_A_SECOND // batches, producers) as logs,
        ):
            grown, still = _measure(logs, Path(scratch, "journal"), batches, bounds.seconds)
        rows.append(
            _row(f"{producers or 'none'}: {batches} batches of {BYTES_A_SECOND // batches >> 10} KB", len(logs), bounds, grown, still)
        )
    title = f"an agent's inside on {bounds.active:,} partitions, each of which gets {BYTES_A_SECOND >> 10} KB a second"
    heads = (
        "idempotent producers a partition",
        "us a log and look",
        f"% of a core at {MEGABYTES} MB/s",
        "ladders' thread",
        "us a still log",
    )
    show(title, heads, rows)


def _row(name: str, logs: int, bounds: Bounds, grown: _Spent, still: _Spent) -> tuple[str, ...]:
    rounds = max(1, round(bounds.seconds))
    share, ladders = ((each / grown.bytes * MEGABYTES * 1e6) for each in (grown.polls, grown.ladders))
    return (
        name,
        f"{grown.polls / grown.ranges * 1e6:.0f}",
        f"{100 * (share + ladders):.1f}",
        f"{100 * ladders:.1f}",
        f"{still.polls / (rounds * logs) * 1e6:.1f}",
    )


def _measure(logs: Partitions, journal: Path, batches: int, seconds: float) -> tuple[_Spent, _Spent]:
    """While they grow, and after it while they do not."""
    host = Host(logs.path, journal)
    host.catch_up()
    host.climb()
    _follow(host, logs, batches, 1)
    host.settle()
    _follow(host, logs, batches, seconds / 2)
    grown = _follow(host, logs, batches, seconds)
    _follow(host, logs, 0, seconds / 2)  # last high watermarks
    still = _follow(host, logs, 0, seconds)
    host.close()
    return grown, still


def _follow(host: Host, logs: Partitions, batches: int, seconds: float) -> _Spent:
    """Append and poll once a second."""
    spent, seq, due = _Spent(), host.journal.end().seq, time.monotonic()
    for number in range(max(1, round(seconds))):
        for item in range(len(logs) * batches):
            logs.append(item % len(logs))
        logs.keep_house(time.monotonic())
        spent.polls += _cpu_of(host.poll)
        if number % LADDERS_SECONDS == 0:
            spent.ladders += _cpu_of(host.climb)
        seq = _count(host, seq, spent)
        due += 1.0
        time.sleep(max(0.0, due - time.monotonic()))
    return spent


def _cpu_of(work: Callable[[], object]) -> float:
    before = time.process_time()
    work()
    return time.process_time() - before


def _count(host: Host, seq: int, spent: _Spent) -> int:
    """Add what was published after ``seq``; returns up to where."""
    upto = host.journal.end().seq
    for _, event in events_of(host.journal, seq, upto):
        if event.batches:
            if event.sequence_gaps or not event.leads:
                raise AssertionError(f"these appends are not those of a live broker: {event}")
            spent.ranges += 1
            spent.bytes += event.bytes
    return upto
