"""The list of topics."""

from dataclasses import replace

from streaming.broker.protocol.topic_json import TopicRow
from streaming.pages.listings.list_cells import Cell, Unit, length, size, topic_cell, unsure
from streaming.pages.listings.listing import ASCENDING, DESCENDING, SHOWN_JUDGED, Field, Listing
from streaming.pages.listings.partition_list import START_OF, next_deletion

_SUM = "of its partitions; `null` where it is not known of one of them"

TOPICS = Listing(
    name="topics",
    noun="topic",
    row=TopicRow,
    default="kind",
    fields=(
        Field(
            name="topic",
            unit=Unit.NAME,
            meaning="its name",
            heading="Topic",
            rank=1,
            sort=ASCENDING,
            key="T",
            least=16,
            cell=lambda row, _: topic_cell(row.topic),
        ),
        Field(
            name="partitions",
            unit=Unit.COUNT,
            meaning="how many are shown",
            heading="Partitions",
            rank=3,
            sort=DESCENDING,
            key="P",
        ),
        Field(name="bytes_rate", unit=Unit.BYTES_RATE, meaning=_SUM, heading="Bytes/s", rank=4, sort=DESCENDING, key="B"),
        Field(name="records_rate", unit=Unit.RATE, meaning=_SUM, heading="Records/s", rank=5, sort=DESCENDING, key="E"),
        Field(name="size_bytes", unit=Unit.BYTES, meaning=_SUM, heading="Size", rank=6, sort=DESCENDING, key="S"),
        Field(name="unread_offsets", unit=Unit.COUNT, meaning=_SUM, heading="Held back", rank=9, sort=DESCENDING, key="H"),
        Field(name="open_transactions", unit=Unit.COUNT, meaning=_SUM, heading="Open", rank=12, sort=DESCENDING, key="O"),
        Field(
            name="out_of_sync",
            unit=Unit.COUNT,
            meaning=f"replicas that are not in sync, {_SUM}",
            heading="Out of sync",
            rank=8,
            sort=DESCENDING,
            key="U",
        ),
        Field(
            name="groups",
            unit=Unit.COUNT,
            meaning="consumer groups with committed offsets in it; `null` where no groups are read",
            heading="Groups",
            rank=7,
            sort=DESCENDING,
            key="G",
        ),
        Field(
            name="last_append_ms",
            unit=Unit.MOMENT,
            meaning="the last one in any partition",
            heading="Last append",
            rank=11,
            sort=DESCENDING,
            key="L",
        ),
        Field(
            name="oldest_record_ms",
            unit=Unit.MOMENT,
            meaning="the oldest one in any partition",
            heading="Oldest record",
            rank=15,
            sort=ASCENDING,
            key="D",
        ),
        Field(
            name="next_deletion_ms",
            unit=Unit.MOMENT,
            meaning="the next one in any partition, as in `RetentionRow`",
            heading="Next deletion",
            rank=14,
            sort=ASCENDING,
            key="X",
            cell=next_deletion,
        ),
        START_OF,
        Field(name="next_deletion_by_size", unit=Unit.FLAG, meaning="as in `RetentionRow`"),
        Field(name="cleanup_policy", unit=Unit.WORD, meaning="`delete`, `compact` or both", heading="Policy", rank=17),
        Field(
            name="retention_limit_ms",
            unit=Unit.DURATION,
            meaning="the limit of its first partition, `null` for none",
            heading="Time limit",
            rank=13,
            sort=DESCENDING,
            key="M",
            cell=lambda row, _: unsure(Cell(text=length(row.retention_limit_ms)), assumed=row.limits_assumed),
        ),
        Field(
            name="retention_limit_bytes",
            unit=Unit.BYTES,
            meaning="likewise",
            heading="Size limit",
            rank=16,
            sort=DESCENDING,
            key="Z",
            cell=lambda row, _: unsure(Cell(text=size(row.retention_limit_bytes)), assumed=row.limits_assumed),
        ),
        Field(name="limits_assumed", unit=Unit.FLAG, meaning="the limits are Kafka's defaults, because the real ones are not known"),
        Field(
            name="rates",
            unit=Unit.CURVE,
            meaning="bytes a second of the last hour, a number a minute, the oldest first; `null` in it is a minute without a number",
            heading="Last hour",
            rank=10,
        ),
        replace(SHOWN_JUDGED[0], meaning="the worst problem of its partitions: a `kind` of `Problem`"),
        *SHOWN_JUDGED[1:],
    ),
)
