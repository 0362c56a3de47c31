"""Rows as agents send them, as rows of the relations that all queries read (`streaming.spark.source.relations`), column by column."""

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql.pandas.types import to_arrow_schema

from streaming.common.codecs import CODECS
from streaming.common.rows import TRANSACTION_STEPS, StartSource, Step
from streaming.rules.transaction_fold import Steps
from streaming.spark.source.relations import SCHEMAS, Relation

TIME = pa.timestamp("us", "UTC")

MOST_MS = ((1 << 63) - 1) // 1000
"""The latest time that a timestamp can hold, Unix milliseconds. Clients may write any number of 64 bits."""

_NO_NUMBER = {each: pa.scalar(None, each) for each in (pa.int32(), pa.int64())}
_NO_TEXT = pa.scalar(None, pa.string())

SOURCES = pa.array(["", *(source.name.lower() for source in StartSource)])
"""Where the time of a beginning is from, by `StartSource`."""

_MARKERS = pa.array([step.name.lower() for step in Step])

ARROW = {relation: to_arrow_schema(schema, timezone="UTC") for relation, schema in SCHEMAS.items()}
"""The schemas of the relations as Spark takes them."""

_ENDS = pa.array(["aborted", "committed", "open"])
_CODECS = pa.array(CODECS)
_ZERO = pa.scalar(0, pa.int64())

_PLAIN = ("topic", "bytes", "batches", "records", "old_format_batches")
_KNOWN = ("broker", "partition", "segment", "start_position", "end_position", "base_offset", "next_offset")
_KNOWN_TEXTS = ("log_dir", "topic_id", "reason")


def public_ranges(events: pa.Table) -> pa.RecordBatch:
    """Rows of `RANGES`, of those of `streaming.common.event_row.EVENTS` that are of kind APPENDED."""
    rows = one_batch(events)
    schema = ARROW[Relation.RANGES]
    markers, transactions = markers_and_transactions(rows["transactions"], schema.field("markers").type, schema.field("transactions").type)
    columns: dict[str, pa.Array] = {name: rows[name] for name in _PLAIN}
    columns |= {name: known(rows[name]) for name in _KNOWN}
    columns |= {name: known_text(rows[name]) for name in _KNOWN_TEXTS}
    columns |= {
        "kind": rows["kind"],
        "leader_epoch": known(rows["log_epoch"]),
        "is_leader": pc.equal(known(rows["leads"]), 1),
        "max_timestamp": times(rows["max_timestamp"]),
        "codec_bytes": _codec_bytes(rows["codec_bytes"], schema.field("codec_bytes").type),
        "markers": markers,
        "transactions": transactions,
        "missing_bytes": pa.repeat(_ZERO, rows.num_rows),
    }
    columns |= {name: rows[name].cast(schema.field(name).type) for name in ("batch_bytes_buckets", "batch_records_buckets")}
    return _batch(columns, schema)


def one_batch(rows: pa.Table | pa.RecordBatch) -> pa.RecordBatch:
    """The rows as one batch, whose columns are arrays."""
    if isinstance(rows, pa.RecordBatch):
        return rows
    (batch,) = rows.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], rows.schema)]
    return batch


def markers_and_transactions(packed: pa.Array, markers: pa.ListType, transactions: pa.ListType) -> tuple[pa.Array, pa.Array]:
    """Both columns, of packed steps; an empty list where there is none.

    The markers and the transactions of ranges as lists, one of each for a row, unpacked for all rows at once.

    What was open before a row (steps of kind ONGOING) did not happen in it, and is in neither.

    Args:
        packed: `streaming.common.rows.TRANSACTION_STEPS` for each row, or null.
        markers: the type of the first column.
        transactions: that of the second one.
    """
    if packed.null_count == len(packed):
        return _lists({}, np.zeros(len(packed), np.int64), markers), _lists({}, np.zeros(len(packed), np.int64), transactions)
    steps, counts = _unpacked(packed)
    owners = np.repeat(np.arange(len(counts)), counts)
    ends = (steps["step"] == Step.COMMIT) | (steps["step"] == Step.ABORT)
    data = steps["step"] == Step.DATA
    return (
        _lists(_marker_columns(steps.compress(ends)), _counts(owners, ends, len(counts)), markers),
        _lists(_transaction_columns(steps.compress(data)), _counts(owners, data, len(counts)), transactions),
    )


