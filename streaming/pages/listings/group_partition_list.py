"""The list of a consumer group's partitions."""

from dataclasses import replace

from streaming.broker.protocol.group_json import GroupPartition
from streaming.pages.listings.group_list import (
    ISOLATION,
    JUDGEMENT,
    LAG_BYTES,
    LAG_OFFSETS,
    LAG_RECORDS,
    LAG_RECORDS_UNCOMMITTED,
    LOSS,
    START_OF,
    besides_words,
    oldest_cell,
)
from streaming.pages.listings.list_cells import Cell, Times, Unit, count
from streaming.pages.listings.listing import ASCENDING, DESCENDING, WIDE, Field, Listing
from streaming.pages.listings.partition_list import NUMBER, partition_field

_STAKE = (
    "with that record, as all of it is due at the same check, if that comes as late as it may; `null` where more comes there until then"
)
_LATELY = "within the last 24 hours, as far as the job has watched"
_LEAST = "likewise, if the check comes as early as it may"


def _left(row: GroupPartition, _: Times) -> Cell:
    at_most = f", at most {row.uncommitted_records:,} in the log" if row.uncommitted_records >= 0 else ""
    return Cell(text=count(row.records_left), note=besides_words(row) or row.unknown.replace("_", " ") + at_most)


def _next(row: GroupPartition, times: Times) -> Cell:
    return oldest_cell(row.next_ms, times)


