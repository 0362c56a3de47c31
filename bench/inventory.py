"""Inventories of many logs with many segments each, and what the rules make of them.

Left out: the watcher's own start (`start`), a cold page cache, Spark.
"""

import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from bench.measuring import Bounds, show, timed
from streaming.broker.disk.log_inventory import Inventory, LogInventory
from streaming.broker.disk.logdirs import list_partitions, open_log_dirs
from streaming.cluster.view.value_matrix import NOTHING_CARRIED
from streaming.rules.cleaning import CompactionRule
from streaming.rules.config_values import topic_configs
from streaming.rules.inventory_changes import listed
from streaming.rules.limits import effective_limits
from streaming.rules.log_state import LogState
from streaming.rules.retention_rule import LogFacts, RetentionRule, SegmentColumns
from tests.builders import NOW, batch, log_dir, partition

T = TypeVar("T")

SEGMENTS = 20
BATCHES = 40


def run(bounds: Bounds) -> None:
    """CPU seconds of a first look, of looks at logs in which nothing happens, of telling them, and of the rules over all of them."""
    with tempfile.TemporaryDirectory(prefix="segtail-bench-") as directory:
        path = _logs(Path(directory), bounds.mostly_idle)
        (opened,) = open_log_dirs([path])
        partitions = list_partitions(opened)
        looking = Inventory()
        rows: list[tuple[str, str]] = []

        def check() -> list[LogInventory]:
            return [seen for seen in map(looking.look, partitions) if seen is not None]

        seen = _timed(rows, "first look at all logs, at a start", check)
        _timed(rows, "a look that also checks a time index of each", check)
        for _ in range(SEGMENTS):
            check()
        again = _timed(rows, "a look at logs in which nothing has happened", check)
        assert all(one is other for one, other in zip(again, check(), strict=True))

        reported = _timed(rows, "lists of all logs as they are published: in the agent", lambda: [one.segments.tobytes() for one in seen])
        states = [LogState(agent="a", broker=1, topic="bench", partition=item, topic_id="") for item in range(len(reported))]
        _timed(rows, "in the fold, where each is new", lambda: [listed(*each) for each in zip(states, reported, strict=True)])
        known = [replace(state, segments=one) for state, one in zip(states, reported, strict=True)]
        _timed(rows, "in the fold, where it is known", lambda: [listed(*each) for each in zip(known, reported, strict=True)])
        _timed(rows, "in the table", lambda: [NOTHING_CARRIED.updated(None, None, one) for one in reported])
        facts = _timed(rows, "all logs as the rules want them", lambda: [_facts(one) for one in seen])
        logs = _timed(rows, "their columns, where any of them has changed", lambda: SegmentColumns(facts))
        retention = _timed(rows, "what does not depend on the clock", lambda: (RetentionRule(logs), CompactionRule(logs)))
        _timed(rows, "the rules at a moment, at each scrape", lambda: [rule.at(NOW) for rule in retention])
        show(f"Inventory of {len(partitions):,} logs with {SEGMENTS} segments each", ("", "CPU seconds"), rows)


def _timed(rows: list[tuple[str, str]], what: str, work: Callable[[], T]) -> T:
    seconds, done = timed(work)
    rows.append((what, f"{seconds:.3f}"))
    return done


def _facts(seen: LogInventory) -> LogFacts:
    return LogFacts(
        segments=seen.segments,
        log_start_offset=seen.log_start_offset(),
        log_end_offset=seen.end_offset,
        high_watermark=seen.end_offset,
        last_stable_offset=seen.end_offset,
        cleaner_checkpoint=seen.cleaner_checkpoint,
        oldest_record_ms=seen.oldest_record_ms,
        limits=_LIMITS,
    )


_LIMITS = effective_limits("bench", topic_configs([("cleanup.policy", "compact,delete"), ("min.compaction.lag.ms", "1000")]))


def _logs(directory: Path, count: int) -> Path:
    """A log dir in which all logs are the same files: names that lead to one file cost a file system little."""
    made = log_dir(directory)
    first = partition(made, "bench", 0, index_interval_bytes=0)
    for _ in range(SEGMENTS - 1):
        first.append(*(batch(5) for _ in range(BATCHES)))
        first.roll()
    first.append(batch(5))
    first.close()
    files = [file for file in first.directory.iterdir() if file.is_file()]
    for number in range(1, count):
        copy = made.path / f"bench-{number}"
        copy.mkdir()
        for file in files:
            os.link(file, copy / file.name)
    made.release()
    return made.path