def _lists(columns: Mapping[str, pa.Array], counts: NDArray[np.int64], kind: pa.ListType) -> pa.Array:
    """A list for each row, of as many items as its count."""
    fields = list(kind.value_type)
    values = [columns[each.name].cast(each.type) if columns else pa.nulls(0, each.type) for each in fields]
    offsets = np.append(0, np.cumsum(counts)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.StructArray.from_arrays(values, fields=fields), type=kind)


def _unpacked(packed: pa.Array) -> tuple[Steps, NDArray[np.int64]]:
    """The steps of all rows, and how many each row has."""
    filled = packed.fill_null(b"") if packed.null_count else packed
    offsets = np.frombuffer(filled.buffers()[1], np.int32)[filled.offset : filled.offset + len(filled) + 1].astype(np.int64)
    data = filled.buffers()[2]
    steps: Steps = np.frombuffer(data[int(offsets[0]) : int(offsets[-1])] if data is not None else b"", TRANSACTION_STEPS)
    return steps, np.diff(offsets) // TRANSACTION_STEPS.itemsize


def _marker_columns(steps: Steps) -> Mapping[str, pa.Array]:
    return {
        "kind": _MARKERS.take(pa.array(np.minimum(steps["step"], len(Step) - 1))),
        "offset": _column(steps, "first_offset"),
        "producer_id": _column(steps, "producer_id"),
        "producer_epoch": _column(steps, "producer_epoch"),
        "appended_at": times(_column(steps, "start_ms")),
    }


def _column(steps: Steps, name: str) -> pa.Array:
    return pa.array(np.ascontiguousarray(steps[name]))


def times(milliseconds: pa.Array) -> pa.Array:
    """Timestamps, of Unix milliseconds; none where they are below 0, or beyond what a timestamp can hold."""
    held = pc.and_(pc.greater_equal(milliseconds, 0), pc.less_equal(milliseconds, MOST_MS))
    return pc.multiply(pc.if_else(held, milliseconds, _NO_NUMBER[pa.int64()]), 1000).cast(TIME)


def _counts(owners: NDArray[np.intp], those: NDArray[np.bool_], rows: int) -> NDArray[np.int64]:
    return np.bincount(owners[those], minlength=rows)


def _transaction_columns(steps: Steps) -> Mapping[str, pa.Array]:
    return {
        "producer_id": _column(steps, "producer_id"),
        "producer_epoch": _column(steps, "producer_epoch"),
        "first_offset": _column(steps, "first_offset"),
        "next_offset": _column(steps, "next_offset"),
        "bytes": _column(steps, "bytes"),
        "first_append": times(_column(steps, "start_ms")),
        "last_append": times(_column(steps, "last_ms")),
        "source": source_names(_column(steps, "source")),
    }


def source_names(sources: pa.Array) -> pa.Array:
    """The names of sources (`StartSource`), null for 0 and for those of a later version."""
    numbers = sources.to_numpy(zero_copy_only=False)
    return SOURCES.take(pa.array(numbers, pa.int64(), mask=(numbers <= 0) | (numbers >= len(SOURCES))))


def known(column: pa.Array) -> pa.Array:
    """Numbers, without those below 0."""
    return pc.if_else(pc.less(column, 0), _NO_NUMBER[column.type], column)


def known_text(column: pa.Array) -> pa.Array:
    """Texts, without empty ones."""
    return pc.if_else(pc.equal(column, ""), _NO_TEXT, column)


