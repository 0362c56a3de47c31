"""What an agent's start costs by the number of its logs: from nothing, and with the cache of one before.

The agent's inside in a process of its own (`bench.host`), from when its code is loaded until everything is published that is there.
Each log has a closed segment and an active one of eight small batches each, with indexes, a snapshot of producers and a leader. Ladders
are begun by a thread of their own, which is counted apart. Memory is proportional (PSS), after both.

Left out: what a live broker rewrites meanwhile (`scale`); logs with many or long segments, whose bytes cost besides (`inventory`,
`ladder`); transactions; loading the code, which takes a part of a second; a cold page cache; answering a job.
"""

import tempfile
from pathlib import Path

from bench.host import HostProcess
from bench.measuring import Bounds, show
from bench.partitions import Partitions
from tests.scratch import scratch

BATCH_BYTES = 1024
EARLIER = 8
"""Batches of each segment."""


def run(bounds: Bounds) -> None:
    """Print one table."""
    rows = []
    for count in (bounds.mostly_idle // 5, bounds.mostly_idle):
        with (
            scratch() as memory,
            tempfile.TemporaryDirectory(prefix="segtail-bench-") as disk,
            Partitions(Path(memory, "log"), count, BATCH_BYTES, earlier=EARLIER) as logs,
        ):
            cache = Path(disk, "cache")
            rows += [(f"{count:,} logs, {how}", *begin(logs, cache)) for how in ("from nothing", "with a cache")]
    heads = ("", "CPU s", "ms a log", "seconds", "ladders' CPU s", "PSS MB", "of it a log, KB", "cache MB")
    show("an agent's start", heads, rows)


def begin(logs: Partitions, cache: Path) -> tuple[str, ...]:
    """Start an agent, and end it as it is ended by hand."""
    with HostProcess(logs.path, cache) as host:
        before = host.holds().proportional_bytes
        parts = host.start(), host.catch_up()
        ladders = host.do("climb")
        after = host.holds().proportional_bytes
        size = sum(each.stat().st_size for each in cache.rglob("*") if each.is_file())
        host.do("close")
    cpu, seconds = sum(each.cpu_seconds for each in parts), sum(each.seconds for each in parts)
    return (
        f"{cpu:.1f}",
        f"{cpu / len(logs) * 1e3:.2f}",
        f"{seconds:.1f}",
        f"{ladders.cpu_seconds:.1f}",
        f"{after / 1e6:.0f}",
        f"{(after - before) / len(logs) / 1e3:.1f}",
        f"{size / 1e6:.1f}",
    )
