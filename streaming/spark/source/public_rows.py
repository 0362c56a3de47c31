"""Rows as agents send them, as rows of the relations that everybody reads (`streaming.spark.source.relations`), column by column."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema

from streaming.common.codecs import CODECS
from streaming.common.rows import Kind
from streaming.spark.source.public_steps import markers_and_transactions, source_names
from streaming.spark.source.public_values import known, known_text, only_with, times
from streaming.spark.source.relations import SCHEMAS, Relation

ARROW = {relation: to_arrow_schema(schema, timezone="UTC") for relation, schema in SCHEMAS.items()}
"""The schemas of the relations as Spark takes them."""

PUBLIC_KINDS = pa.array([str(kind) for kind in (Kind.APPENDED, Kind.TRUNCATED, Kind.SKIPPED, Kind.CORRUPT, Kind.GONE)])
"""The kinds of events that are rows of `ranges`, by the same names. Others are for segtail's own job."""

_MISSING_KINDS = pa.array([str(kind) for kind in (Kind.TRUNCATED, Kind.SKIPPED)])
_ENDS = pa.array(["aborted", "committed", "open"])
_CODECS = pa.array(CODECS)
_ZERO = pa.scalar(0, pa.int64())

_PLAIN = ("log_dir", "topic", "batches", "records", "old_format_batches")
_KNOWN = ("broker", "partition", "segment", "start_position", "end_position", "base_offset", "next_offset", "seq")
_KNOWN_TEXTS = ("topic_id", "reason", "agent", "journal")


def public_ranges(events: pa.Table) -> pa.RecordBatch:
    """Rows of `RANGES`, of those of `streaming.common.event_row.EVENTS`; kinds that are not public are left out."""
    if not pc.all(public := pc.is_in(events["kind"], value_set=PUBLIC_KINDS), min_count=0).as_py():
        events = events.filter(public)
    rows = one_batch(events)
    schema = ARROW[Relation.RANGES]
    appended = pc.equal(rows["kind"], str(Kind.APPENDED))
    markers, transactions = markers_and_transactions(rows["transactions"], schema.field("markers").type, schema.field("transactions").type)
    columns: dict[str, pa.Array] = {name: rows[name] for name in _PLAIN}
    columns |= {name: known(rows[name]) for name in _KNOWN}
    columns |= {name: known_text(rows[name]) for name in _KNOWN_TEXTS}
    columns |= {
        "kind": rows["kind"],
        "leader_epoch": known(rows["log_epoch"]),
        "is_leader": pc.equal(known(rows["leads"]), 1),
        "seen_at": times(rows["seen_at"]),
        "max_timestamp": times(rows["max_timestamp"]),
        "bytes": pc.if_else(appended, rows["bytes"], _ZERO),
        "codec_bytes": _codec_bytes(rows["codec_bytes"], schema.field("codec_bytes").type),
        "markers": markers,
        "transactions": transactions,
        "missing_bytes": pc.if_else(pc.is_in(rows["kind"], value_set=_MISSING_KINDS), rows["bytes"], _ZERO),
    }
    columns |= {name: rows[name].cast(schema.field(name).type) for name in ("batch_bytes_buckets", "batch_records_buckets")}
    columns |= _delays(rows, schema.field("append_delay_buckets").type)
    return _batch(columns, schema)


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


def public_transactions(transactions: pa.Table | pa.RecordBatch) -> pa.RecordBatch:
    """Rows of `TRANSACTIONS`, of those of `streaming.common.rows.TRANSACTION_ROWS`."""
    rows, schema = one_batch(transactions), ARROW[Relation.TRANSACTIONS]
    count, committed = rows.num_rows, rows["committed"]
    columns: dict[str, pa.Array] = {name: rows[name] for name in ("log_dir", "topic", "partition", "producer_id")}
    columns |= {name: known(rows[name]) for name in ("broker", "producer_epoch", "first_offset", "marker_offset", "bytes")}
    columns |= {
        "kind": _ENDS.take(pc.if_else(pc.is_in(committed, value_set=pa.array([0, 1], pa.int32())), committed, 2)),
        "topic_id": known_text(rows["topic_id"]),
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


def one_batch(rows: pa.Table | pa.RecordBatch) -> pa.RecordBatch:
    """The rows as one batch, whose columns are arrays."""
    if isinstance(rows, pa.RecordBatch):
        return rows
    (batch,) = rows.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], rows.schema)]
    return batch


def _batch(columns: Mapping[str, pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def _codec_bytes(counts: pa.Array, kind: pa.MapType) -> pa.Array:
    """For each row the codecs that are there, with their bytes."""
    values, width = counts.flatten().to_numpy(), len(CODECS)
    places = np.flatnonzero(values)
    offsets = np.searchsorted(places, np.arange(len(counts) + 1) * width)
    return pa.MapArray.from_arrays(
        pa.array(offsets.astype(np.int32)), _CODECS.take(pa.array(places % width)), pa.array(values[places]), type=kind
    )


def _delays(rows: pa.RecordBatch, kind: pa.ListType) -> Mapping[str, pa.Array]:
    """How late batches came, of rows of which that is known: of others all of these are 0 although there are batches."""
    buckets = rows["append_delay_buckets"]
    values = buckets.flatten().to_numpy().reshape(len(buckets), -1) if len(buckets) else np.zeros((0, 1), np.int64)
    seen = values.sum(axis=1) + rows["ahead_batches"].to_numpy()
    vague = pa.array((seen == 0) & (rows["batches"].to_numpy() > 0))
    nothing = pa.scalar(None, pa.int64())
    return {
        "append_delay_buckets": pc.if_else(vague, pa.scalar(None, kind), buckets.cast(kind)),
        "append_delay_ms": pc.if_else(vague, nothing, rows["append_delay_ms"]),
        "ahead_batches": pc.if_else(vague, nothing, rows["ahead_batches"]),
    }