def _codec_bytes(counts: pa.Array, kind: pa.MapType) -> pa.Array:
    """For each row the codecs that are there, with their bytes."""
    values, width = counts.flatten().to_numpy(), len(CODECS)
    places = np.flatnonzero(values)
    offsets = np.searchsorted(places, np.arange(len(counts) + 1) * width)
    return pa.MapArray.from_arrays(
        pa.array(offsets.astype(np.int32)), _CODECS.take(pa.array(places % width)), pa.array(values[places]), type=kind
    )


def _batch(columns: Mapping[str, pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def public_batches(batches: pa.Table | pa.RecordBatch) -> pa.RecordBatch:
    """Rows of `BATCHES`, of those of `streaming.common.rows.BATCHES`."""
    rows, schema = one_batch(batches), ARROW[Relation.BATCHES]
    count = rows.num_rows
    columns: dict[str, pa.Array] = {name: rows[name] for name in rows.schema.names}
    columns |= {name: known(rows[name]) for name in ("broker", "leader_epoch", "producer_id", "producer_epoch", "base_sequence")}
    columns["base_sequence"] = only_with(columns["base_sequence"], columns["producer_id"])  # coordinators write 0
    columns |= {
        "kind": pa.repeat("batch", count),
        "topic_id": known_text(rows["topic_id"]),
        "missing_bytes": pa.repeat(_ZERO, count),
        "reason": pa.nulls(count, pa.string()),
    }
    return _batch(columns, schema)


def only_with(column: pa.Array, other: pa.Array) -> pa.Array:
    """A column where ``other`` is known, too."""
    return pc.if_else(pc.is_valid(other), column, pa.scalar(None, column.type))


def public_transactions(transactions: pa.Table | pa.RecordBatch, names: Callable[[pa.Array], pa.Array]) -> pa.RecordBatch:
    """Rows of `TRANSACTIONS`, of those of `streaming.common.rows.TRANSACTION_ROWS`; ``names``: the transactional ids of producer ids."""
    rows, schema = one_batch(transactions), ARROW[Relation.TRANSACTIONS]
    count, committed = rows.num_rows, rows["committed"]
    columns: dict[str, pa.Array] = {name: rows[name] for name in ("log_dir", "topic", "partition", "producer_id")}
    columns |= {name: known(rows[name]) for name in ("broker", "producer_epoch", "first_offset", "marker_offset", "bytes")}
    columns |= {
        "kind": _ENDS.take(pc.if_else(pc.is_in(committed, value_set=pa.array([0, 1], pa.int32())), committed, 2)),
        "topic_id": known_text(rows["topic_id"]),
        "transactional_id": names(rows["producer_id"]),
        "last_offset": known(pc.subtract(rows["next_offset"], 1)),
        "begin": times(rows["start_ms"]),
        "end": times(rows["end_ms"]),
        "begin_source": source_names(rows["source"]),
        "missing_bytes": pa.repeat(_ZERO, count),
        "reason": pa.nulls(count, pa.string()),
    }
    for name in ("last_offset", "bytes"):  # of a marker without batches: they may have been deleted or compacted away
        columns[name] = only_with(columns[name], columns["first_offset"])
    return _batch(columns, schema)


def skipped_row(relation: Relation, values: Mapping[str, object]) -> pa.RecordBatch:
    """One row of kind ``skipped``; ``values``: of the columns that are known, with ``missing_bytes`` and ``reason``."""
    schema = ARROW[relation]
    row: dict[str, object] = {"kind": "skipped"}
    if relation is Relation.RANGES:
        row |= dict.fromkeys(("bytes", "batches", "records", "old_format_batches"), 0)
        row |= dict.fromkeys(("codec_bytes", "markers", "transactions"), ())
    row |= values
    return pa.RecordBatch.from_pylist([row], schema)
