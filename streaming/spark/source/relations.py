"""The relations of the data source that everybody may read: their columns, with types and units.

Times are timestamps, and what is not known is null. ``missing_bytes`` is what is not there to be read, so that a sum over ``bytes`` or
``size`` is right without a filter: the bytes that a row says were skipped, cut off or deleted.
"""

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

_TEXT, _INT, _LONG, _TIME, _FLAG = StringType(), IntegerType(), LongType(), TimestampType(), BooleanType()


class Relation(StrEnum):
    """A relation, by the value of the option ``relation``."""

    RANGES = "ranges"
    BATCHES = "batches"
    TRANSACTIONS = "transactions"
    RECORDS = "records"


def _of(**columns: DataType) -> StructType:
    return StructType([StructField(name, each) for name, each in columns.items()])


def _list(**columns: DataType) -> ArrayType:
    return ArrayType(_of(**columns))


RANGES = _of(
    kind=_TEXT,  # appended, truncated, skipped, rolled, deleted, appeared, gone, corrupt
    broker=_INT,
    log_dir=_TEXT,
    topic=_TEXT,
    partition=_INT,
    topic_id=_TEXT,
    segment=_LONG,  # its base offset
    start_position=_LONG,
    end_position=_LONG,
    base_offset=_LONG,
    next_offset=_LONG,
    leader_epoch=_INT,
    is_leader=_FLAG,  # whether this replica led in that epoch
    seen_at=_TIME,
    max_timestamp=_TIME,
    bytes=_LONG,  # of all batches of an appended range, 0 in other rows
    batches=_LONG,  # data batches, as for all columns up to markers
    records=_LONG,
    old_format_batches=_LONG,
    codec_bytes=MapType(_TEXT, _LONG),
    batch_bytes_buckets=ArrayType(_LONG),
    batch_records_buckets=ArrayType(_LONG),
    append_delay_buckets=ArrayType(_LONG),
    append_delay_ms=_LONG,
    ahead_batches=_LONG,
    markers=_list(kind=_TEXT, offset=_LONG, producer_id=_LONG, producer_epoch=_INT, appended_at=_TIME),
    transactions=_list(
        producer_id=_LONG,
        producer_epoch=_INT,
        first_offset=_LONG,
        next_offset=_LONG,
        bytes=_LONG,
        first_append=_TIME,
        last_append=_TIME,
        source=_TEXT,  # of first_append: seen, recorded, snapshot
    ),
    missing_bytes=_LONG,
    reason=_TEXT,
    agent=_TEXT,
    journal=_TEXT,
    seq=_LONG,
)
"""One row for each byte range that was appended, and for each truncation, skip, roll, deletion and so on."""

BATCHES = _of(
    kind=_TEXT,  # batch, skipped
    broker=_INT,
    log_dir=_TEXT,
    topic=_TEXT,
    partition=_INT,
    topic_id=_TEXT,
    segment=_LONG,
    position=_LONG,
    size=_INT,
    base_offset=_LONG,
    last_offset=_LONG,
    records=_INT,
    leader_epoch=_INT,
    magic=_INT,
    codec=_TEXT,
    transactional=_FLAG,
    control=_FLAG,
    log_append_time=_FLAG,
    max_timestamp=_TIME,
    producer_id=_LONG,
    producer_epoch=_INT,
    base_sequence=_INT,
    missing_bytes=_LONG,
    reason=_TEXT,
)
"""One row for each record batch, and for each part of a log that was not there to be read."""

TRANSACTIONS = _of(
    kind=_TEXT,  # committed, aborted, open, skipped
    broker=_INT,
    log_dir=_TEXT,
    topic=_TEXT,
    partition=_INT,
    topic_id=_TEXT,
    producer_id=_LONG,
    producer_epoch=_INT,
    first_offset=_LONG,  # of its first batch in this partition
    last_offset=_LONG,  # of its last batch
    marker_offset=_LONG,
    bytes=_LONG,  # of its batches in this partition
    begin=_TIME,  # when the first batch was appended
    end=_TIME,  # when the marker was appended
    begin_source=_TEXT,  # seen, recorded, snapshot
    missing_bytes=_LONG,
    reason=_TEXT,
)
"""One row for each marker, with its transaction as this partition has it; read at once, also one for each that is open."""

RECORDS = _of(
    key=BinaryType(),
    value=BinaryType(),
    topic=_TEXT,
    partition=_INT,
    offset=_LONG,
    timestamp=_TIME,
    timestampType=_INT,  # 0 CreateTime, 1 LogAppendTime
    headers=_list(key=_TEXT, value=BinaryType()),
)
"""One row for each record: the columns of Spark's Kafka source with ``includeHeaders``, by name, type and order."""

SCHEMAS = {
    Relation.RANGES: RANGES,
    Relation.BATCHES: BATCHES,
    Relation.TRANSACTIONS: TRANSACTIONS,
    Relation.RECORDS: RECORDS,
}


def schema_of(relation: Relation, columns: tuple[str, ...] = ()) -> StructType:
    """The schema of a relation, or of some of its columns in the relation's order."""
    schema = SCHEMAS[relation]
    return StructType([field for field in schema.fields if field.name in columns]) if columns else schema
