"""The state of one shard as Spark keeps it: one versioned Arrow value, of which only the touched rows become Python objects.

Layout: a byte with the version, then an Arrow IPC stream with a row for every log, sorted by nothing. Its schema's metadata holds under
``marks`` JSON: for each agent the journal and the seq up to which its rows have been folded. Versions: 1, 2 (more columns: what
transactions, producers and inventories lead to).
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from operator import attrgetter
from typing import Any

import pyarrow as pa

from streaming.errors import CheckpointError
from streaming.rows import STATES
from streaming.rules.fold import Mark
from streaming.rules.log_state import LogKey, LogState

NOT_SHOWN = (
    "journal",
    "departed",
    "stopped_at",
    "stopped_end",
    "newest_segment",
    "deleted_below",
    "shared_upto",
    "shared_epoch",
    "unclean_epoch",
    "unclean_start",
    "unclean_last_upper",
    "unclean_last_acknowledged",
    "superseded_epoch",
    "cut_end",
    "cut_epoch",
    "cut_high_watermark",
    "cut_next_epoch",
)
"""What the fold keeps of a log and does not hand out."""

_VERSION = 2
_NOT_KEPT = ("change",)
_TYPES = dict.fromkeys(NOT_SHOWN, pa.int64()) | {"journal": pa.string(), "departed": pa.bool_()}
_SCHEMA = pa.schema([field for field in STATES if field.name not in _NOT_KEPT] + [pa.field(name, _TYPES[name]) for name in NOT_SHOWN])
_MARKS = b"marks"
_KEY = ("broker", "topic", "partition", "topic_id")
_LISTS = frozenset(field.name for field in _SCHEMA if pa.types.is_list(field.type))
_NAMES: list[str] = _SCHEMA.names
_VALUES = attrgetter(*_NAMES)  # a plain tuple: dataclasses.asdict copies deeply and costs more than the fold


class ShardState:
    """The logs of one shard, as the last micro-batch left them. ``marks``: how far each agent's rows have been folded."""

    def __init__(self, value: bytes | None) -> None:
        """Open what `updated` made, None for a shard without logs.

        Raises:
            CheckpointError: it was written by a later version.
        """
        self._table = _SCHEMA.empty_table() if value is None else _open(value)
        marks = (self._table.schema.metadata or {}).get(_MARKS, b"{}")
        self.marks = {agent: Mark(journal, seq) for agent, (journal, seq) in json.loads(marks).items()}
        self._loaded: dict[LogKey, LogState] = {}
        self._rows = {LogKey(*key): row for row, key in enumerate(_tuples(self._table, _KEY))}

    def load(self, keys: Iterable[LogKey]) -> None:
        """Make the states of these logs Python objects, all at once: one by one it costs several times as much."""
        rows = [row for key in set(keys) if (row := self._rows.get(key)) is not None and key not in self._loaded]
        columns = self._table.take(pa.array(rows, pa.int64()))
        for each in _tuples(columns, _NAMES):
            values: dict[str, Any] = dict(zip(_NAMES, each, strict=True))
            state = LogState(**values)
            self._loaded[state.key] = state

    def find(self, key: LogKey) -> LogState | None:
        """The state of a log, None for one that is not known."""
        if key in self._rows and key not in self._loaded:
            self.load([key])
        return self._loaded.get(key)

    def known(self) -> Iterator[tuple[LogKey, str]]:
        """All logs and the agents that watch them."""
        return zip(self._rows, self._table["agent"].to_pylist(), strict=True)

    def updated(self, touched: Mapping[LogKey, LogState | None], marks: Mapping[str, Mark]) -> bytes:
        """The value with some logs replaced (or, where None, removed), and with other marks."""
        kept = [row for key, row in self._rows.items() if key not in touched]
        rest = self._table if len(kept) == self._table.num_rows else self._table.take(pa.array(kept, pa.int64()))
        fresh = _table([_VALUES(state) for state in touched.values() if state is not None])
        schema = _SCHEMA.with_metadata({_MARKS: json.dumps({agent: [mark.journal, mark.seq] for agent, mark in marks.items()})})
        table = pa.concat_tables([rest.cast(_SCHEMA), fresh]).combine_chunks().cast(schema)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema) as writer:
            writer.write_table(table)
        return bytes([_VERSION]) + bytes(sink.getvalue())


def _open(value: bytes) -> pa.Table:
    if not 1 <= value[0] <= _VERSION:
        raise CheckpointError(f"the checkpoint's state is of version {value[0]}, this segtail reads {_VERSION}: use a newer segtail")
    table = pa.ipc.open_stream(pa.py_buffer(value)[1:]).read_all()
    return table if table.schema.equals(_SCHEMA) else _with_defaults(table)


def _with_defaults(table: pa.Table) -> pa.Table:
    """A table of an earlier version: what it knows nothing of stands as for a log that was just seen."""
    defaults = {field.name: field.default for field in fields(LogState)}
    columns = [
        table[each.name] if each.name in table.schema.names else pa.array([defaults[each.name]] * len(table), each.type) for each in _SCHEMA
    ]
    return pa.Table.from_arrays(columns, schema=_SCHEMA.with_metadata(table.schema.metadata))


def _table(rows: list[tuple[Any, ...]]) -> pa.Table:
    columns: Iterable[Any] = zip(*rows, strict=True) if rows else [()] * len(_SCHEMA)
    return pa.Table.from_arrays([pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)], schema=_SCHEMA)


def _tuples(table: pa.Table, names: Iterable[str]) -> Iterator[tuple[Any, ...]]:
    return zip(*(_column(table, name) for name in names), strict=True)


def _column(table: pa.Table, name: str) -> list[Any]:
    values: list[Any] = table[name].to_pylist()
    return [tuple(value) for value in values] if name in _LISTS else values
