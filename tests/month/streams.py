"""The log of a partition whose producer appends at a steady rate: which offsets it has at any time, and what retention has left of it."""

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from streaming.common.rows import SEGMENTS, TRANSACTIONS
from tests.consumers.group_world import row
from tests.view.reported import Facts
from tests.view.test_transaction_columns import transaction

START = 1_699_833_600
"""When the month begins, in Unix seconds: a Monday, at midnight. All other times are seconds from it."""

CHECK_S = 300
"""A broker looks this often for segments to delete (log.retention.check.interval.ms)."""

RECORD_BYTES = 200


@dataclass(slots=True, kw_only=True)
class Stream:
    """``born_s``: when it was made, with offset 0. ``open_s``: since when a transaction is open, None for none."""

    topic: str
    partition: int
    rate: float
    retention_s: int
    segment_s: int
    born_s: float
    open_s: float | None = None
    _listed: tuple[int, float] = (-1, -1.0)
    _facts: bytes | None = field(default=None, repr=False)

    def offset_at(self, at_s: float) -> int:
        """Of the next record that is appended then."""
        return int(max(at_s - self.born_s, 0.0) * self.rate)

    def time_of(self, offset: int) -> float:
        """When a record was appended."""
        return self.born_s + (offset + 1) / self.rate

    def first_s(self, now_s: float) -> float:
        """When the first record was appended that is still there: of the first segment whose last record is within the limit."""
        checked_s = now_s // CHECK_S * CHECK_S
        return max((checked_s - self.retention_s) // self.segment_s * self.segment_s, self.born_s)

    def log_start(self, now_s: float) -> int:
        """The first offset that is still there."""
        return self.offset_at(self.first_s(now_s))

    def row(self, now_s: float) -> dict[str, Any]:
        """What the fold says of it. Segments come along only when they have changed."""
        end, active_s = self.offset_at(now_s), max(now_s // self.segment_s * self.segment_s, self.born_s)
        listed = (self.log_start(now_s), active_s)
        if listed != self._listed or self._facts is None:
            self._listed, self._facts = listed, self._encoded(now_s)
            facts = {"facts": self._facts}
        else:
            facts = {}
        values: dict[str, Any] = {
            "log_start_offset": listed[0],
            "last_append_ms": unix_ms(now_s),
            "appended_bytes": end * RECORD_BYTES,
            "active_segment": self.offset_at(active_s),
            "active_position": (end - self.offset_at(active_s)) * RECORD_BYTES,
        }
        if self.open_s is not None:
            first = self.offset_at(self.open_s)
            at_ms = unix_ms(self.open_s)
            open_now = transaction(9, first, age=0, start_ms=at_ms, last_ms=at_ms, bytes_at=first * RECORD_BYTES)
            values |= {"transactions": np.array([open_now], TRANSACTIONS).tobytes(), "transactional": True}
        return row(self.topic, self.partition, end=end, **values, **facts)

    def forget(self) -> None:
        """Whoever asks next knows nothing of its segments."""
        self._facts = None

    def _encoded(self, now_s: float) -> bytes:
        begins = np.arange(self.first_s(now_s), now_s + 1, self.segment_s)
        last = [min(each + self.segment_s, now_s) for each in begins.tolist()]
        segments = np.array(
            [
                (self.offset_at(begin), (self.offset_at(end) - self.offset_at(begin)) * RECORD_BYTES, unix_ms(end), unix_ms(end))
                for begin, end in zip(begins.tolist(), last, strict=True)
            ],
            SEGMENTS,
        )
        configs = {"static": {}, "topic": {"retention.ms": str(1000 * self.retention_s), "segment.ms": str(1000 * self.segment_s)}}
        return Facts(
            segments=segments,
            configs=json.dumps(configs),
            replicas=(1, 2, 3),
            isr=(1, 2, 3),
            oldest_timestamp=unix_ms(float(begins[0])),
            active_first_timestamp=unix_ms(float(begins[-1])),
            active_created_ms=unix_ms(float(begins[-1])),
        ).encode()


def unix_ms(at_s: float) -> int:
    """A time of the month in Unix milliseconds."""
    return round((START + at_s) * 1000)
