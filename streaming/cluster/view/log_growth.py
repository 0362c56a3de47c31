"""How fast logs grow now, from how they have grown from page to page: by their own lengths, whoever counts what is in them."""

import threading
from dataclasses import dataclass

import numpy as np

from streaming.cluster.view.fading_rates import FadingRates, Rates
from streaming.common.arrays import Longs
from streaming.rules.segment_columns import ABSENT, SegmentColumns

SECONDS = 600.0
"""When a log will have grown by so much is predicted from its growth of this time."""

WATCHED_MS, SILENT_MS = 60_000, 300_000
"""A log that was watched for so long, and not silent for so long, grows at the rate of the last minutes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Ends:
    """By slot of the table: which log is there, and the base offset and the bytes of its active segment; `ABSENT` for no log."""

    log: Longs
    base: Longs
    size: Longs


class LogGrowth:
    """Rates by slot of the table. Safe from any thread: pages and rounds over groups look at the same logs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rates = FadingRates(SECONDS)
        self._ends = _Ends(log=np.empty(0, np.int64), base=np.empty(0, np.int64), size=np.empty(0, np.int64))
        self._at_ms = -1

    def rates(self, slots: Longs, names: Longs, logs: SegmentColumns, steady_ms: int) -> Rates:
        """Bytes a second at which each log grows now; `ABSENT` where it is not watched for long enough, or does not grow.

        Args:
            slots: of the logs, in the table.
            names: a number for each of them, the same as long as it is the same log.
            steady_ms: of a clock that nobody sets.
        """
        with self._lock:
            if steady_ms > self._at_ms:
                self._look(slots, names, logs, steady_ms)
            known = np.flatnonzero(slots < len(self._ends.log))
            found = np.full(len(slots), float(ABSENT))
            found[known] = self._rates.steady(steady_ms, for_ms=WATCHED_MS, silent_ms=SILENT_MS)[slots[known]]
            return found

    def _look(self, slots: Longs, names: Longs, logs: SegmentColumns, steady_ms: int) -> None:
        before, count = self._ends, max(len(self._ends.log), int(slots.max(initial=-1)) + 1)
        if count > len(before.log):
            there = np.arange(count) < len(before.log)
            self._rates.begin(np.minimum(np.arange(count), len(before.log)), there, steady_ms)
            before = _Ends(**{name: _longer(getattr(before, name), count) for name in _Ends.__slots__})
        self._rates.begin_round(steady_ms)
        self._rates.restart(slots[before.log[slots] != names], steady_ms)
        grown = np.zeros(count, np.int64)
        grown[slots] = np.where(before.log[slots] == names, _grown(logs, before.base[slots], before.size[slots]), 0)
        self._rates.passed(grown, steady_ms)
        ends = {name: np.full(count, ABSENT) for name in _Ends.__slots__}
        ends["log"][slots], ends["base"][slots], ends["size"][slots] = names, logs.base[logs.last], logs.size[logs.last]
        self._ends, self._at_ms = _Ends(**ends), steady_ms


def _longer(column: Longs, count: int) -> Longs:
    return np.concatenate([column, np.full(count - len(column), ABSENT)])


def _grown(logs: SegmentColumns, base: Longs, size: Longs) -> Longs:
    """The bytes that came to each log since its active segment was the one of that base offset, and had that size."""
    at = logs.last.copy()
    rolled = (logs.base[logs.last] != base) & (base != ABSENT)
    for log in np.flatnonzero(rolled).tolist():  # few do between two looks
        first, last = int(logs.first[log]), int(logs.last[log])
        at[log] = np.clip(np.searchsorted(logs.base[first : last + 1], base[log], side="right") - 1, 0, last - first) + first
    came: Longs = np.maximum(logs.bytes_between(at, logs.last + 1) - size, 0)
    return np.where(logs.base[at] == base, came, 0)  # else it was cut off, or all of it is gone
