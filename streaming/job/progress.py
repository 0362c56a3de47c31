"""What the query tells of itself, as Spark's listener hears it."""

import json
from collections.abc import Callable

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
    StreamingQueryProgress,
)

from streaming.metrics.observer import Observer
from streaming.source import offsets


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
        self._has_looked()
        self._observer.batch_took(event.progress.batchDuration / 1000)
        self.came_to(event.progress)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """It looked and found nothing."""
        del event
        self._has_looked()

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """It ended; the job that started it deals with the reason."""
        del event

    def came_to(self, progress: StreamingQueryProgress) -> None:
        """So far every agent's bytes are in the metrics."""
        for source in progress.sources:
            if source.endOffset:
                for agent, at in offsets.parse(json.loads(source.endOffset)).items():
                    self._observer.processed(agent, at.total)

    def _has_looked(self) -> None:
        self._observer.looked(self._clock())
        self._looked()
