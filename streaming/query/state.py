"""The state of one shard as Spark keeps it: one versioned Arrow value, of which only the touched rows become Python objects.

Layout: a byte with the version, then an Arrow IPC stream with a row for every log, sorted by nothing. Versions: 1.
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from streaming.errors import CheckpointError
from streaming.rows import STATES
from streaming.rules.log_state import LogKey, LogState

_VERSION = 1
_NOT_KEPT = ("change", "shard")
_SCHEMA = pa.schema(
    [field for field in STATES if field.name not in _NOT_KEPT]
    + [pa.field("journal", pa.string()), pa.field("seq", pa.int64()), pa.field("departed", pa.bool_())]
)
_KEY = ("broker", "topic", "partition", "topic_id")
_LISTS = frozenset(field.name for field in _SCHEMA if pa.types.is_list(field.type))


class ShardState:
    """The logs of one shard, as the last micro-batch left them."""

    def __init__(self, value: bytes | None) -> None:
        """Open what `updated` made, None for a shard without logs.

        Raises:
            CheckpointError: it was written by a later version.
        """
        self._table = _SCHEMA.empty_table() if value is None else _open(value)
        self._rows = {LogKey(*key): row for row, key in enumerate(_tuples(self._table, _KEY))}

    def find(self, key: LogKey) -> LogState | None:
        """The state of a log, None for one that is not known."""
        row = self._rows.get(key)
        return None if row is None else _state(self._table.slice(row, 1).to_pylist()[0])

    def known(self) -> Iterator[tuple[LogKey, str]]:
        """All logs and the agents that watch them."""
        return zip(self._rows, self._table["agent"].to_pylist(), strict=True)

    def updated(self, touched: dict[LogKey, LogState | None]) -> bytes:
        """The value with some logs replaced (or, where None, removed)."""
        kept = [row for key, row in self._rows.items() if key not in touched]
        rest = self._table if len(kept) == self._table.num_rows else self._table.take(pa.array(kept, pa.int64()))
        fresh = pa.Table.from_pylist([asdict(state) for state in touched.values() if state is not None], _SCHEMA)
        table = pa.concat_tables([rest, fresh]).combine_chunks()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, _SCHEMA) as writer:
            writer.write_table(table)
        return bytes([_VERSION]) + bytes(sink.getvalue())


def _open(value: bytes) -> pa.Table:
    if value[0] != _VERSION:
        raise CheckpointError(f"the checkpoint's state is of version {value[0]}, this segtail reads {_VERSION}: use a newer segtail")
    return pa.ipc.open_stream(pa.py_buffer(value)[1:]).read_all()


def _tuples(table: pa.Table, names: Iterable[str]) -> Iterator[tuple[Any, ...]]:
    return zip(*(table[name].to_pylist() for name in names), strict=True)


def _state(row: dict[str, Any]) -> LogState:
    for name in _LISTS:
        row[name] = tuple(row[name])
    return LogState(**row)
