"""What is known of how fast logs grow: nothing, the mean of their segments, or the last hour (`streaming.pages.api.history`)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from streaming.broker.protocol.listing_json import Minute
from streaming.pages.api.look import Look
from streaming.rules.growth import growth_of


@dataclass(frozen=True, slots=True, kw_only=True)
class HourOfAll:
    """Of all logs together a number a minute, the oldest first, -1 not known; empty if none is.

    Bytes and records a second, of the logs of which they were known; and replicas that were out of sync.
    """

    bytes_rates: list[float] = field(default_factory=list)
    records_rates: list[float] = field(default_factory=list)
    out_of_sync: list[float] = field(default_factory=list)


class RateColumns:
    """What is known of the rates of logs: nothing. See `History`, and `MeanRates` of log dirs."""

    counts = True
    """Whether appends are counted from the beginning of the watching; what is read once has counted its last segments alone."""

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

    def hour_of_all(self) -> "HourOfAll":
        """The last hour of all logs together, as far as it is known."""
        return HourOfAll()

    def minutes(self, look: Look, item: int) -> list[Minute]:
        """The last hour of an exported log, as far as it is known."""
        return []


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
