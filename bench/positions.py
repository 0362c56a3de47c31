"""What a stream costs by the number of its logs: its offset, and a plan when some of them have grown.

CPU seconds of this process, medians of five. Each log has a closed segment and an active one of eight small batches each.

Left out: reading what was planned (`scan`, `backlog`), Spark, a cold page cache, logs with many segments.
"""

import json
import os
from functools import partial
from pathlib import Path

from bench.measuring import Bounds, median, show, timed
from bench.partitions import Partitions
from streaming.broker.disk.logdirs import Partition, open_log_dirs
from streaming.broker.excerpts.position_plan import KnownLogs, PositionPlanner
from streaming.broker.protocol.consumer_messages import EVERYTHING_SELECTED
from streaming.common.log_positions import LogName, Position, decode, encode
from streaming.common.start_from import StartFrom
from tests.scratch import scratch

OFFSETS = (12, 1_000, 10_000, 200_000)
"""So many logs has an offset."""

PARTITIONS_A_TOPIC = 20
EARLIER, BATCH_BYTES = 8, 1024
LONG_AGO_NS = 1


def run(bounds: Bounds) -> None:
    """Print two tables."""
    show("an offset of Spark, by its logs", ("", "KB of JSON", "ms to write", "ms to read"), [_offset(count) for count in OFFSETS])
    with scratch() as memory, Partitions(Path(memory, "log"), bounds.mostly_idle, BATCH_BYTES, earlier=EARLIER) as logs:
        rows = _plans(logs, bounds)
    show(f"a plan of {bounds.mostly_idle:,} logs", ("", "ms"), rows)


def _offset(count: int) -> tuple[str, ...]:
    positions = {
        LogName(f"topic-{number // PARTITIONS_A_TOPIC}", number % PARTITIONS_A_TOPIC): Position(
            f"{number // PARTITIONS_A_TOPIC:022d}", number * 977, ((number % 7, number * 7),)
        )
        for number in range(count)
    }
    written = json.dumps(encode(positions))
    writing, reading = median(lambda: json.dumps(encode(positions))), median(lambda: decode(json.loads(written)))
    return f"{count:,} logs", f"{len(written) / 1e3:.1f}", f"{writing * 1e3:.1f}", f"{reading * 1e3:.1f}"


def _plans(logs: Partitions, bounds: Bounds) -> list[tuple[str, ...]]:
    log_dirs, known = open_log_dirs([logs.path]), KnownLogs()

    def listed() -> list[tuple[Partition, int]]:
        return known.partitions(log_dirs, EVERYTHING_SELECTED)

    for partition, _ in listed():
        os.utime(partition.path, ns=(LONG_AGO_NS, LONG_AGO_NS))  # as when nothing was rolled or deleted for seconds
    listing = f"{median(listed) * 1e3:.0f}"
    planner = PositionPlanner(StartFrom.EARLIEST, lambda opened: opened.end, known=known)
    seconds, at = timed(partial(planner.plan, listed(), {}, None, first=True))
    rows = [("listing them, before each", listing), ("the first one", f"{seconds * 1e3:.0f}")]
    for grown in (0, 12, bounds.active, bounds.mostly_idle):
        found = []
        for _ in range(5):
            for item in range(grown):
                logs.append(item)
            seconds, at = timed(partial(planner.plan, listed(), at, None, first=False))
            found.append(seconds)
        rows.append((f"{grown:,} have grown" if grown else "none has grown", f"{sorted(found)[2] * 1e3:.0f}"))
    return rows
