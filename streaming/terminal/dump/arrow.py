"""Writes tables as an Arrow IPC stream or a Parquet file.

Arrays are made directly from numpy's memory: pyarrow's own conversion imports pandas if it is installed, which takes a quarter of a second.
"""

import json
from functools import lru_cache
from typing import BinaryIO, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streaming.terminal.dump.row_table import Cell, Cells, Choices, Column, Flags, Numbers, RowTable

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


class ArrowSink:
    """An IPC stream of record batches, one schema."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._writer: pa.RecordBatchStreamWriter | None = None

    def write(self, table: RowTable) -> None:
        """Append a table."""
        batch = record_batch(table)
        if self._writer is None:
            self._writer = pa.ipc.new_stream(
                pa.PythonFile(self._out, "w"), batch.schema, options=pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
            )
        self._writer.write_batch(batch)

    def close(self) -> None:
        """Write the end of the stream."""
        if self._writer is not None:
            self._writer.close()


def record_batch(table: RowTable) -> pa.RecordBatch:
    """Convert a table to a record batch, with the file in its last column."""
    columns = (*table.columns, Choices("file", np.zeros(table.rows, np.int8), (table.path,)))
    return pa.RecordBatch.from_arrays([_array(column) for column in columns], names=[column.name for column in columns])


def _array(column: Column) -> pa.Array:
    match column:
        case Numbers(values=values, nullable=nullable):
            return _numbers(values, values == -1 if nullable else None)
        case Flags(values=flags):
            bits = np.packbits(flags, bitorder="little")
            return pa.Array.from_buffers(pa.bool_(), len(flags), [None, pa.py_buffer(bits)])
        case Choices(codes=codes, names=names):
            return pa.DictionaryArray.from_arrays(_numbers(codes.astype(np.int8, copy=False), None), _strings(names), safe=False)
        case Cells(name="headers", values=values):
            return pa.array(values, HEADERS)
        case Cells(values=values, raw=True):
            return pa.array([None if value is None else _bytes(value) for value in values], pa.binary())
        case Cells(values=values):
            return pa.array([None if value is None else value if isinstance(value, str) else _json(value) for value in values], pa.string())


def _numbers(values: NDArray[np.integer], none: NDArray[np.bool_] | None) -> pa.Array:
    values = np.ascontiguousarray(values)
    kind = pa.from_numpy_dtype(values.dtype)
    validity = None
    if none is not None and none.any():
        validity = pa.py_buffer(np.packbits(~none, bitorder="little"))
    return pa.Array.from_buffers(kind, len(values), [validity, pa.py_buffer(values)])


@lru_cache(maxsize=16)  # a segment's tables have the same few names
def _strings(texts: tuple[str, ...]) -> pa.Array:
    data = [text.encode(errors="backslashreplace") for text in texts]
    ends = np.cumsum([0, *map(len, data)], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(data), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(data))])


def _bytes(value: Cell) -> bytes:
    if isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else _json(value)).encode()


def _json(value: Cell) -> str:
    return json.dumps(value, ensure_ascii=False)


class ParquetSink:
    """One Parquet file, one row group for as many rows as a window of a segment holds."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._writer: object | None = None

    def write(self, table: RowTable) -> None:
        """Append a table."""
        import pyarrow.parquet as pq  # here, because it is slow to import

        batch = record_batch(table)
        if self._writer is None:
            self._writer = pq.ParquetWriter(pa.PythonFile(self._out, "w"), batch.schema, compression="zstd")
        cast(pq.ParquetWriter, self._writer).write_batch(batch)

    def close(self) -> None:
        """Write the footer."""
        if self._writer is not None:
            self._writer.close()  # type: ignore[attr-defined]
