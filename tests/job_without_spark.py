"""A job with all of its parts but Spark: ``python -m tests.job_without_spark segtail run ...`` takes the command line of a real one.

What Spark does in a job is little: it asks the source how far to go, reads that, groups it by shard, keeps the state of each shard, and
calls the sink. Here a loop does so, in the job's own process. So three jobs fit beside three brokers.
"""

import json
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from streaming.broker.journal.range_values import cut, overwritten_from
from streaming.common.rows import ROWS, SHARD, unpack_rows
from streaming.common.state_row import STATES
from streaming.rules.shard import fold_shard
from streaming.rules.shard_state import ShardState
from streaming.spark.job import job
from streaming.spark.source.job_options import parse_options
from streaming.spark.source.offsets import Offset
from streaming.spark.source.stream import EventStreamReader
from streaming.terminal.cli.app import run

WITHOUT_SPARK = (sys.executable, "-m", "tests.job_without_spark")
"""The command of such a job, where Spark is not what is tested: a JVM and its micro-batches take more than all the rest of a job."""

Sink = Callable[[pa.Table, int], None]


class Folding:
    """The state of all shards, as Spark keeps it."""

    def __init__(self) -> None:
        self._values: dict[int, bytes] = {}
        self._lists: dict[int, bytes] = {}

    def fold(self, packed: dict[int, list[bytes]]) -> pa.Table:
        """The rows that have changed by a micro-batch."""
        changed = []
        for shard, packs in sorted(packed.items()):
            before = ShardState(self._values.get(shard), partial(self._lists.get, shard))
            folded = fold_shard(shard, before, packs, cut=cut, overwritten_from=overwritten_from)
            if folded.value is not None:
                self._values[shard] = folded.value
            if folded.lists is not None:
                self._lists[shard] = folded.lists
            if folded.changed_rows is not None:
                changed.append(unpack_rows(folded.changed_rows, STATES))
        return pa.Table.from_batches(changed, STATES)


class Query:
    """A query that runs, with as much of `pyspark.sql.streaming.query.StreamingQuery` as a job uses."""

    def __init__(self, options: dict[str, str], sink: Sink, pause_seconds: float) -> None:
        self._reader = EventStreamReader(parse_options(options))
        self._sink, self._pause_seconds = sink, pause_seconds
        self._ended = threading.Event()
        self._failed: Exception | None = None
        self._progress: deque[dict[str, Any]] = deque(maxlen=100)  # as many as Spark remembers
        self._thread = threading.Thread(target=self._run, name="micro-batches", daemon=True)
        self._thread.start()

    @property
    def isActive(self) -> bool:  # noqa: N802
        return self._thread.is_alive()

    @property
    def lastProgress(self) -> dict[str, Any] | None:  # noqa: N802
        return next(reversed(self.recentProgress), None)

    @property
    def recentProgress(self) -> list[dict[str, Any]]:  # noqa: N802
        return [*self._progress]

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def awaitTermination(self) -> None:  # noqa: N802
        self._thread.join()
        if self._failed is not None:
            raise self._failed

    def _run(self) -> None:
        folding, at, number = Folding(), self._reader.initialOffset(), 0
        try:
            while not self._ended.wait(self._pause_seconds):
                began = time.monotonic()
                end = self._reader.latestOffset(at, self._reader.getDefaultReadLimit())
                planned = time.monotonic()
                if end == at:
                    continue
                self._sink(folding.fold(self._read(at, end)), number)
                self._progress.append(_progress(number, at, end, planned - began, time.monotonic() - began))
                self._reader.commit(end)
                at, number = end, number + 1
        except Exception as error:  # noqa: BLE001 - raised where it is waited for
            self._failed = error

    def _read(self, start: Offset, end: Offset) -> dict[int, list[bytes]]:
        packed: dict[int, list[bytes]] = {}
        for task in self._reader.partitions(start, end):
            for batch in self._reader.read(task):
                for row in batch.to_pylist():
                    packed.setdefault(row[SHARD], []).append(row[ROWS])
        return packed


def _progress(number: int, start: Offset, end: Offset, plan_seconds: float, seconds: float) -> dict[str, Any]:
    """What Spark tells of a micro-batch."""
    return {
        "batchId": number,
        "batchDuration": round(1000 * seconds),
        "durationMs": {"latestOffset": round(1000 * plan_seconds)},
        "sources": [{"startOffset": json.dumps(start), "endOffset": json.dumps(end)}],
    }


class _Writer:
    """Stands for Spark's reader and writer of streams: each call returns it, the last one starts the query."""

    def __init__(self, sink: Sink | None = None, options: dict[str, str] | None = None) -> None:
        self._sink, self._options, self._pause_seconds = sink, options or {}, 0.0

    def format(self, _: str) -> "_Writer":
        return self

    def options(self, **options: str) -> "_Writer":
        self._options = options
        return self

    def load(self) -> "_Writer":
        return self

    def folded(self, sink: Sink) -> "_Writer":
        return _Writer(sink, self._options)

    def option(self, *_: str) -> "_Writer":
        return self

    def trigger(self, processingTime: str) -> "_Writer":  # noqa: N803
        self._pause_seconds = int(processingTime.split()[0]) / 1000
        return self

    def start(self) -> Query:
        assert self._sink is not None
        return Query(self._options, self._sink, self._pause_seconds)


class NoSpark:
    """Stands for the job's Spark."""

    status = hadoop = None

    def __init__(self, **_: object) -> None:
        self.session = self
        self.readStream = _Writer()

    def connect(self) -> None:
        """There is nothing to connect to."""

    def hush(self) -> None:
        """Nothing comes from a JVM."""

    def stop(self) -> None:
        """Nothing was started."""


@contextmanager
def without_spark() -> Iterator[None]:
    """What is a `Job` inside the block runs without Spark."""
    with patch.object(job, "Spark", NoSpark), patch.object(job, "fold_events", lambda events, sink: events.folded(sink)):
        yield


if __name__ == "__main__":
    del sys.argv[1]  # the program that stands before the command
    with without_spark():
        run()
