"""The catalog of one agent process in versions: rows, what changed of them since a version, and that put into what was known.

It has decided values of topics, partitions and logs. They are not counted: the last value wins. Agents send it; a page joins it with the
table.
"""

from __future__ import annotations

import io
import struct
import threading
import uuid
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streaming.common.arrays import Flags, Longs
from streaming.common.arrow_streams import cast_columns, inflate, read_stream
from streaming.common.log_key import KEY
from streaming.errors import FormatError

_TEXT, _INT, _LONG = pa.string(), pa.int32(), pa.int64()
_INTS = pa.list_(_INT)

TOPICS = pa.schema([("broker", _INT), ("topic", _TEXT), ("topic_id", _TEXT), ("configs", _TEXT)])
"""``configs``: the configuration of a topic in the files of a broker (`streaming.rules.config_values.Configs.text`)."""

PARTITIONS = pa.schema(
    [
        ("topic", _TEXT),
        ("topic_id", _TEXT),
        ("partition", _INT),
        ("leader", _INT),
        ("leader_epoch", _INT),
        ("replicas", _INTS),
        ("adding_replicas", _INTS),
        ("isr", _INTS),
        ("leader_metadata_version", _INT),
        ("eligible", _INTS),
    ]
)
"""The state of partitions in the newest copy of the metadata log that the agent reads.

``leader`` is -1 if there is no leader, and -2 if the leader is not known; then ``leader_epoch`` is -1. ``replicas`` (without
``adding_replicas``, which a reassignment adds) and ``isr`` are broker ids, null if they are not known. ``leader_metadata_version`` is the
highest metadata.version that the leader's registration supports. It is -1 if the registration names none (before Kafka 3.3), if there is
no leader, or if it is not known. ``eligible`` are the eligible leader replicas of a partition, which are not in sync: each of them has
everything up to the high watermark (KIP-966). Null if they are not known.
"""

LOGS = pa.schema(
    [
        ("broker", _INT),
        ("topic", _TEXT),
        ("topic_id", _TEXT),
        ("partition", _INT),
        ("high_watermark", _LONG),
        ("cleaner_checkpoint", _LONG),
        ("log_start_checkpoint", _LONG),
        ("recovery_point", _LONG),
        ("recovery_position", _LONG),
        ("moving", _LONG),
        ("epochs", pa.binary()),
    ]
)
"""Offsets of a log in checkpoint files: -1 if there is no entry, `UNREADABLE` if the file cannot be used.

``recovery_position``: so many bytes of the segment that holds the recovery point lie below it, at least.
``moving``: 1 while a copy of the log is being made in another log dir of its broker (`-future`), else 0.
``epochs``: an array of `EPOCHS`, what was appended to the log in which leader epoch.
"""

EPOCHS = np.dtype([("epoch", "<i4"), ("start_offset", "<i8"), ("began_ms", "<i8")])
"""Leader epochs, ascending: of each the first offset, -1 if the log has none of it, and when it began by the metadata log, Unix
milliseconds, -1 if that is not known. Epoch 0 begins when its partition is created. One that an unclean election began has
`streaming.kafka.formats.metadata_partitions.by_unclean` of that time, and is there also if the log has none of it.
"""

_EPOCH = struct.Struct("<iqq")  # as one of these, in a tenth of the time

MOST_EPOCHS = 16
"""How many of the latest epochs of a log, and besides them epoch 0, are in its row."""

UNREADABLE = -2
"""In place of an offset: the checkpoint file exists but cannot be read, or its version is not known."""

SCHEMAS = (TOPICS, PARTITIONS, LOGS)
_EMPTY = {name: pa.Table.from_batches([], schema) for name, schema in (("topics", TOPICS), ("partitions", PARTITIONS), ("logs", LOGS))}

MOST_CATALOG_BYTES = 256 << 20
"""The most bytes to which what an agent sends of its catalog is unpacked: those of a million partitions or more."""

GONE = "gone"
_GONE = pa.field(GONE, pa.bool_())

MOST_GONE = 10_000
"""How many removed rows of each table are remembered. A version from before the oldest of them gets the whole catalog."""


