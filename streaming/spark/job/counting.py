"""What one run of the query has counted: followed from its micro-batches, and written for the process that plans."""

import logging
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.cluster.view.value_matrix import Ids
from streaming.common.arrays import Flags, Longs
from streaming.common.log_key import KEY, LogKey, keys_in
from streaming.common.rows import Change
from streaming.spark.source.counted_file import Arrived, LogColumns, write_counted

log = logging.getLogger(__name__)

_FIRST_SLOTS = 1024
_NONE = -1
_COLUMNS = ("change", "agent", *KEY, "log_end_offset", "log_epoch")
_OF_LOGS = [str(change) for change in (Change.LOG, Change.DEPARTED, Change.REMOVED)]


class Counting:
    """Begins with the run: what an earlier one has counted may be beyond the states that this one has.

    Spark's thread calls `take`, the job's thread everything else.

    Args:
        path: of the file (`streaming.spark.source.counted_file`), which is written as soon as everything that the states hold is known.
        recalls: so many shards hand out what they hold before anything is planned; 0 for a run without an earlier state.

    Raises:
        OSError: the file of an earlier run cannot be removed.
    """

    def __init__(self, path: Path, recalls: int) -> None:
        self._path = path
        self._recalls = recalls
        self._lock = Lock()  # protects everything below
        self._recalled: set[int] = set()
        self._arrived: dict[str, Arrived] = {}
        self._brokers: set[int] = set()
        self._slots: Ids[LogKey] = Ids()
        self._keys: list[LogKey | None] = []  # by slot
        self._ends = np.full((2, _FIRST_SLOTS), _NONE, np.int64)  # next offset and epoch, by slot
        self._columns: tuple[LogColumns, Longs] | None = None  # of the slots in use; None after these have changed
        self._ended = False
        self.failed = False
        """Whether the file could not be written the last time."""
        path.unlink(missing_ok=True)

    def take(self, states: pa.Table) -> None:
        """Rows of `streaming.common.state_row.STATES` are in the table.

        Raises:
            OSError: the file can neither be written nor removed, and says less than what is counted.
        """
        states = states.select(_COLUMNS)
        brokers = set(pc.unique(states["broker"]).to_pylist()) - {_NONE, None}
        rows = states.filter(pc.is_in(states["change"], pa.array(_OF_LOGS)))
        last = {key: row for row, key in enumerate(keys_in(rows))}  # no key twice: numpy promises no order within one assignment
        rows = rows.take(pa.array(list(last.values()), pa.int64()))
        ends = np.maximum(
            np.array([pc.fill_null(rows[name], _NONE).to_numpy() for name in ("log_end_offset", "log_epoch")], np.int64), _NONE
        )
        there = pc.equal(rows["change"], str(Change.LOG)).to_numpy() & (ends[0] != _NONE)
        arrived, recalled = (states.filter(pc.equal(states["change"], str(change))) for change in (Change.ARRIVED, Change.RECALLED))
        with self._lock:
            self._set(list(last), there, ends)
            self._brokers |= brokers
            self._recalled.update(recalled["partition"].to_pylist())
            for agent, *at in zip(*(arrived[name].to_pylist() for name in ("agent", "topic_id", "log_end_offset")), strict=True):
                self._arrived[agent] = Arrived(*at)
            self._write()

    def keep(self) -> None:
        """Write the file if it is missing: it could not be written, or not be read."""
        with self._lock:
            if not self._path.exists():
                self._write()

    def end(self) -> None:
        """The run is over: a micro-batch of it that comes to its end now changes nothing."""
        with self._lock:
            self._ended = True

    def _set(self, keys: Sequence[LogKey], there: Flags, ends: Longs) -> None:
        slots = self._slots.find_all(keys, _NONE)
        for item in np.flatnonzero((slots == _NONE) & there).tolist():
            slots[item] = self._new_slot(keys[item])
        for item in np.flatnonzero((slots != _NONE) & ~there).tolist():
            self._slots.release(keys[item])
            self._keys[slots[item]], self._columns = None, None
        self._ends[:, slots[there]] = ends[:, there]

    def _new_slot(self, key: LogKey) -> int:
        slot = self._slots.take(key)
        if slot == len(self._keys):
            self._keys.append(key)
        self._keys[slot], self._columns = key, None
        if slot == self._ends.shape[1]:
            self._ends = np.pad(self._ends, ((0, 0), (0, slot)), constant_values=_NONE)
        return slot

    def _write(self) -> None:
        if self._ended or len(self._recalled) < self._recalls:
            return
        if self._columns is None:
            used = [slot for slot, key in enumerate(self._keys) if key is not None]
            self._columns = LogColumns(key for key in self._keys if key is not None), np.array(used, np.int64)
        columns, slots = self._columns
        try:
            write_counted(self._path, self._arrived, self._brokers, columns.rows(*self._ends[:, slots]))
            self.failed = False
        except OSError as error:
            log.error("what is counted cannot be written, nothing is planned without", extra={"path": str(self._path), "error": str(error)})
            self.failed = True
            self._path.unlink(missing_ok=True)  # it says less
