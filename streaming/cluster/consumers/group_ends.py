"""The counts at the ends of the logs that groups read, kept from round to round: which have to be asked, and what was answered."""

import numpy as np

from streaming.cluster.consumers.group_lag import ABSENT, CODES, KNOWN, Answered, Codes, Ends, LagReason, carried, first, padded
from streaming.cluster.consumers.group_logs import GroupLogs
from streaming.cluster.view.fading_rates import FadingRates, Rates
from streaming.common.arrays import Flags, Longs

CHECKED_ROUNDS = 8
"""The counts of a log that does not grow are asked for again after so many rounds: it may have been compacted."""

_COLUMNS = ("high_watermark", "last_stable", "edition", "data", "stable_data", "kept", "end_kept", "control", "bytes")


class EndMemory:
    """The counts by the codes of logs. For one thread."""

    def __init__(self) -> None:
        self._code: Longs = np.empty(0, np.int64)
        self._counted: Codes = np.empty(0, np.int8)
        self._columns: dict[str, Longs] = {name: np.empty(0, np.int64) for name in _COLUMNS}
        self._rates = FadingRates()
        self._round = 0
        self.moved: Flags = np.empty(0, np.bool_)
        """Whether the end of each log is another one than that of the counts."""

    def begin(self, logs: GroupLogs, steady_ms: int) -> None:
        """A round begins, with these logs."""
        self._round += 1
        if not np.array_equal(logs.code, self._code):
            rows, there = carried(self._code, logs.code)
            self._columns = {name: np.where(there, padded(column)[rows], ABSENT) for name, column in self._columns.items()}
            self._counted = np.where(there, np.append(self._counted, KNOWN)[rows], CODES[LagReason.FILLING])
            self._rates.begin(rows, there, steady_ms)
            self._code = logs.code
        self._rates.begin_round(steady_ms)
        at = self._columns
        self.moved = (at["high_watermark"] != logs.high_watermark) | (at["last_stable"] != logs.last_stable)

    def wanted(self, logs: GroupLogs) -> Longs:
        """The logs whose counts have to be asked."""
        due = np.arange(len(logs)) % CHECKED_ROUNDS == self._round % CHECKED_ROUNDS
        needed: Longs = np.flatnonzero((logs.reason == KNOWN) & (self.moved | due | (self._counted != KNOWN)))
        return needed

    def doubt(self, logs: Longs, edition: Longs) -> None:
        """Positions of these logs were answered, of these editions: if a log has another one by now, its counts are out of date."""
        other = logs[(edition != self._columns["edition"][logs]) & (edition != ABSENT)]
        self._columns["high_watermark"][other] = ABSENT

    def rates(self, steady_ms: int) -> Rates:
        """Records a second that have lately been appended to each log; `ABSENT` where that is not known."""
        return self._rates.now(steady_ms)

    def answer(self, items: Longs, logs: GroupLogs, at_end: Answered, at_stable: Answered, steady_ms: int) -> None:
        """Set the counts of some logs: the positions of their high watermarks, and of their last stable offsets."""
        known = (at_end.edition == self._columns["edition"][items]) & (at_end.edition != ABSENT)
        comes = np.zeros(len(logs), np.int64)
        comes[items] = np.where(known, np.maximum(at_end.numbers["data"] - self._columns["data"][items], 0), 0)
        self._rates.passed(comes, steady_ms)
        same = at_end.edition == at_stable.edition
        self._counted[items] = np.where(same, first(at_end.reason, at_stable.reason), CODES[LagReason.FILLING])
        found = {
            "high_watermark": logs.high_watermark[items],
            "last_stable": logs.last_stable[items],
            "edition": at_end.edition,
            "data": at_end.numbers["data"],
            "stable_data": at_stable.numbers["data"],
            "kept": at_stable.numbers["data"] - at_stable.numbers["aborted"],
            "end_kept": at_end.numbers["data"] - at_end.numbers["aborted"],
            "control": at_end.numbers["control"],
            "bytes": at_end.numbers["bytes"],
        }
        for name, values in found.items():
            self._columns[name][items] = values

    def ends(self, logs: GroupLogs) -> Ends:
        """The ends of the logs. Where no answer is as new as the offsets, the reason is that the leader's agent does not answer."""
        at = self._columns
        current = (at["high_watermark"] == logs.high_watermark) & (at["last_stable"] == logs.last_stable)
        stale = np.where(current, KNOWN, CODES[LagReason.FILLING])
        return Ends(
            reason=logs.reason,
            counted=first(self._counted, stale),
            log_start=logs.log_start,
            log_end=logs.log_end,
            high_watermark=logs.high_watermark,
            last_stable=logs.last_stable,
            edition=at["edition"],
            data=at["data"],
            stable_data=at["stable_data"],
            kept=at["kept"],
            end_kept=at["end_kept"],
            control=at["control"],
            bytes=at["bytes"],
            damaged=logs.damaged,
        )
