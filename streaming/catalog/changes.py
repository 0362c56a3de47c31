"""What changed of a catalog: as it crosses the wire, and put into what was known."""

import io
import zlib
from base64 import b64decode, b64encode
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from streaming.catalog.tables import NOTHING_DECIDED, SCHEMAS, Catalog, key_of, spelled
from streaming.errors import FormatError

GONE = "gone"
_GONE = pa.field(GONE, pa.bool_())


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """Which state of a catalog: ``process`` names the agent's process that made it, ``number`` goes up with every change there."""

    process: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Changes:
    """What leads to ``version``: rows that take the place of those with their keys, or, where `GONE`, only remove them.

    ``whole``: all there is, whatever was known before. ``tables``: of `streaming.catalog.tables.SCHEMAS`, each with `GONE` behind.
    """

    version: Version
    whole: bool
    tables: tuple[pa.Table, ...]

    def applied(self, known: Catalog) -> Catalog:
        """The catalog after them; what was ``known`` has to be of the version that they were asked for."""
        before = NOTHING_DECIDED if self.whole else known
        topics, partitions, logs = (
            _replaced(table, rows, schema) for table, rows, schema in zip(before.tables, self.tables, SCHEMAS, strict=True)
        )
        return Catalog(topics=topics, partitions=partitions, logs=logs)

    def pack(self) -> str:
        """The tables as text that goes into a message; "" for none."""
        if not any(map(len, self.tables)):
            return ""
        streams = [_stream(table) for table in self.tables]
        lengths = b"".join(len(stream).to_bytes(4, "little") for stream in streams)
        return b64encode(zlib.compress(lengths + b"".join(streams), 1)).decode()


def unpack(packed: str, version: Version, *, whole: bool) -> Changes:
    """What `Changes.pack` made. Columns that are not known here are passed over.

    Raises:
        FormatError: it is something else, or lacks a column.
    """
    if not packed:
        return Changes(version=version, whole=whole, tables=tuple(_schema(schema).empty_table() for schema in SCHEMAS))
    try:
        stream = io.BytesIO(zlib.decompress(b64decode(packed)))
        lengths = [int.from_bytes(stream.read(4), "little") for _ in SCHEMAS]
        found = [pa.ipc.open_stream(stream.read(length)).read_all() for length in lengths]
        tables = tuple(table.select(_schema(schema).names).cast(_schema(schema)) for table, schema in zip(found, SCHEMAS, strict=True))
    except (ValueError, KeyError, zlib.error, OSError, pa.ArrowException) as error:
        raise FormatError(f"a catalog is not understood: {packed[:80]!r} ({error})") from error
    return Changes(version=version, whole=whole, tables=tables)


def with_gone(rows: pa.Table, *, gone: bool) -> pa.Table:
    """Rows of a catalog's table, said to be there or gone."""
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
