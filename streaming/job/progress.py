"""What the query tells of itself, as Spark's listener hears it."""

import json
import logging
from collections.abc import Callable

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from streaming.metrics.observer import Observer
from streaming.source import offsets

log = logging.getLogger(__name__)


class Progress(StreamingQueryListener):
    """Tells the observer when the query looked, how long a micro-batch took, and how far each agent's bytes have come."""

    def __init__(self, observer: Observer, clock: Callable[[], float]) -> None:
        self._observer = observer
        self._clock = clock

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """It runs."""
        del event
        self._observer.looked(self._clock())

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """A micro-batch is through."""
        progress = event.progress
        self._observer.looked(self._clock())
        self._observer.batch_took(progress.batchDuration / 1000)
        for source in progress.sources:
            for agent, at in offsets.parse(json.loads(source.endOffset)).items():
                self._observer.processed(agent, at.total)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """It looked and found nothing."""
        del event
        self._observer.looked(self._clock())

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """It ended; the job that started it deals with the reason."""
        del event
