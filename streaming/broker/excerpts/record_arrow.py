"""Records as Arrow columns: those of Spark's Kafka source, by name (`KafkaRecordToRowConverter`). What is not wanted is not copied.

A record without headers has null there. A message of magic 0 has the timestamp -1 and the timestamp type -1, as in Kafka's consumer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streaming.common.arrays import Flags, Longs
from streaming.kafka.formats.records import Record
from streaming.kafka.scan.record_fields import HeaderFields, RecordFields, Spans
from streaming.kafka.scan.walk import Bytes

NO_TIMESTAMP_TYPE, CREATE_TIME, LOG_APPEND_TIME = -1, 0, 1
"""`TimestampType.id`."""

_MICROS = 1000  # in a millisecond
_MOST_MS = (2**63 - 1) // _MICROS
_MOST_BYTES = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Stamps:
    """Of each record: its offset, its timestamp (Unix milliseconds, -1 none), and whose time that is."""

    offsets: Longs
    timestamps: Longs
    types: Longs


class RecordArrow:
    """Makes batches of Arrow rows of one partition.

    Args:
        schema: the wanted columns.
    """

    def __init__(self, schema: pa.Schema, topic: str, partition: int) -> None:
        self._schema = schema
        self._topic = topic
        self._partition = partition
        self.headers = "headers" in schema.names
        """Whether headers are wanted."""

    def of_fields(self, data: Bytes, fields: RecordFields, stamps: Stamps) -> pa.RecordBatch:
        """The rows of records that were found in a buffer of less than 2 GiB. The buffer is not needed afterwards."""
        made: dict[str, Callable[[], pa.Array]] = {
            "key": lambda: binary(data, fields.keys),
            "value": lambda: binary(data, fields.values),
            "headers": lambda: self._headers(data, fields.headers),
        }
        return self._rows(stamps, made)

    def of_records(self, records: Sequence[Record], types: Sequence[int]) -> pa.RecordBatch:
        """The rows of records that were opened one by one; ``types`` are their timestamp types."""
        numbers = np.array([(record.offset, record.timestamp) for record in records], np.int64).reshape(-1, 2)
        stamps = Stamps(numbers[:, 0], numbers[:, 1], np.array(types, np.int64))
        headers = [[{"key": _text(each.name), "value": each.value} for each in record.headers] or None for record in records]
        made: dict[str, Callable[[], pa.Array]] = {
            "key": lambda: pa.array([record.key for record in records], pa.binary()),
            "value": lambda: pa.array([record.value for record in records], pa.binary()),
            "headers": lambda: pa.array(headers, self._schema.field("headers").type),
        }
        return self._rows(stamps, made)

    def _rows(self, stamps: Stamps, made: dict[str, Callable[[], pa.Array]]) -> pa.RecordBatch:
        count = len(stamps.offsets)
        made |= {
            "topic": lambda: pa.repeat(pa.scalar(self._topic, pa.string()), count),
            "partition": lambda: pa.repeat(pa.scalar(self._partition, pa.int32()), count),
            "offset": lambda: _numbers(stamps.offsets, pa.int64()),
            "timestamp": lambda: _numbers(np.clip(stamps.timestamps, -_MOST_MS, _MOST_MS) * _MICROS, self._schema.field("timestamp").type),
            "timestampType": lambda: _numbers(stamps.types.astype(np.int32), pa.int32()),
        }
        return pa.RecordBatch.from_arrays([made[name]() for name in self._schema.names], schema=self._schema)

    def _headers(self, data: Bytes, headers: HeaderFields | None) -> pa.Array:
        assert headers is not None, "they were asked for"
        kind = self._schema.field("headers").type
        names, contents = binary(data, headers.names), binary(data, headers.contents)
        try:
            names = names.cast(pa.string())
        except pa.ArrowInvalid:  # not UTF-8: as Java reads it
            names = pa.array([_text(each) for each in names.to_pylist()], pa.string())
        pairs = pa.StructArray.from_arrays([names, contents], fields=list(kind.value_type))
        ends = np.zeros(len(headers.counts) + 1, np.int32)
        np.cumsum(headers.counts, out=ends[1:])
        return pa.Array.from_buffers(kind, len(headers.counts), [_validity(headers.counts > 0), pa.py_buffer(ends)], children=[pairs])


def binary(data: Bytes, spans: Spans) -> pa.Array:
    """The bytes of fields that follow each other in a buffer of less than 2 GiB, as an array of their own."""
    count = len(spans.starts)
    if not count:
        return pa.array([], pa.binary())
    bounds = np.empty(2 * count, np.int32)  # of an array of fields and of what lies between them, by turns
    bounds[0::2] = spans.starts
    bounds[1::2] = spans.starts + np.maximum(spans.sizes, 0)
    by_turns = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [None, pa.py_buffer(bounds), pa.py_buffer(data)])
    taken = by_turns.take(_numbers(np.arange(0, 2 * count, 2, dtype=np.int32), pa.int32()))
    there = spans.sizes >= 0
    return taken if there.all() else pa.Array.from_buffers(pa.binary(), count, [_validity(there), *taken.buffers()[1:]])


def _numbers(values: np.ndarray, kind: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def _validity(there: Flags) -> pa.Buffer | None:
    return None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace")
