"""What the agent's watcher costs while each of many partitions is appended to: every log is looked at once a second.

One process, no JVM. Only the watcher's turns count, neither the appends nor the reading of the journal.
"""

import tempfile
import time
from pathlib import Path

from tests.bench.bounds import Bounds
from tests.bench.partitions import Partitions, now_ms
from tests.bench.table import show
from tests.clocks import Clock
from tests.watcher.journalled import events_of
from tests.watcher.station import Station

BATCHES = 6
BATCH_BYTES = 16 << 10
_READER = "bench"


class _Wall(Clock):
    """The time of day, for a directory's own time is compared with it."""

    def __call__(self) -> int:
        return now_ms()


def run(bounds: Bounds) -> None:
    """Print one table."""
    with (
        tempfile.TemporaryDirectory(prefix="segtail-bench-") as scratch,
        Partitions(Path(scratch, "log"), bounds.active, BATCH_BYTES) as logs,
    ):
        station = Station(logs.path, journal=Path(scratch, "journal"), clock=_Wall())
        station.begin("active", _READER)
        while station.watcher.poll(set()):
            pass
        _follow(station, logs, bounds.seconds / 2)
        cpu, ranges, size = _follow(station, logs, bounds.seconds)
        station.close()
    title = f"the watcher on {len(logs):,} partitions, to each of which {BATCHES} batches of {BATCH_BYTES >> 10} KB are appended a second"
    rows = [
        ("a log and look", f"{cpu / ranges * 1e6:.0f} us"),
        ("100 MB of appends", f"{cpu / size * 1e8 * 1e3:.0f} ms"),
    ]
    show(title, ("CPU of", ""), rows)


def _follow(station: Station, logs: Partitions, seconds: float) -> tuple[float, int, int]:
    """Append and turn for so long; CPU seconds of the turns, how many ranges they found, and of how many bytes."""
    cpu, ranges, size = 0.0, 0, 0
    seq = station.journal.reach(0, None).seq
    for _ in range(round(seconds)):
        for _ in range(BATCHES):
            for item in range(len(logs)):
                logs.append(item)
        before = time.process_time()
        station.watcher.poll(set())
        cpu += time.process_time() - before
        upto = station.journal.reach(seq, None).seq
        appended = [event for _, event in events_of(station.journal, seq, upto) if event.batches]
        ranges, size, seq = ranges + len(appended), size + sum(event.bytes for event in appended), upto
    return cpu, ranges, size
