"""The last hour of each exported log, a number a minute, and its rates of the last minute: in memory that is bounded.

Both are taken from looks at the table that are made anyway. A number belongs to a slot of the table; when another log takes the slot, its
history begins from scratch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from streaming.broker.protocol.listing_json import Minute
from streaming.cluster.view.table import Snapshot
from streaming.cluster.view.value_matrix import LOG
from streaming.common.arrays import Longs
from streaming.pages.api.look import Look
from streaming.rules.space_outlook import growth_of

MINUTES = 60
"""So many minutes are kept."""

MINUTE_MS = 60_000

MOST_LOGS = 50_000
"""The logs in so many slots have a history: 60 MB at most."""

SAMPLE_MS = 10_000
"""Rates are taken from samples that are so far apart, at least."""

_SAMPLES = 7
_LEAST_MS = 2_000
_COUNTED = ("appended_bytes", "appended_records")

Floats = NDArray[np.float32]


class RateColumns:
    """What is known of the rates of logs: nothing. See `History`, and `MeanRates` of log dirs."""

    counts = True
    """Whether appends are counted from the beginning of the watching; a single reading has counted the last segments alone."""

    def bytes_rate(self, look: Look) -> NDArray[np.float64]:
        """Bytes a second of each exported log; -1 not known."""
        return np.full(len(look.brokers), -1.0)

    def records_rate(self, look: Look) -> NDArray[np.float64]:
        """Records a second of each exported log; -1 not known."""
        return np.full(len(look.brokers), -1.0)

    def hours(self, look: Look, items: Sequence[int]) -> list[list[float]]:
        """The bytes a second of some exported logs in each minute of the last hour, -1 not known; an empty list if none is known."""
        return [[] for _ in items]

    def hour_sum(self, look: Look, items: Sequence[int]) -> list[float]:
        """The same of some logs together: of a minute the logs count of which it is known, and -1 is one of which it is known of none."""
        return []

    def minutes(self, look: Look, item: int) -> list[Minute]:
        """The last hour of an exported log, as far as it is known."""
        return []


class History(RateColumns):
    """The last hour of each exported log, by minutes. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()  # protects everything below
        self._samples: list[_Sample] = []
        self._minute = -1  # the number of the last minute, by the Unix clock, whose end was seen
        self._last: _Sample | None = None
        self._owners: list[tuple[str, str, int] | None] = []  # by slot
        self._rates = np.full((len(_COUNTED), MINUTES, 0), np.nan, np.float32)
        self._ends: Longs = np.full((MINUTES, 0), -1)
        self._lags = np.full((MINUTES, 0), np.nan, np.float32)

    def sample(self, snapshot: Snapshot) -> None:
        """Take the counters of a snapshot, if the last sample is old enough."""
        with self._lock:
            if self._samples and 0 <= snapshot.now_ms - self._samples[-1].at_ms < SAMPLE_MS:
                return
            self._samples = [*self._samples[-_SAMPLES + 1 :], _sampled(snapshot)]

    @property
    def recorded_minute(self) -> int:
        """The number of the last minute that was recorded, by the Unix clock."""
        with self._lock:
            return self._minute

    def record(self, look: Look) -> None:
        """Record the minute that has ended, if it is not recorded yet."""
        minute = look.now_ms // MINUTE_MS
        with self._lock:
            if minute <= self._minute and self._minute - minute < MINUTES:
                return
            before, now = self._last, _sampled(look.snapshot)
            self._assign(look)
            self._advance(minute)
            slots = look.view.logs.columns["slot"]
            slots = slots[slots < self._ends.shape[1]]
            shown = np.isin(look.view.logs.columns["slot"], slots)
            place = minute % MINUTES
            if before is not None and now.at_ms - before.at_ms < 2 * MINUTE_MS:  # else it is not known when in between it was
                rates = _rates(before, now)
                self._rates[:, place, slots] = np.where(rates[:, slots] < 0, np.nan, rates[:, slots])
            self._ends[place, slots] = look.view.logs["log_end_offset"][shown]
            last_stable = look.view.logs["last_stable_offset"][shown]
            self._lags[place, slots] = np.where(last_stable < 0, np.nan, self._ends[place, slots] - last_stable)
            self._last = now

    def _assign(self, look: Look) -> None:
        """Make room for the logs, and forget what other logs left in their slots."""
        slots = look.view.logs.columns["slot"].tolist()
        room = min(MOST_LOGS, max(slots, default=-1) + 1)
        more = room - self._ends.shape[1]
        if more > 0:
            self._rates = np.pad(self._rates, ((0, 0), (0, 0), (0, more)), constant_values=np.nan)
            self._ends = np.pad(self._ends, ((0, 0), (0, more)), constant_values=-1)
            self._lags = np.pad(self._lags, ((0, 0), (0, more)), constant_values=np.nan)
            self._owners += [None] * more
        owners = zip(look.topics, look.view.logs.topic_ids, look.partitions.tolist(), strict=True)
        for slot, owner in zip(slots, owners, strict=True):
            if slot < room and self._owners[slot] != owner:
                self._owners[slot] = owner
                self._rates[:, :, slot], self._ends[:, slot], self._lags[:, slot] = np.nan, -1, np.nan

    def _advance(self, minute: int) -> None:
        """Empty the minutes up to the present one, which may not have been seen."""
        passed = minute - self._minute
        places = range(MINUTES) if not 0 < passed < MINUTES else [(minute - each) % MINUTES for each in range(passed)]
        for place in places:
            self._rates[:, place], self._ends[place], self._lags[place] = np.nan, -1, np.nan
        self._minute = minute

    def bytes_rate(self, look: Look) -> NDArray[np.float64]:
        """See `RateColumns`: over the last minute, or a little more."""
        return self._now(look, 0)

    def records_rate(self, look: Look) -> NDArray[np.float64]:
        """See `RateColumns`: over the last minute, or a little more."""
        return self._now(look, 1)

    def _now(self, look: Look, row: int) -> NDArray[np.float64]:
        with self._lock:
            samples = self._samples
        now = _sampled(look.snapshot)
        before = next((each for each in samples if _LEAST_MS <= now.at_ms - each.at_ms <= (_SAMPLES + 1) * SAMPLE_MS), None)
        slots = look.view.logs.columns["slot"]
        if before is None:
            return np.full(len(slots), -1.0)
        rates: NDArray[np.float64] = _rates(before, now)[row, slots]
        return rates

    def hours(self, look: Look, items: Sequence[int]) -> list[list[float]]:
        """See `RateColumns`."""
        slots = look.view.logs.columns["slot"][list(items)].tolist()
        with self._lock:
            found = [
                self._rates[0, self._order(), slot] if self._is_of(look, item, slot) else None
                for item, slot in zip(items, slots, strict=True)
            ]
        return [[] if each is None or np.isnan(each).all() else np.where(np.isnan(each), -1.0, each).tolist() for each in found]

    def hour_sum(self, look: Look, items: Sequence[int]) -> list[float]:
        """See `RateColumns`."""
        slots = look.view.logs.columns["slot"][list(items)].tolist()
        with self._lock:
            own = [slot for item, slot in zip(items, slots, strict=True) if self._is_of(look, item, slot)]
            rates = self._rates[0][self._order()][:, own]
        known = ~np.isnan(rates)
        minutes = known.any(axis=1)
        return np.where(minutes, np.where(known, rates, 0).sum(axis=1, dtype=np.float64), -1.0).tolist() if minutes.any() else []

    def minutes(self, look: Look, item: int) -> list[Minute]:
        """See `RateColumns`."""
        slot = int(look.view.logs.columns["slot"][item])
        with self._lock:
            if not self._is_of(look, item, slot):
                return []
            order, minute = self._order(), self._minute
            rates, ends, lags = self._rates[:, order, slot], self._ends[order, slot].tolist(), self._lags[order, slot]
        last_stable = [end - round(lag) if end >= 0 and lag == lag else -1 for end, lag in zip(ends, lags.tolist(), strict=True)]
        bytes_rate, records_rate = np.where(np.isnan(rates), -1.0, rates).tolist()
        return [
            Minute(
                at_ms=(minute - MINUTES + 1 + place) * MINUTE_MS,
                bytes_rate=bytes_rate[place],
                records_rate=records_rate[place],
                log_end_offset=ends[place],
                last_stable_offset=last_stable[place],
            )
            for place in range(MINUTES)
            if ends[place] >= 0
        ]

    def _order(self) -> list[int]:
        """The places of the minutes, the oldest first."""
        return [(self._minute + 1 + each) % MINUTES for each in range(MINUTES)]

    def _is_of(self, look: Look, item: int, slot: int) -> bool:
        owner = look.topics[item], look.view.logs.topic_ids[item], int(look.partitions[item])
        return slot < len(self._owners) and self._owners[slot] == owner


