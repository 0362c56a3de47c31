"""The list of what is kept of each partition. Its fields are named as the metrics are, without ``segtail_partition_``, times in ms."""

from streaming.broker.protocol.listing_json import RetentionRow
from streaming.common.formatting import NONE
from streaming.pages.listings.list_cells import Cell, Times, Unit, length, size, unsure
from streaming.pages.listings.listing import ASCENDING, DESCENDING, SHOWN_JUDGED, WIDE, Field, Listing
from streaming.pages.listings.partition_list import NUMBER, broker_field, next_deletion, partition_field


def _overdue(row: RetentionRow, _: Times) -> Cell:
    """For how long; with a question mark where limits are assumed, if there is something. What is blocked need not be overdue."""
    if row.retention_blocked and row.retention_overdue_ms == 0:
        return Cell(text=NONE)
    return unsure(Cell(text=length(row.retention_overdue_ms)), assumed=row.limits_assumed and row.retention_overdue_ms > 0)


RETENTION = Listing(
    name="retention",
    noun="retention",
    row=RetentionRow,
    off_page=("segments", "cleanup_policy", "broker"),
    default="kind",
    fields=(
        broker_field(14),
        partition_field(),
        NUMBER,
        Field(name="topic_id", unit=Unit.NAME, meaning="of its topic, `null` for one that has none"),
        Field(name="log_dir", unit=Unit.NAME, meaning="where the replica is"),
        Field(name="leader", unit=Unit.FLAG, meaning="whether the replica leads"),
        Field(name="leader_epoch", unit=Unit.ID, meaning="Kafka's own"),
        Field(name="replicas", unit=Unit.COUNT, meaning="how many the partition has"),
        Field(name="in_sync_replicas", unit=Unit.COUNT, meaning="how many of them are in sync"),
        Field(name="min_in_sync_replicas", unit=Unit.COUNT, meaning="the limit below which nothing is appended with acks=all"),
        Field(name="log_start_offset", unit=Unit.ID, meaning="Kafka's own"),
        Field(name="local_log_start_offset", unit=Unit.ID, meaning="the first offset on this disk, with remote storage"),
        Field(name="log_end_offset", unit=Unit.ID, meaning="Kafka's own"),
        Field(name="high_watermark", unit=Unit.ID, meaning="Kafka's own"),
        Field(
            name="last_stable_offset",
            unit=Unit.ID,
            meaning="Kafka's own; `segtail retention --log-dirs` has it of compacted topics alone, whose open transactions it looks for",
        ),
        Field(name="size_bytes", unit=Unit.BYTES, meaning="what it keeps", heading="Size", rank=3, sort=DESCENDING, key="S"),
        Field(name="segments", unit=Unit.COUNT, meaning="how many", heading="Segments", rank=12, sort=DESCENDING, key="G"),
        Field(name="active_segment_size_bytes", unit=Unit.BYTES, meaning="of the segment that takes appends"),
        Field(name="active_segment_first_timestamp_ms", unit=Unit.MOMENT, meaning="the time of the first batch in it"),
        Field(name="segment_limit_ms", unit=Unit.DURATION, meaning="after so long it is rolled"),
        Field(name="segment_limit_bytes", unit=Unit.BYTES, meaning="at this size it is rolled"),
        Field(
            name="oldest_record_ms",
            unit=Unit.MOMENT,
            meaning="the time of its first batch with records",
            heading="Oldest record",
            rank=8,
            sort=ASCENDING,
            key="D",
        ),
        Field(name="cleanup_policy", unit=Unit.WORD, meaning="`delete`, `compact` or both", heading="Policy", rank=13),
        Field(name="limit_source", unit=Unit.WORD, meaning="the level that sets the limit"),
        Field(name="limits_assumed", unit=Unit.FLAG, meaning="the limits are Kafka's defaults, because the real ones are not known"),
        Field(
            name="retention_limit_ms",
            unit=Unit.DURATION,
            meaning="its limit, `null` for none",
            heading="Time limit",
            rank=9,
            sort=DESCENDING,
            key="M",
            cell=lambda row, _: unsure(Cell(text=length(row.retention_limit_ms)), assumed=row.limits_assumed),
        ),
        Field(
            name="retention_limit_bytes",
            unit=Unit.BYTES,
            meaning="its limit, `null` for none",
            heading="Size limit",
            rank=10,
            sort=DESCENDING,
            key="Z",
            cell=lambda row, _: unsure(Cell(text=size(row.retention_limit_bytes)), assumed=row.limits_assumed),
        ),
        Field(
            name="retention_lag_ms",
            unit=Unit.DURATION,
            meaning="how much older the oldest record is than the limit lets it be",
            heading="Kept too long",
            rank=11,
            sort=DESCENDING,
            key="L",
        ),
        Field(
            name="retention_overdue_ms",
            unit=Unit.DURATION,
            meaning="for how long Kafka could have deleted a segment and has not",
            heading="Overdue",
            rank=6,
            sort=DESCENDING,
            key="O",
            cell=_overdue,
        ),
        Field(
            name="retention_overdue",
            unit=Unit.FLAG,
            meaning="that is longer than `overdue_after` and than two checks; it is a problem where `limits_assumed` is false",
        ),
        Field(name="check_interval_ms", unit=Unit.DURATION, meaning="of its broker's checks for what may be deleted"),
        Field(
            name="retention_reclaimable_bytes",
            unit=Unit.BYTES,
            meaning="of all segments that a check would delete",
            heading="Reclaimable",
            rank=7,
            sort=DESCENDING,
            key="C",
        ),
        Field(
            name="next_deletion_ms",
            unit=Unit.MOMENT,
            meaning="when the first segment may be deleted, by the limit that lets it go first",
            heading="Next deletion",
            rank=4,
            sort=ASCENDING,
            key="X",
            cell=next_deletion,
        ),
        Field(
            name="next_deletion_start_of",
            unit=Unit.ID,
            meaning="its broker, if that has no process: it has to be started first, and when is not known",
        ),
        Field(
            name="next_deletion_by_size",
            unit=Unit.FLAG,
            meaning="that is `retention.bytes`, if the log grows on as it does, and not `retention.ms`",
        ),
        Field(
            name="retention_blocked",
            unit=Unit.WORD,
            meaning="why a segment beyond its limit stays, in a word",
            heading="Blocked",
            rank=5,
            sort=ASCENDING,
            key="K",
            least=8,
        ),
        Field(name="retention_blocked_why", unit=Unit.SENTENCE, meaning="the same as a sentence", heading="Why", rank=WIDE),
        Field(name="max_timestamp_ahead_ms", unit=Unit.DURATION, meaning="how far the largest time of its records is ahead of the clock"),
        Field(name="dirty_bytes", unit=Unit.BYTES, meaning="of a compacted topic: what the cleaner has before it"),
        Field(name="dirty_ratio", unit=Unit.RATIO, meaning="the share of them in what may be cleaned"),
        Field(name="uncleanable_open_transaction_bytes", unit=Unit.BYTES, meaning="what it may not touch because of an open transaction"),
        Field(name="uncleanable_compaction_lag_bytes", unit=Unit.BYTES, meaning="what is younger than `min.compaction.lag.ms`"),
        Field(name="uncleanable_moving_bytes", unit=Unit.BYTES, meaning="what waits until the log has moved to another log dir"),
        Field(name="cleaner_checkpoint_offset", unit=Unit.ID, meaning="up to where it has cleaned"),
        *SHOWN_JUDGED,
    ),
)
