"""How many records each log has, in versions: what has changed since one can be asked for."""

import threading
import uuid
from collections.abc import Callable, Iterable

import pyarrow as pa

from streaming.broker.agent.laddered_log import LadderedLog
from streaming.broker.protocol.group_messages import RECORDS
from streaming.common.log_key import LogKey

_Row = tuple[int, int, int, int, int, str]  # log start, next offset, data, aborted, control, error

_GONE: _Row = (-1, -1, 0, 0, 0, "")


class RecordTotals:
    """For several threads.

    Args:
        logs: the ladders of all logs.
        error: why one that has no totals has none, "" if it only waits for them.
    """

    def __init__(self, logs: Callable[[], Iterable[LadderedLog]], error: Callable[[LadderedLog], str]) -> None:
        self._logs = logs
        self._error = error
        self._lock = threading.Lock()
        # with the version of the last change; and when the log came to rest, if it did: until it wakes, the row is the same
        self._rows: dict[LogKey, tuple[int, _Row, object]] = {}
        self.process = uuid.uuid4().hex
        """Versions of another process mean nothing."""
        self._number = 0

    def changes(self, process: str, number: int) -> tuple[int, bool, pa.RecordBatch]:
        """The present version, whether these are all rows, and the rows (`RECORDS`) that changed since ``number``."""
        with self._lock:
            self._refresh()
            whole = process != self.process or number > self._number or number <= 0
            rows = [
                (*key[:2], key.topic_id, key.partition, *row)
                for key, (changed, row, _) in self._rows.items()
                if (row != _GONE if whole else changed > number)
            ]
        columns = list(zip(*rows, strict=True)) or [()] * len(RECORDS)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, RECORDS, strict=True)]
        return self._number, whole, pa.RecordBatch.from_arrays(arrays, schema=RECORDS)

    def _refresh(self) -> None:
        now: dict[LogKey, tuple[_Row, object]] = {}
        for each in self._logs():
            key, done = each.tail.cursor.log, each.done_at  # before its totals: what happens meanwhile shows the next time
            known = self._rows.get(key)
            row = known[1] if known is not None and done is not None and known[2] is done else self._row(each)
            if row != _GONE:
                now[key] = row, done
        stamp = self._number + 1
        gone = {key: (_GONE, None) for key in self._rows if key not in now}
        for key, (row, done) in (gone | now if gone else now).items():
            known = self._rows.get(key)
            same = known is not None and known[1] == row
            if known is None or not same or known[2] is not done:
                self._rows[key] = known[0] if known is not None and same else stamp, row, done
                self._number = self._number if same else stamp

    def _row(self, each: LadderedLog) -> _Row:
        found = each.totals()
        if found is None:
            return (*_GONE[:-1], self._error(each))
        log_start, next_offset, counts = found
        return log_start, next_offset, counts.data, counts.aborted, counts.control, ""
