"""The list of partitions."""

from streaming.broker.protocol.listing_json import PartitionRow, RetentionRow
from streaming.broker.protocol.partition_json import SegmentRow
from streaming.broker.protocol.topic_json import TopicRow
from streaming.common.formatting import format_count
from streaming.pages.listings.list_cells import Cell, Times, Unit, after_start, count, partition_cell, words
from streaming.pages.listings.listing import ASCENDING, DESCENDING, SHOWN_JUDGED, Field, Listing


def partition_field(rank: int = 1) -> Field:
    """The column that names a partition."""
    return Field(
        name="topic",
        unit=Unit.NAME,
        meaning="its topic",
        heading="Partition",
        rank=rank,
        sort=ASCENDING,
        key="P",
        least=16,
        cell=lambda row, _: partition_cell(row.topic, row.partition),
    )


def broker_field(rank: int, meaning: str = "whose replica it is") -> Field:
    """The column of a broker."""
    return Field(name="broker", unit=Unit.ID, meaning=meaning, heading="Broker", rank=rank, sort=ASCENDING, key="R")


NUMBER = Field(name="partition", unit=Unit.ID, meaning="its number in the topic", sort=ASCENDING)


START_OF = Field(name="next_deletion_start_of", unit=Unit.ID, meaning="as in `RetentionRow`")


def next_deletion(row: PartitionRow | RetentionRow | TopicRow, times: Times) -> Cell:
    """When retention deletes next, and by which limit; what is past it and stays is blocked."""
    at_ms = row.next_deletion_ms
    if at_ms < 0 and row.next_deletion_start_of >= 0:
        return Cell(text=after_start(row.next_deletion_start_of))
    if at_ms <= times.now_ms and not isinstance(row, TopicRow) and row.retention_blocked:
        return Cell(text="blocked", note=words(row.retention_blocked))
    return Cell(text=times.deletion(at_ms) + _limit(at_ms, by_size=row.next_deletion_by_size), at_ms=at_ms)


def _limit(at_ms: int, *, by_size: bool) -> str:
    return "" if at_ms < 0 else " by size" if by_size else " by time"


def segment_deletion(segment: SegmentRow, row: PartitionRow, times: Times) -> str:
    """When retention deletes a segment, in the words of `next_deletion`: what is past its limit and may not be deleted is held up."""
    if segment.deletion_ms >= 0 and row.next_deletion_start_of >= 0:
        return after_start(row.next_deletion_start_of)
    if segment.deletable and not row.retention_blocked:
        return "due"
    if 0 <= segment.deletion_ms <= times.now_ms:
        return "blocked"
    return times.of(segment.deletion_ms) + _limit(segment.deletion_ms, by_size=segment.deletion_by_size)


def _held_back(row: PartitionRow, _: Times) -> Cell:
    note = f"{format_count(row.hanging_transactions, 'transaction')} hanging" if row.hanging_transactions > 0 else ""
    return Cell(text=count(row.unread_offsets), note=note)


PARTITIONS = Listing(
    name="partitions",
    noun="partition",
    row=PartitionRow,
    default="kind",
    off_page=("log_end_offset", "hanging_transactions", "oldest_record_ms", "segments"),
    fields=(
        broker_field(10, "whose replica is shown: the leader's, if it is watched; with `replicas: all` each replica has a row"),
        partition_field(),
        NUMBER,
        Field(
            name="bytes_rate",
            unit=Unit.BYTES_RATE,
            meaning="bytes appended a second, over the last minute; from log dirs the mean over the log's segments",
            heading="Bytes/s",
            rank=3,
            sort=DESCENDING,
            key="B",
        ),
        Field(
            name="records_rate",
            unit=Unit.RATE,
            meaning="records appended a second, likewise",
            heading="Records/s",
            rank=4,
            sort=DESCENDING,
            key="E",
        ),
        Field(
            name="appended_bytes",
            unit=Unit.BYTES,
            meaning="since the watching began; not known before the backlog is read",
            sort=DESCENDING,
        ),
        Field(name="appended_records", unit=Unit.COUNT, meaning="likewise", sort=DESCENDING),
        Field(name="size_bytes", unit=Unit.BYTES, meaning="of its segments on disk", heading="Size", rank=7, sort=DESCENDING, key="S"),
        Field(name="log_start_offset", unit=Unit.ID, meaning="Kafka's own", sort=DESCENDING),
        Field(name="log_end_offset", unit=Unit.ID, meaning="Kafka's own", heading="End offset", rank=12, sort=DESCENDING, key="F"),
        Field(name="high_watermark", unit=Unit.ID, meaning="Kafka's own", sort=DESCENDING),
        Field(name="last_stable_offset", unit=Unit.ID, meaning="Kafka's own", sort=DESCENDING),
        Field(
            name="unread_offsets",
            unit=Unit.COUNT,
            meaning="high watermark less last stable offset: what readers of committed data do not see",
            heading="Held back",
            rank=5,
            sort=DESCENDING,
            key="H",
            cell=_held_back,
        ),
        Field(name="open_transactions", unit=Unit.COUNT, meaning="how many", heading="Open", rank=9, sort=DESCENDING, key="O"),
        Field(
            name="hanging_transactions", unit=Unit.COUNT, meaning="how many of them", heading="Hanging", rank=13, sort=DESCENDING, key="G"
        ),
        Field(
            name="last_append_ms",
            unit=Unit.MOMENT,
            meaning="when",
            heading="Last append",
            rank=6,
            sort=DESCENDING,
            key="L",
        ),
        Field(
            name="oldest_record_ms",
            unit=Unit.MOMENT,
            meaning="the time of its first batch with records",
            heading="Oldest record",
            rank=14,
            sort=ASCENDING,
            key="D",
        ),
        Field(name="retention_lag_ms", unit=Unit.DURATION, meaning="as in `RetentionRow`", sort=DESCENDING),
        Field(
            name="next_deletion_ms",
            unit=Unit.MOMENT,
            meaning="as in `RetentionRow`",
            heading="Next deletion",
            rank=11,
            sort=ASCENDING,
            key="X",
            cell=next_deletion,
        ),
        START_OF,
        Field(name="next_deletion_by_size", unit=Unit.FLAG, meaning="as in `RetentionRow`"),
        Field(name="retention_blocked", unit=Unit.WORD, meaning="as in `RetentionRow`", sort=ASCENDING),
        Field(name="segments", unit=Unit.COUNT, meaning="how many", heading="Segments", rank=15, sort=DESCENDING, key="N"),
        Field(name="records_data", unit=Unit.COUNT, meaning="on disk, aborted ones too", sort=DESCENDING),
        Field(name="records_aborted", unit=Unit.COUNT, meaning="of these", sort=DESCENDING),
        Field(name="records_control", unit=Unit.COUNT, meaning="markers of transactions, which have offsets too", sort=DESCENDING),
        Field(
            name="rates",
            unit=Unit.CURVE,
            meaning="bytes a second of the last hour, a number a minute, the oldest first; `null` in it is a minute without a number",
            heading="Last hour",
            rank=8,
        ),
        *SHOWN_JUDGED,
    ),
)