class Editions:
    """The catalog of an agent, and which of its rows have changed since which version. One thread updates it; any thread may read it.

    The versions of the catalog of one agent process: which rows have changed since which version.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = uuid.uuid4().hex
        self._number = 0
        self._made = False
        self._tables = tuple(_VersionedRows(table) for table in NOTHING_DECIDED.tables)

    def update(self, catalog: Catalog) -> None:
        """Replace the catalog. The version changes only if the new catalog differs."""
        with self._lock:
            self._made = True
            number = self._number + 1
            changed = [rows.update(table, number) for rows, table in zip(self._tables, catalog.tables, strict=True)]
            self._number += any(changed)

    def since(self, versions: Iterable[Version]) -> Changes | None:
        """The changes since the newest ``versions`` version of this process; the whole catalog if none of ``versions`` is of this process.

        None before the first catalog is made, because an unknown catalog is not an empty one.
        """
        with self._lock:
            if not self._made:
                return None
            numbers = [each.number for each in versions if each.process == self._process]
            number = max(numbers, default=-1)
            whole = number < max(rows.forgotten for rows in self._tables) or number > self._number
            tables = tuple(rows.since(-1 if whole else number, gone=not whole) for rows in self._tables)
            return Changes(version=Version(self._process, self._number), whole=whole, tables=tables)


class _VersionedRows:
    """One table, with the version number at which each row changed last."""

    def __init__(self, table: pa.Table) -> None:
        self.forgotten = 0
        """The changes since a version before this one cannot be determined any more."""
        self._table = table
        self._key = key_of(table.schema)
        self._spelled = spelled(table, self._key)
        self._changed: Longs = np.empty(0, np.int64)
        self._gone = table.select(self._key)
        self._gone_at: Longs = np.empty(0, np.int64)

    def update(self, table: pa.Table, number: int) -> bool:
        """Returns whether anything has changed."""
        if table.equals(self._table):
            return False
        names = self._spelled if table.select(self._key).equals(self._table.select(self._key)) else spelled(table, self._key)
        known_rows: Longs = _ints(pc.fill_null(pc.index_in(names, value_set=self._spelled), -1)).astype(np.int64)
        same = _same(table, self._table, known_rows)
        changed: Longs = np.where(same, self._changed[known_rows] if len(self._changed) else 0, number)
        left = np.ones(len(self._table), np.bool_)
        left[known_rows[known_rows >= 0]] = False
        self._leave(self._table.select(self._key).filter(pa.array(left)), number, names)
        self._table, self._spelled, self._changed = table, names, changed
        return True

    def _leave(self, gone: pa.Table, number: int, there: pa.Array) -> None:
        """Remember the removed rows, except those that have come back."""
        away = ~_ints(pc.is_in(spelled(self._gone, self._key), value_set=there))
        at = np.append(self._gone_at[away], np.full(len(gone), number, np.int64))
        rows = pa.concat_tables([self._gone.filter(pa.array(away)), gone])
        if len(rows) > MOST_GONE:
            self.forgotten = int(at[-MOST_GONE // 2 - 1])
            kept = at > self.forgotten
            rows, at = rows.filter(pa.array(kept)), at[kept]
        self._gone, self._gone_at = rows.combine_chunks(), at

    def since(self, number: int, *, gone: bool) -> pa.Table:
        rows = with_gone(self._table.filter(pa.array(self._changed > number)), gone=False)
        lost = self._gone.filter(pa.array(self._gone_at > number))
        if not gone or not len(lost):
            return rows
        columns = [lost[each.name] if each.name in self._key else pa.nulls(len(lost), each.type) for each in self._table.schema]
        return pa.concat_tables([rows, with_gone(pa.Table.from_arrays(columns, schema=self._table.schema), gone=True)])


def key_of(schema: pa.Schema) -> list[str]:
    """The columns that identify a row of a table."""
    return [name for name in KEY if name in schema.names]


def spelled(rows: pa.Table, key: list[str]) -> pa.Array:
    """The key of each row as one text, its parts joined by slashes: no topic name and no topic id contains a slash."""
    columns = [pc.cast(rows[name], _TEXT) for name in key]
    return together(pc.binary_join_element_wise(*columns, "/"))


def together(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column in one piece."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _ints(column: Any) -> NDArray[Any]:
    values: NDArray[Any] = together(column).to_numpy(zero_copy_only=False)
    return values


def _same(table: pa.Table, before: pa.Table, known_rows: Longs) -> Flags:
    """Whether each row is equal to the earlier row with the same key."""
    same: Flags = known_rows >= 0
    if not same.any():
        return same
    earlier = before.take(pa.array(known_rows.clip(0)))
    for name in table.column_names:
        now, then = _comparable(table[name]), _comparable(earlier[name])
        both_null = pc.and_(pc.is_null(now), pc.is_null(then))
        same = same & (_ints(pc.fill_null(pc.equal(now, then), False)) | _ints(both_null))
    return same


def _comparable(column: pa.ChunkedArray) -> pa.Array:
    whole = together(column)
    return pc.binary_join(whole.cast(pa.list_(pa.string())), ",") if pa.types.is_list(whole.type) else whole


def with_gone(rows: pa.Table, *, gone: bool) -> pa.Table:
    """Rows of a catalog's table, marked as present or as gone."""
    return rows.append_column(_GONE, pa.array([gone] * len(rows), _GONE.type))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Catalog:
    """All decided values that one agent knows. A topic without an id ("") is identified by its name. No key occurs twice."""

    topics: pa.Table
    partitions: pa.Table
    logs: pa.Table

    @property
    def tables(self) -> tuple[pa.Table, pa.Table, pa.Table]:
        """The tables in the order of `SCHEMAS`."""
        return self.topics, self.partitions, self.logs