@dataclass(frozen=True, slots=True, eq=False)
class _Sample:
    """The counters of all slots at one time."""

    at_ms: int
    counters: Longs  # shape (2, slots), in the order of `_COUNTED`; -1 in a slot that is free, or whose backlog is not read


def _sampled(snapshot: Snapshot) -> _Sample:
    columns = snapshot.columns
    counted = (columns["kind"] == LOG) & (columns["settled"] == 1)
    return _Sample(snapshot.now_ms, np.where(counted, np.stack([columns[name] for name in _COUNTED]), -1))


def _rates(before: _Sample, now: _Sample) -> NDArray[np.float64]:
    """What was counted a second between two samples, by slot; -1 where that is not known."""
    both = min(before.counters.shape[1], now.counters.shape[1])
    rates = np.full(now.counters.shape, -1.0)
    old, new = before.counters[:, :both], now.counters[:, :both]
    passed = max(now.at_ms - before.at_ms, 1) / 1000
    rates[:, :both] = np.where((old >= 0) & (new >= old), (new - old) / passed, -1.0)
    return rates


NO_RATES = RateColumns()


class MeanRates(RateColumns):
    """What log dirs show that are read once: the mean rate of each log in the last day, by its list of segments."""

    counts = False

    def bytes_rate(self, look: Look) -> NDArray[np.float64]:
        """See `RateColumns`."""
        retention = look.view.retention
        rates = np.full(len(look.view.observed.columns), -1.0)
        if len(retention.listed.items):
            logs = retention.listed.logs
            growth = growth_of(logs, logs.oldest_record, look.now_ms)
            rates[retention.items[retention.listed.items]] = np.where(np.isnan(growth), -1.0, growth * 1000)
        return rates[look.view.logs.items]


MEAN_RATES = MeanRates()
