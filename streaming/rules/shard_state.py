"""The state of one shard: one versioned Arrow value with a table of logs. Only rows that are needed become Python objects.

Layout: a byte with the version, then an Arrow IPC stream with a row for every log, in no order. Its schema's metadata contains JSON under
``marks``: for each agent the journal and the seq up to which its rows have been folded. The lists of segments are a value of their own
(`streaming.rules.shard_state`). A column more needs no other version: a state without it has the default.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streaming.common.column_types import columns_of, defaults_of, values_of
from streaming.common.log_key import KEY, KEY_COLUMNS, LogKey, key_arrays
from streaming.errors import CheckpointError
from streaming.rules.fold import Mark
from streaming.rules.log_state import LogState

_VERSION = 1
_SCHEMA = pa.schema([*KEY_COLUMNS, ("segments", pa.binary())])

_STATE_VERSION = 6

SCHEMA = pa.schema([each for each in columns_of(LogState) if each.name != "segments"])
"""The columns of the table: all of a `LogState` except its list of segments."""

_MARKS = b"marks"
_NAMES: list[str] = SCHEMA.names
_VALUES = attrgetter(*_NAMES)  # a plain tuple: dataclasses.asdict copies deeply and costs more than the fold


class ShardState:
    """The logs of one shard after the last micro-batch. ``marks``: how far each agent's rows have been folded."""

    def __init__(self, value: bytes | None, lists: Callable[[], bytes | None] = lambda: None) -> None:
        """Open a value of `updated`, None for a shard without logs.

        Args:
            lists: returns the value of `SegmentLists`.

        Raises:
            CheckpointError: it was written by another version.
        """
        self.table = SCHEMA.empty_table() if value is None else _open(value)
        self.lists = SegmentLists(lists)
        marks = (self.table.schema.metadata or {}).get(_MARKS, b"{}")
        self.marks = {agent: Mark(journal, seq) for agent, (journal, seq) in json.loads(marks).items()}
        self._spelled = _spelled(self.table)
        self._loaded: dict[LogKey, LogState | None] = {}
        self._every: dict[LogKey, int] | None = None

    def after(self, value: bytes) -> ShardState:
        """The state for a value that `updated` made from this one, with the same lists of segments."""
        made = ShardState(value)
        made.lists = self.lists
        return made

    def places(self, rows: pa.Table | pa.RecordBatch) -> NDArray[np.int64]:
        """The indexes of the rows' logs in the table, -1 for a log that is not known."""
        found = pc.index_in(_spelled(rows), value_set=self._spelled)
        places: NDArray[np.int64] = pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        return places

    def logs(self, places: NDArray[np.int64]) -> list[LogKey]:
        """The logs at some indexes."""
        if not len(places):
            return []
        return [LogKey(*key) for key in _tuples(self.table.select(KEY).take(pa.array(places)), KEY)]

    def load(self, keys: Iterable[LogKey]) -> None:
        """Load the states of these logs as Python objects, all at once: one by one, it costs several times as much.

        Their lists of segments are None until `lists` is opened.
        """
        wanted = [key for key in dict.fromkeys(keys) if key not in self._loaded]
        if not wanted:
            return
        places = self._places_of(wanted)
        self._loaded |= dict.fromkeys(wanted)
        lists = self.lists.open() if self.lists.is_open else {}
        for each in _tuples(self.table.take(pa.array(places[places >= 0])), _NAMES):
            values: dict[str, Any] = dict(zip(_NAMES, each, strict=True))
            key = LogKey(*(values[name] for name in KEY))
            self._loaded[key] = LogState(**values, segments=lists.get(key))

    def find(self, key: LogKey) -> LogState | None:
        """The state of a log, None if it is not known."""
        if key not in self._loaded:
            if key in self._rows:
                self.load([key])
            else:
                self._loaded[key] = None
        return self._loaded[key]

    def known(self) -> Iterator[LogKey]:
        """All logs."""
        return iter(self._rows)

    def updated(self, touched: Mapping[LogKey, LogState | None], marks: Mapping[str, Mark], replaced: ReplacedLogs | None = None) -> bytes:
        """The value with some logs replaced or, where None, removed, and with other marks. If `lists` is open, it is updated as well.

        Args:
            replaced: more logs that are replaced; none of them in ``touched``.
        """
        rest = np.ones(len(self.table), np.bool_)
        parts = [] if replaced is None else [replaced.logs]
        if replaced is not None:
            rest[replaced.places] = False
        if touched:
            places = self._places_of(touched)
            rest[places[places >= 0]] = False
            parts.append(_table([_VALUES(state) for state in touched.values() if state is not None]))
        if self.lists.is_open:
            for key, state in touched.items():
                self.lists.put(key, None if state is None else state.segments)
        if rest.any():
            parts.append(self.table if rest.all() else self.table.filter(pa.array(rest)))
        return _encoded(pa.concat_tables([each.replace_schema_metadata() for each in parts] or [SCHEMA.empty_table()]), marks)

    def _places_of(self, keys: Iterable[LogKey]) -> NDArray[np.int64]:
        if self._every is not None:
            return np.array([self._every.get(key, -1) for key in keys], np.int64)
        return self.places(pa.RecordBatch.from_arrays(key_arrays(keys), names=list(KEY)))

    @property
    def _rows(self) -> dict[LogKey, int]:
        """Every log and its index. It costs more than the whole fold of ordinary rows, so only rare cases use it."""
        if self._every is None:
            self._every = {LogKey(*key): row for row, key in enumerate(_tuples(self.table, KEY))}
        return self._every