NOTHING_DECIDED = Catalog(**_EMPTY)  # not by `empty_table`, which imports pandas if it is there


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A version of a catalog: ``process`` names the agent's process that made it, ``number`` grows with every change in that process."""

    process: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Changes:
    """Changes that lead to ``version``: each row replaces the row with the same key; a row with `GONE` set only removes it.

    Changes of a catalog: their form in a message, and how they are applied to a known catalog.

    ``whole``: these rows are the whole catalog, whatever was known before. ``tables``: one for each of
    `streaming.common.catalog.SCHEMAS`, with `GONE` as an additional last column.
    """

    version: Version
    whole: bool
    tables: tuple[pa.Table, ...]

    def applied(self, catalog: Catalog) -> Catalog:
        """The catalog after these changes. ``catalog`` must be of the version for which they were requested."""
        before = NOTHING_DECIDED if self.whole else catalog
        topics, partitions, logs = (
            _replaced(table, rows, schema) for table, rows, schema in zip(before.tables, self.tables, SCHEMAS, strict=True)
        )
        return Catalog(topics=topics, partitions=partitions, logs=logs)

    def pack(self) -> str:
        """The tables as text for a message; "" if all are empty."""
        if not any(map(len, self.tables)):
            return ""
        streams = [_stream(table) for table in self.tables]
        lengths = b"".join(len(stream).to_bytes(4, "little") for stream in streams)
        return b64encode(zlib.compress(lengths + b"".join(streams), 1)).decode()


def _replaced(table: pa.Table, rows: pa.Table, schema: pa.Schema) -> pa.Table:
    if not len(rows):
        return table
    there = rows.filter(pc.invert(rows[GONE])).select(schema.names)
    if len(table):
        key = key_of(schema)
        kept = table.filter(pc.invert(pc.is_in(spelled(table, key), value_set=spelled(rows, key))))
        there = pa.concat_tables([kept, there])
    return there.combine_chunks()


def _stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(memoryview(sink.getvalue()))


def packed_epochs(start_offsets: Mapping[int, int], began_ms: Mapping[int, int]) -> bytes:
    """The latest epochs that a log has, by epoch, those of unclean elections, and the first one where it is known when that began."""
    others = {epoch for epoch, at_ms in began_ms.items() if epoch == 0 or at_ms < -1}
    known = sorted(others | start_offsets.keys())
    kept = [epoch for at, epoch in enumerate(known) if epoch == 0 or at >= len(known) - MOST_EPOCHS]
    return b"".join([_EPOCH.pack(epoch, start_offsets.get(epoch, -1), began_ms.get(epoch, -1)) for epoch in kept])


def unpack(packed: str, version: Version, *, whole: bool) -> Changes:
    """Decode the text that `Changes.pack` made. Columns that are not known here are ignored.

    Raises:
        FormatError: the text is something else, or a column is missing.
    """
    if not packed:
        return Changes(version=version, whole=whole, tables=tuple(_schema(schema).empty_table() for schema in SCHEMAS))
    try:
        stream = io.BytesIO(inflate(b64decode(packed), MOST_CATALOG_BYTES))
        lengths = [int.from_bytes(stream.read(4), "little") for _ in SCHEMAS]
        found = [read_stream(stream.read(length)) for length in lengths]
        tables = tuple(cast_columns(table, _schema(schema)) for table, schema in zip(found, SCHEMAS, strict=True))
    except (ValueError, KeyError, pa.ArrowException) as error:
        raise FormatError(f"a catalog is not understood: {packed[:80]!r} ({error})") from error
    return Changes(version=version, whole=whole, tables=tables)


def _schema(schema: pa.Schema) -> pa.Schema:
    return schema.append(_GONE)
