"""The relations of the data source that any query may read: their columns, with types and units. docs/spark.md is made of them.

Times are timestamps, and what is not known is null. ``missing_bytes`` is what is not there to be read, so that a sum over ``bytes`` or
``size`` is right without a filter.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from streaming.common.rows import BATCH_BYTES_BOUNDS, BATCH_RECORDS_BOUNDS

_TEXT, _INT, _LONG, _TIME, _FLAG, _BYTES = StringType(), IntegerType(), LongType(), TimestampType(), BooleanType(), BinaryType()


@dataclass(frozen=True, slots=True)
class RelationColumn:
    """A column of a relation, with what it is, for people."""

    name: str
    type: DataType
    what: str


def schema_of(relation: Relation, columns: tuple[str, ...] = ()) -> StructType:
    """The schema of a relation, or of some of its columns in the relation's order."""
    schema = SCHEMAS[relation]
    return StructType([field for field in schema.fields if field.name in columns]) if columns else schema


class Relation(StrEnum):
    """A relation, by the value of the option ``relation``."""

    RANGES = "ranges"
    BATCHES = "batches"
    TRANSACTIONS = "transactions"
    RECORDS = "records"


def _list(**columns: DataType) -> ArrayType:
    return ArrayType(StructType([StructField(name, each) for name, each in columns.items()]))


def _bounds(bounds: tuple[int, ...]) -> str:
    return ", ".join(f"{bound:,}" for bound in bounds)


_LOG = (
    RelationColumn("broker", _INT, "id of the broker whose log dir it is"),
    RelationColumn("log_dir", _TEXT, "path of the log dir on its host"),
    RelationColumn("topic", _TEXT, ""),
    RelationColumn("partition", _INT, ""),
    RelationColumn("topic_id", _TEXT, "null for topics from before Kafka 2.8"),
)


_SEGMENT = RelationColumn("segment", _LONG, "base offset of the segment")


_SKIPPED = (
    RelationColumn("missing_bytes", _LONG, "of `skipped`: bytes that are not there, null not known; else 0"),
    RelationColumn("reason", _TEXT, "why they are not"),
)


RELATIONS = {
    Relation.RANGES: (
        RelationColumn("kind", _TEXT, "`appended` or `skipped`; in a stream also `truncated` or `gone`"),
        *_LOG,
        _SEGMENT,
        RelationColumn("start_position", _LONG, "byte of the segment where it begins; 0 where the log was rolled"),
        RelationColumn("end_position", _LONG, "byte after it"),
        RelationColumn("base_offset", _LONG, "first offset"),
        RelationColumn("next_offset", _LONG, "offset after the last; of `truncated`: where the log ends now"),
        RelationColumn("leader_epoch", _INT, "a range has one"),
        RelationColumn("is_leader", _FLAG, "whether this replica led in that epoch, by the agent's metadata; null: not known"),
        RelationColumn("max_timestamp", _TIME, "largest timestamp of its records"),
        RelationColumn("bytes", _LONG, "markers included; 0 in rows of other kinds"),
        RelationColumn("batches", _LONG, "without markers, as the next five columns"),
        RelationColumn("records", _LONG, ""),
        RelationColumn("old_format_batches", _LONG, "batches of message format 0 or 1"),
        RelationColumn("codec_bytes", MapType(_TEXT, _LONG), "bytes by codec: `none`, `gzip`, `snappy`, `lz4`, `zstd`"),
        RelationColumn(
            "batch_bytes_buckets",
            ArrayType(_LONG),
            f"batches by size, up to {_bounds(BATCH_BYTES_BOUNDS)} bytes and larger; not cumulative",
        ),
        RelationColumn("batch_records_buckets", ArrayType(_LONG), f"batches by records, up to {_bounds(BATCH_RECORDS_BOUNDS)} and more"),
        RelationColumn(
            "markers",
            _list(kind=_TEXT, offset=_LONG, producer_id=_LONG, producer_epoch=_INT, appended_at=_TIME),
            "`commit` or `abort`",
        ),
        RelationColumn(
            "transactions",
            _list(
                producer_id=_LONG,
                producer_epoch=_INT,
                first_offset=_LONG,
                next_offset=_LONG,
                bytes=_LONG,
                first_append=_TIME,
                last_append=_TIME,
                source=_TEXT,
            ),
            "one item for all that a producer wrote between two of its markers; `source` as `begin_source` below",
        ),
        *_SKIPPED,
    ),
    Relation.BATCHES: (
        RelationColumn("kind", _TEXT, "`batch` or `skipped`"),
        *_LOG,
        _SEGMENT,
        RelationColumn("position", _LONG, "byte of the segment where it begins"),
        RelationColumn("size", _INT, "bytes"),
        RelationColumn("base_offset", _LONG, "first offset"),
        RelationColumn("last_offset", _LONG, "last offset"),
        RelationColumn("records", _INT, "by the header"),
        RelationColumn("leader_epoch", _INT, ""),
        RelationColumn("magic", _INT, "2; 0 and 1 are from before Kafka 0.11"),
        RelationColumn("codec", _TEXT, "`none`, `gzip`, `snappy`, `lz4`, `zstd`"),
        RelationColumn("transactional", _FLAG, ""),
        RelationColumn("control", _FLAG, "a marker, or another record of Kafka itself"),
        RelationColumn("log_append_time", _FLAG, "the broker dated it"),
        RelationColumn("max_timestamp", _TIME, "largest timestamp of its records"),
        RelationColumn("producer_id", _LONG, "null without an idempotent producer, as the next two"),
        RelationColumn("producer_epoch", _INT, ""),
        RelationColumn("base_sequence", _INT, "sequence of its first record"),
        *_SKIPPED,
    ),
    Relation.TRANSACTIONS: (
        RelationColumn("kind", _TEXT, "`committed`, `aborted`, `skipped`; in a read also `open`"),
        *_LOG,
        RelationColumn("producer_id", _LONG, ""),
        RelationColumn("producer_epoch", _INT, "of its data"),
        RelationColumn("transactional_id", _TEXT, ""),
        RelationColumn("first_offset", _LONG, "of its first batch here; null without data"),
        RelationColumn("last_offset", _LONG, "of its last batch"),
        RelationColumn("marker_offset", _LONG, "of its marker"),
        RelationColumn("bytes", _LONG, "of its batches here; null where some are not there any more"),
        RelationColumn("begin", _TIME, "when its first batch was appended"),
        RelationColumn("end", _TIME, "when its marker was appended"),
        RelationColumn(
            "begin_source",
            _TEXT,
            "`recorded` (by timestamps) or `snapshot` (of the producers, later than its beginning)",
        ),
        *_SKIPPED,
    ),
    Relation.RECORDS: (
        RelationColumn("key", _BYTES, ""),
        RelationColumn("value", _BYTES, "null is a tombstone"),
        RelationColumn("topic", _TEXT, ""),
        RelationColumn("partition", _INT, ""),
        RelationColumn("offset", _LONG, "with gaps where compaction or markers leave them"),
        RelationColumn("timestamp", _TIME, "the record's own, with LogAppendTime the broker's; of magic 0 -1 ms"),
        RelationColumn("timestampType", _INT, "0 CreateTime, 1 LogAppendTime, -1 none (magic 0)"),
        RelationColumn("headers", _list(key=_TEXT, value=_BYTES), "null without any, as with `includeHeaders`"),
    ),
}
"""The columns of each relation, in their order. Those of records are the columns of Spark's Kafka source with ``includeHeaders``."""


SCHEMAS = {relation: StructType([StructField(column.name, column.type) for column in columns]) for relation, columns in RELATIONS.items()}
