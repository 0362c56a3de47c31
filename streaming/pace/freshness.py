"""How old the newest data in the metrics is: the time since the last check for work whose data is completely there."""

from pathlib import Path

from streaming.pace.pace_files import WorkCheck, last_check


class Freshness:
    """The freshness of one query, over all its runs. Spark's thread calls `arrived`, scrapes call `age`."""

    def __init__(self, checks: Path) -> None:
        self._checks = checks
        self._check: WorkCheck | None = None

    def arrived(self) -> WorkCheck | None:
        """A micro-batch is in the metrics. Returns the check that planned it, which is the last check; None if it is not known."""
        self._check = last_check(self._checks)
        return self._check

    def age(self, now: float) -> float | None:
        """The age in seconds at ``now``, a time of `time.monotonic`; None as long as nothing is known."""
        last = last_check(self._checks)
        known = last if last is not None and last.idle else self._check
        return None if known is None else max(0.0, now - known.at)
