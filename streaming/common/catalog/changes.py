"""Changes of a catalog: their form in a message, and how they are applied to a known catalog."""

import io
import zlib
from base64 import b64decode, b64encode
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from streaming.common.arrow_streams import cast_columns, inflate, read_stream
from streaming.common.catalog.catalog_tables import NOTHING_DECIDED, SCHEMAS, Catalog, key_of, spelled
from streaming.errors import FormatError

MOST_CATALOG_BYTES = 256 << 20
"""The most bytes to which what an agent sends of its catalog is unpacked: those of a million partitions or more."""

GONE = "gone"
_GONE = pa.field(GONE, pa.bool_())


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A version of a catalog: ``process`` names the agent's process that made it, ``number`` grows with every change in that process."""

    process: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Changes:
    """Changes that lead to ``version``: each row replaces the row with the same key; a row with `GONE` set only removes it.

    ``whole``: these rows are the whole catalog, whatever was known before. ``tables``: one for each of
    `streaming.common.catalog.catalog_tables.SCHEMAS`, with `GONE` as an additional last column.
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


def with_gone(rows: pa.Table, *, gone: bool) -> pa.Table:
    """Rows of a catalog's table, marked as present or as gone."""
    return rows.append_column(_GONE, pa.array([gone] * len(rows), _GONE.type))


def _schema(schema: pa.Schema) -> pa.Schema:
    return schema.append(_GONE)


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
