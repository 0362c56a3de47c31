"""What the fold costs alone, by columns and row by row: CPU milliseconds of a micro-batch, without Spark.

Left out: Spark, which carries the rows and the state, and what it stores, and the table and page that the rows go to.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import Any

from streaming.broker.journal.cutting import cut, overwritten_from
from streaming.common.event_row import EVENTS, EventRow
from streaming.common.rows import Kind, Step, unpack_rows
from streaming.rules.shard import FoldResult, fold_by_columns, fold_by_rows
from streaming.rules.shard_state import ShardState
from tests.bench.bounds import Bounds
from tests.bench.table import show
from tests.events import appended, row
from tests.rules.histories import listing, packed, recall, steps

AGENTS = 3
RANGES = 1_000
ROUNDS = 7
RECORDS = 10
LISTED = listing(*range(8))

Fold = Callable[..., FoldResult]


def run(_: Bounds) -> None:
    """Print two tables."""
    columns = ("", "row by row", "by columns", "times")
    cases = [(logs, shards, every) for logs in (1_000, 10_000) for shards in (4, 64) for every in (0, 10)]
    named = [f"{logs:,} logs, {shards} shards, {'every tenth' if every else 'none'} transactional" for logs, shards, every in cases]
    show(
        f"a micro-batch of {RANGES:,} ranges from {AGENTS} agents; CPU milliseconds, median of {ROUNDS}",
        columns,
        [(name, *_cost(*case)) for name, case in zip(named, cases, strict=True)],
    )
    show(
        f"a recall of 10,000 logs of {AGENTS} agents; the same",
        columns,
        [(f"{shards} shards", *_cost(10_000, shards, 0, recall=True)) for shards in (4, 64)],
    )


def _cost(logs: int, shards: int, transactional: int, *, recall: bool = False) -> tuple[str, str, str]:
    by_rows, by_columns = (_median(fold, logs, shards, transactional, recall) for fold in (fold_by_rows, fold_by_columns))
    return f"{by_rows:.1f}", f"{by_columns:.1f}", f"{by_rows / by_columns:.1f}"


def _median(fold: Fold, logs: int, shards: int, transactional: int, recall: bool) -> float:
    values: list[bytes | None] = [None] * shards
    lists: list[bytes | None] = [None] * shards
    history = _History(logs, shards, transactional)

    def turn(rows: Iterator[tuple[int, EventRow]]) -> float:
        of: dict[int, list[EventRow]] = {}
        for shard, each in rows:
            of.setdefault(shard, []).append(each)
        packs = {shard: packed(some) for shard, some in of.items()}
        begun = time.process_time()
        for shard, pack in packs.items():
            before = ShardState(values[shard], partial(lists.__getitem__, shard))
            folded = fold(shard, before, [unpack_rows(pack, EVENTS)], cut=cut, overwritten_from=overwritten_from)
            values[shard] = values[shard] if folded.value is None else folded.value
            lists[shard] = lists[shard] if folded.lists is None else folded.lists
        return (time.process_time() - begun) * 1e3

    turn(history.begins())
    turn(history.ranges())
    return median(turn(history.recall() if recall else history.ranges()) for _ in range(ROUNDS))


class _History:
    """What the agents tell; every so many-th log has transactions, and an agent is a broker."""

    def __init__(self, logs: int, shards: int, transactional: int) -> None:
        self._logs, self._shards, self._transactional = logs, shards, transactional
        self._ends = [0] * logs
        self._seq = 1
        self._next = 0

    def _reported(self, log: int, part: int = 0) -> dict[str, Any]:
        agent = log % AGENTS
        return {"agent": f"a{agent}", "journal": f"j{agent}", "broker": agent, "partition": log, "seq": self._seq, "part": part}

    def begins(self) -> Iterator[tuple[int, EventRow]]:
        for log in range(self._logs):
            yield log % self._shards, row(Kind.APPEARED, **self._reported(log, log), next_offset=0)
            yield log % self._shards, row(Kind.FOUND, **self._reported(log, self._logs + log), segments=LISTED)

    def ranges(self) -> Iterator[tuple[int, EventRow]]:
        for _ in range(RANGES):
            self._seq += 1
            log, self._next = self._next, (self._next + 1) % self._logs
            end = self._ends[log]
            self._ends[log] = end + RECORDS
            reported = None
            if self._transactional and not log % self._transactional:
                reported = steps((Step.DATA, log, end, end + RECORDS - 1), (Step.COMMIT, log, end + RECORDS - 1, end + RECORDS))
            yield (
                log % self._shards,
                appended(
                    base_offset=end,
                    next_offset=end + RECORDS,
                    leads=1,
                    log_epoch=3,
                    high_watermark=end,
                    transactions=reported,
                    **self._reported(log),
                ),
            )

    def recall(self) -> Iterator[tuple[int, EventRow]]:
        for shard in range(self._shards):
            yield shard, recall()