GROUP_PARTITIONS = Listing(
    name="group partitions",
    noun="partition",
    row=GroupPartition,
    default="verdict",
    fields=(
        partition_field(),
        NUMBER,
        Field(name="topic_id", unit=Unit.NAME, meaning="of the topic, as Kafka's tools write it"),
        Field(name="broker", unit=Unit.ID, meaning="that leads it"),
        Field(
            name="committed",
            unit=Unit.ID,
            meaning="the committed offset; of a share group its start offset",
            heading="Committed",
            rank=8,
            sort=DESCENDING,
            key="C",
        ),
        Field(
            name="commit_ms",
            unit=Unit.MOMENT,
            meaning="when it was committed, by the coordinator's clock",
            heading="Last commit",
            rank=WIDE,
            sort=DESCENDING,
            key="T",
        ),
        Field(name="expiration_ms", unit=Unit.MOMENT, meaning="when its coordinator may first delete the offset"),
        Field(name="log_start", unit=Unit.ID, meaning="the log start offset"),
        Field(name="high_watermark", unit=Unit.ID, meaning="Kafka's own", heading="High watermark", rank=9, sort=DESCENDING, key="H"),
        Field(name="last_stable_offset", unit=Unit.ID, meaning="Kafka's own"),
        Field(name="unknown", unit=Unit.WORD, meaning="why the lag is not known, `null` if it is"),
        Field(name="uncommitted_records", unit=Unit.COUNT, meaning="without a commit: at most so many records are in the log"),
        LAG_OFFSETS,
        replace(LAG_RECORDS, cell=_left),
        LAG_RECORDS_UNCOMMITTED,
        LAG_BYTES,
        Field(name="next_offset", unit=Unit.ID, meaning="of the next record that the group will get"),
        Field(name="next_timestamp_ms", unit=Unit.MOMENT, meaning="its own timestamp"),
        Field(
            name="next_append_ms",
            unit=Unit.MOMENT,
            meaning="when it was appended; a table shows its own timestamp where that was not seen",
            heading="Oldest unread",
            rank=4,
            sort=ASCENDING,
            key="O",
            cell=_next,
        ),
        Field(name="next_batch_bytes", unit=Unit.BYTES, meaning="of the batch that it is in"),
        Field(name="next_segment", unit=Unit.ID, meaning="the base offset of the segment of that batch"),
        Field(name="next_position", unit=Unit.COUNT, meaning="the position of that batch in its segment"),
        Field(
            name="next_expired_ms",
            unit=Unit.DURATION,
            meaning="how old the next record was at least when it was written, if its topic keeps records for less; `null` if it came in "
            "time, or if nobody saw it come",
        ),
        Field(name="lost_records", unit=Unit.COUNT, meaning="deleted before they were read; `null` where only offsets are known"),
        Field(name="lost_offsets", unit=Unit.COUNT, meaning="likewise in offsets; of a share group at most so many"),
        Field(
            name="buffered_records",
            unit=Unit.COUNT,
            meaning="deleted, and perhaps in the memory of its consumers: lost if they are restarted; `null` where only offsets are known",
        ),
        Field(name="buffered_offsets", unit=Unit.COUNT, meaning="likewise in offsets"),
        Field(name="lost_expired", unit=Unit.FLAG, meaning="all of these had come past the retention of their topic"),
        Field(name="lost_lately_records", unit=Unit.COUNT, meaning=f"deleted before they were read {_LATELY}"),
        Field(
            name="lost_lately_offsets",
            unit=Unit.COUNT,
            meaning=f"offsets that were, beside these records, which were not counted, {_LATELY}",
        ),
        Field(name="lost_lately_ms", unit=Unit.MOMENT, meaning="when the last of these losses was seen; `null` if there was none"),
        replace(LOSS, meaning="when retention deletes the next record at the earliest"),
        Field(name="loss_latest_ms", unit=Unit.MOMENT, meaning="when it does so at the latest, one check interval later"),
        START_OF,
        Field(name="loss_records", unit=Unit.COUNT, meaning=f"how many go {_STAKE}"),
        Field(name="loss_bytes", unit=Unit.BYTES, meaning=f"how many go {_STAKE}"),
        Field(name="loss_records_least", unit=Unit.COUNT, meaning=_LEAST),
        Field(name="loss_bytes_least", unit=Unit.BYTES, meaning=_LEAST),
        Field(name="loss_by_size", unit=Unit.FLAG, meaning="`retention.bytes` deletes it, not `retention.ms`"),
        Field(name="limits_assumed", unit=Unit.FLAG, meaning="the limits of its log are Kafka's defaults or weaker ones"),
        Field(name="retention_ms", unit=Unit.DURATION, meaning="the limit in force"),
        Field(name="retention_bytes", unit=Unit.BYTES, meaning="the limit in force"),
        Field(
            name="history",
            unit=Unit.WORD,
            meaning="why the committed offset is not valid any more: `made_anew`, its topic was; `cut_off`, its log has other records by "
            "now; `null` if it is valid, or nothing shows why not",
        ),
        Field(name="history_epoch", unit=Unit.ID, meaning="the leader epoch that began when its log was cut off"),
        Field(name="history_ms", unit=Unit.MOMENT, meaning="when that epoch began, or the topic was created"),
        Field(name="go_on_at", unit=Unit.ID, meaning="the first offset that the group has not read, where the committed one is not valid"),
        Field(name="passed_records", unit=Unit.COUNT, meaning="records between there and the committed offset, or the end of the log"),
        Field(name="stopped_since_ms", unit=Unit.MOMENT, meaning="since when a record was readable and the offset has not moved"),
        Field(name="stopped_earlier", unit=Unit.FLAG, meaning="it may have stopped earlier: that is when it was known first"),
        Field(
            name="undated",
            unit=Unit.FLAG,
            meaning="its own timestamp is not believed, and the disk does not show when it was appended",
        ),
        Field(name="held", unit=Unit.FLAG, meaning="nothing is readable, but records wait behind an open transaction"),
        ISOLATION,
        Field(name="consumed_rate", unit=Unit.RATE, meaning="records read a second", heading="Read/s", rank=10, sort=DESCENDING, key="D"),
        Field(
            name="appended_rate",
            unit=Unit.RATE,
            meaning="records appended a second",
            heading="Appended/s",
            rank=11,
            sort=DESCENDING,
            key="A",
        ),
        Field(name="held_by", unit=Unit.MESSAGE, meaning="that transaction, a `HoldingTransaction`; `null` if it is not known"),
        Field(name="pending", unit=Unit.MESSAGE, meaning="list of `PendingOffset`: commits that wait in open transactions"),
        Field(
            name="moves",
            unit=Unit.MESSAGE,
            meaning="list of `MovedOffset`: how its offset was moved within a day, and not by reading, as far as somebody should know",
        ),
        Field(name="batch", unit=Unit.MESSAGE, meaning="a `BatchCheck` of the next record's batch; `null` if it was not checked"),
        *JUDGEMENT,
    ),
)
