"""What the query does: when it looked for work, how long its micro-batches took, and how far each agent's bytes have come.

Spark would call a `StreamingQueryListener` for the first two. Each call from the JVM into Python makes py4j look in all of Spark's jars for
classes that do not exist, which costs 50 ms of CPU a micro-batch. So the job asks instead, once a second.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from streaming.metrics.observer import Observer
from streaming.rows import Change


class Progress:
    """Tells the observer. Spark's thread calls `arrived`, the job's thread everything else.

    Args:
        looked: called when the query has looked for work.
    """

    def __init__(self, observer: Observer, clock: Callable[[], float], looked: Callable[[], None]) -> None:
        self._observer = observer
        self._clock = clock
        self._looked = looked
        self._arrived = self._counted = -1  # micro-batches

    def arrived(self, states: pa.Table, batch: int) -> None:
        """A micro-batch is in the metrics: what its rows say of how far each agent's bytes have come.

        What was planned says nothing of that: a range may not have arrived, and then comes with a later one.
        """
        self._arrived = batch
        rows = states.filter(pc.equal(states["change"], str(Change.ARRIVED)))
        for agent, journal, total in zip(*(rows[name].to_pylist() for name in ("agent", "topic_id", "appended_bytes")), strict=True):
            self._observer.processed(agent, journal, total)

    def begins(self, looks: Path) -> None:
        """The query is started: it may run its last micro-batch again, which counts as another one.

        Args:
            looks: the file that its source touches (`streaming.source.options.SourceOptions`).
        """
        self._arrived = self._counted = -1
        self._looks, self._touched = looks, _touched(looks)

    def poll(self, query: StreamingQuery) -> None:
        """See what has happened since.

        Raises:
            Py4JError: the JVM does not answer.
        """
        if self._arrived > self._counted:
            for progress in self._through(query):
                self._counted = progress["batchId"]
                self._observer.batch_took(progress["batchDuration"] / 1000)
        touched = _touched(self._looks)
        if touched != self._touched:
            self._touched = touched
            self.looked()

    def looked(self) -> None:
        """It looked for work, and what it found before is through."""
        self._observer.looked(self._clock())
        self._looked()

    def _through(self, query: StreamingQuery) -> Iterable[StreamingQueryProgress]:
        """The micro-batches that are through and not counted yet, as far as Spark remembers them. Most often that is the last alone."""
        last = query.lastProgress
        if last is None or last["batchId"] <= self._counted:
            return ()
        if last["batchId"] == self._counted + 1:
            return (last,)
        return (each for each in query.recentProgress if each["batchId"] > self._counted)


def _touched(path: Path) -> int:
    """When, in nanoseconds of Unix time; 0 where there is no such file yet."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
