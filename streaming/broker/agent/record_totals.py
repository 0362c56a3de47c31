"""How many records each log has, in versions: what has changed since one can be asked for."""

import threading
import uuid
from collections.abc import Callable, Iterable

import pyarrow as pa

from streaming.broker.agent.laddered_log import LadderedLog
from streaming.broker.protocol.group_messages import RECORDS
from streaming.common.log_key import KEY, LogKey, key_arrays

_Row = tuple[int, int, int, int, int, str]

_ROW = ("log_start", "next_offset", "data", "aborted", "control", "error")

_GONE: _Row = (-1, -1, 0, 0, 0, "")


class _Known:
    """What is known of a log. All are looked at each few seconds.

    ``changed``: the version of the last change. ``done``: when the log came to rest, if it did: until it wakes, the row is the same.
    ``found``, ``found_done``: the row, and the same, as the last look has them.
    """

    __slots__ = ("changed", "done", "found", "found_done", "row")

    def __init__(self) -> None:
        self.row = self.found = _GONE
        self.done: object | None = None
        self.found_done: object | None = None
        self.changed = 0


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
        self._known: dict[LogKey, _Known] = {}
        self.process = uuid.uuid4().hex
        """Versions of another process mean nothing."""
        self._number = 0

    def changes(self, process: str, number: int) -> tuple[int, bool, pa.RecordBatch]:
        """The present version, whether these are all rows, and the rows (`RECORDS`) that changed since ``number``."""
        with self._lock:
            self._look()
            self._settle()
            whole = process != self.process or number > self._number or number <= 0
            chosen = {key: each.row for key, each in self._known.items() if (each.row is not _GONE if whole else each.changed > number)}
            return self._number, whole, _batch(chosen)

    def _look(self) -> None:
        known = self._known
        for each in self._logs():
            key, done = each.tail.cursor.log, each.done_at  # before its totals: what happens meanwhile shows the next time
            log = known.get(key)
            row = log.row if log is not None and done is not None and log.done is done else self._row(each)
            if row is _GONE:
                continue
            if log is None:
                log = known[key] = _Known()
            log.found, log.found_done = row, done

    def _settle(self) -> None:
        """What was found now is what is known; what was not found is gone."""
        stamp = self._number + 1
        for log in self._known.values():
            if log.found is not log.row:
                if log.found != log.row:
                    log.changed = self._number = stamp
                log.row = log.found
            log.done, log.found, log.found_done = log.found_done, _GONE, None

    def _row(self, each: LadderedLog) -> _Row:
        found = each.totals()
        if found is not None:
            return *found, ""
        error = self._error(each)
        return (*_GONE[:-1], error) if error else _GONE


def _batch(rows: dict[LogKey, _Row]) -> pa.RecordBatch:
    columns = dict(zip(KEY, key_arrays(rows), strict=True))
    values = list(zip(*rows.values(), strict=True)) or [()] * len(_ROW)
    columns |= {name: pa.array(value, RECORDS.field(name).type) for name, value in zip(_ROW, values, strict=True)}
    return pa.RecordBatch.from_arrays([columns[name] for name in RECORDS.names], schema=RECORDS)
