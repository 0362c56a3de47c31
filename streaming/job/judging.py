"""What judges the job's numbers, as its settings say."""

from datetime import timedelta

from streaming.metrics.judges import Judges
from streaming.metrics.retention import Limiter
from streaming.metrics.transactions import Bench
from streaming.settings import Settings


def judges_of(settings: Settings) -> Judges:
    """The judges for a table."""
    bench = Bench(
        hanging_after_ms=_milliseconds(settings.hanging_after),
        late_after_ms=_milliseconds(settings.late_after),
        late_limit=settings.late_limit,
    )
    return Judges(bench=bench, limiter=Limiter({}), assume_replicated=settings.assume_replicated)


def _milliseconds(duration: timedelta) -> int:
    return duration // timedelta(milliseconds=1)
