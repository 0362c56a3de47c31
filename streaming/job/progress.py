"""What the query tells of itself, as Spark's listener hears it and by its rows."""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from streaming.metrics.observer import Observer
from streaming.rows import Change


class Progress(StreamingQueryListener):
    """Tells the observer when the query looked, how long a micro-batch took, and how far each agent's bytes have come.

    Args:
        looked: called whenever the query has looked for work.
    """

    def __init__(self, observer: Observer, clock: Callable[[], float], looked: Callable[[], None]) -> None:
        self._observer = observer
        self._clock = clock
        self._looked = looked

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """It runs, which one that fails each time does too: it has not looked yet."""
        del event

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """A micro-batch is through."""
        self.looked()
        self._observer.batch_took(event.progress.batchDuration / 1000)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """It looked and found nothing."""
        del event
        self.looked()

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """It ended; the job that started it deals with the reason."""
        del event

    def arrived(self, states: pa.Table) -> None:
        """A micro-batch is in the metrics: what its rows say of how far each agent's bytes have come.

        What was planned says nothing of that: a range may not have arrived, and then comes with a later one.
        """
        rows = states.filter(pc.equal(states["change"], str(Change.ARRIVED)))
        for agent, journal, total in zip(*(rows[name].to_pylist() for name in ("agent", "topic_id", "appended_bytes")), strict=True):
            self._observer.processed(agent, journal, total)

    def looked(self) -> None:
        """It looked for work, and what it found is through."""
        self._observer.looked(self._clock())
        self._looked()