def _open(value: bytes) -> pa.Table:
    check_version("state", value[0], _STATE_VERSION)
    table = pa.ipc.open_stream(pa.py_buffer(value)[1:]).read_all()
    return table if table.schema.equals(SCHEMA) else _with_defaults(table)


def check_version(what: str, version: int, read: int) -> None:
    """Refuse a part of the state that another version has written. Raises CheckpointError: it is of another version."""
    if version != read:
        raise CheckpointError(
            f"the checkpoint's {what}: version {version}, this segtail reads {read}: use the segtail that wrote it, "
            "or name another checkpoint to begin from scratch"
        )


def _with_defaults(table: pa.Table) -> pa.Table:
    """The table with the columns of today: those that it lacks have the values of a log that was just found."""
    defaults = defaults_of(LogState)
    columns = [
        table[each.name] if each.name in table.schema.names else pa.array([defaults[each.name]] * len(table), each.type) for each in SCHEMA
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA.with_metadata(table.schema.metadata))


class SegmentLists:
    """The known segments of each log by its key: packed `streaming.common.rows.SEGMENTS`.

    The lists of segments of a shard's logs. They are a separate value of the state, read and written only when a list changes.
    Layout: a byte with the version, then an Arrow IPC stream with a row for every log whose segments are known.

    Args:
        value: returns an earlier result of `value`, None if there is none yet. It is called at most once, and only if a list is needed.
    """

    def __init__(self, value: Callable[[], bytes | None]) -> None:
        self._value = value
        self._lists: dict[LogKey, bytes] | None = None
        self.changed = False
        """Whether the value has changed and has to be stored."""

    @property
    def is_open(self) -> bool:
        """Whether the lists were read. Until then no log's list is known, and none can change."""
        return self._lists is not None

    def open(self) -> dict[LogKey, bytes]:
        """Read the lists, unless that was done already. Raises CheckpointError: they were written by another version."""
        if self._lists is None:
            self._lists = _opened(self._value())
        return self._lists

    def put(self, key: LogKey, segments: bytes | None) -> None:
        """Replace the list of a log; None: it has none."""
        lists = self.open()
        if lists.get(key) == segments:
            return
        self.changed = True
        if segments is None:
            del lists[key]
        else:
            lists[key] = segments

    def value(self) -> bytes:
        """The value to store."""
        lists = self.open()
        arrays = [*key_arrays(lists), pa.array(lists.values(), pa.binary())]
        sink = pa.BufferOutputStream()
        sink.write(bytes([_VERSION]))
        with pa.ipc.new_stream(sink, _SCHEMA) as writer:
            writer.write_table(pa.Table.from_arrays(arrays, schema=_SCHEMA))
        return bytes(memoryview(sink.getvalue()))


def _opened(value: bytes | None) -> dict[LogKey, bytes]:
    if value is None:
        return {}
    check_version("lists of segments", value[0], _VERSION)
    table = pa.ipc.open_stream(pa.py_buffer(value)[1:]).read_all()
    *keys, lists = (table[name].to_pylist() for name in _SCHEMA.names)
    return dict(zip(map(LogKey, *keys), lists, strict=True))


def _spelled(rows: pa.Table | pa.RecordBatch) -> pa.Array:
    """The key of each row as one text; the length of the topic separates it from the topic's id."""
    numbers = [pc.cast(column, pa.string()) for column in (rows["broker"], rows["partition"], pc.binary_length(rows["topic"]))]
    spelled = pc.binary_join_element_wise(*numbers, pc.binary_join_element_wise(rows["topic"], rows["topic_id"], ""), "/")
    return spelled.combine_chunks() if isinstance(spelled, pa.ChunkedArray) else spelled


def _tuples(table: pa.Table, names: Iterable[str]) -> Iterator[tuple[Any, ...]]:
    return zip(*(values_of(table[name]) for name in names), strict=True)


@dataclass(frozen=True, slots=True, eq=False)
class ReplacedLogs:
    """The new values of some logs after a micro-batch.

    Args:
        logs: rows of `SCHEMA`.
        places: their indexes in the state's table.
    """

    logs: pa.Table
    places: NDArray[np.int64]


def _table(rows: list[tuple[Any, ...]]) -> pa.Table:
    columns: Iterable[Any] = zip(*rows, strict=True) if rows else [()] * len(SCHEMA)
    return pa.Table.from_arrays([pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def _encoded(table: pa.Table, marks: Mapping[str, Mark]) -> bytes:
    metadata = {_MARKS: json.dumps({agent: [mark.journal, mark.seq] for agent, mark in marks.items()})}
    table = table.combine_chunks().replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    sink.write(bytes([_STATE_VERSION]))
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(memoryview(sink.getvalue()))
