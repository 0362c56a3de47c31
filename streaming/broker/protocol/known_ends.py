"""How far a job has counted each log, and how it tells agents: packed, so that 200,000 logs are one message."""

import base64
import binascii
import zlib
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from streaming.common.arrow_streams import inflate, read_stream
from streaming.common.log_key import KEY, LogKey
from streaming.common.log_positions import KnownEnd
from streaming.errors import FormatError

MOST_LOGS = 500_000
"""The most logs of a message."""

MOST_BYTES = 64 << 20
"""The most bytes that they take unpacked: a log has 28, and the names of topics come once."""

_VERSION = 1
_LEVEL = 1  # of zlib: higher ones take several times as long, for a tenth

_TEXT = pa.dictionary(pa.int32(), pa.string())
_SCHEMA = pa.schema(
    [
        *zip(KEY, (pa.int32(), _TEXT, pa.int32(), _TEXT), strict=True),
        *zip(KnownEnd._fields, (pa.int64(), pa.int32()), strict=True),
    ]
)


def unpack(packed: str) -> dict[LogKey, KnownEnd]:
    """The ends that `pack` has packed.

    Raises:
        FormatError: it is damaged, too large, or of another version.
    """
    if not packed:
        return {}
    version, _, data = packed.partition(":")
    if version != str(_VERSION):
        raise FormatError(f"positions of logs are of version {version!r:.20}, and this one reads {_VERSION}")
    try:
        table = read_stream(inflate(base64.b64decode(data, validate=True), MOST_BYTES))
        if table.schema != _SCHEMA or not 0 < len(table) <= MOST_LOGS or any(column.null_count for column in table.columns):
            raise ValueError(f"{len(table)} rows of {table.schema.names}")
        return _ends(table)
    except (ValueError, binascii.Error, pa.ArrowException) as error:
        raise FormatError(f"positions of logs are damaged ({error!s:.200})") from error


def _ends(table: pa.Table) -> dict[LogKey, KnownEnd]:
    brokers, topics, partitions, ids, offsets, epochs = (_values(table[name]) for name in _SCHEMA.names)
    if min(offsets) < 0 or min(epochs) < -1:
        raise ValueError("an offset or an epoch is negative")
    found = dict(zip(map(LogKey, brokers, topics, partitions, ids), map(KnownEnd, offsets, epochs), strict=True))
    if len(found) != len(table):
        raise ValueError("a log comes twice")
    return found


def _values(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column. A text that many rows have is one object: unpacked it would take any memory."""
    if column.type != _TEXT:
        return list(column.to_pylist())
    return [text for chunk in column.chunks for text in map(chunk.dictionary.to_pylist().__getitem__, chunk.indices.to_pylist())]


def pack(ends: Mapping[LogKey, KnownEnd]) -> str:
    """The ends as text for a message; "" for none. A sender with more than `MOST_LOGS` leaves some out: of these it gets everything."""
    if not ends:
        return ""
    rows = sorted((*key, *end) for key, end in ends.items())[:MOST_LOGS]
    columns = [
        pa.array(column, pa.string()).dictionary_encode() if each.type == _TEXT else pa.array(column, each.type)
        for column, each in zip(zip(*rows, strict=True), _SCHEMA, strict=True)
    ]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _SCHEMA) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=_SCHEMA))
    return f"{_VERSION}:{base64.b64encode(zlib.compress(memoryview(sink.getvalue()), _LEVEL)).decode()}"
