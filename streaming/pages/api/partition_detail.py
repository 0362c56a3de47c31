"""Everything about one partition: its row, its last hour, its segments, its transactions, its problems, its replicas."""

import numpy as np

from streaming.broker.protocol.listing_json import MOST_SEGMENTS, PartitionDetail, ReplicaRow, SegmentRow
from streaming.cluster.verdicts.log_problems import why_uncounted
from streaming.cluster.view.replica_health import role_of
from streaming.pages.api.judged_look import JudgedLook, with_verdicts
from streaming.pages.api.log_rows import partition_columns, partition_rows, retention_rows, transaction_rows
from streaming.pages.api.look import Look
from streaming.rules.retention_rule import RetentionRule, SegmentDeletions
from streaming.rules.space_outlook import growth_now

_MOST_TRANSACTIONS = 1000


def partition_detail(judged: JudgedLook, topic: str, partition: int) -> PartitionDetail | None:
    """One partition, None if none is shown with this name and number."""
    look, rates = judged.look, judged.rates
    item = _item(look, topic, partition)
    if item is None:
        return None
    own, broker = judged.kinds_of(item), int(look.view.logs["broker"][item])
    late = [each for each in look.view.logs.late if each.log == item][:_MOST_TRANSACTIONS]
    segments, omitted = _segments(look, item)
    (row,) = with_verdicts(partition_rows(look, partition_columns(look, rates), [item], rates), judged.partition_verdicts.of_rows([item]))
    return PartitionDetail(
        at_ms=judged.at_ms,
        row=row,
        records_why="" if row.records_data >= 0 else why_uncounted(judged.circumstances, look.snapshot, [look.view.logs.items[item]])[0],
        retention=retention_rows(judged, [item])[0],
        transactions=transaction_rows(look, judged.circumstances, sorted(late, key=lambda each: each.first_offset)),
        late_after_ms=look.view.logs.open.late_after_ms,
        young_transactions=look.view.logs.open.young_on(item),
        problems=judged.with_roots(
            [
                each
                for each in judged.problems
                if (each.topic == topic and each.partition in (partition, -1))
                or (not each.topic and each.broker == broker and each.kind in own)
            ]
        ),
        segments=segments,
        omitted=omitted,
        minutes=rates.minutes(look, item),
        replicas=_replicas(look, item),
    )


def _item(look: Look, topic: str, partition: int) -> int | None:
    """The exported log of a partition: that of the leader, if all replicas are exported."""
    items = [each for each in np.flatnonzero(look.partitions == partition).tolist() if look.topics[each] == topic]
    return max(items, key=lambda each: int(look.view.logs["leader"][each]), default=None)


def _segments(look: Look, item: int) -> tuple[list[SegmentRow], int]:
    retention = look.view.retention
    rows = np.flatnonzero(retention.items[retention.listed.items] == look.view.logs.items[item])
    if not len(rows):
        return [], 0
    place, listed = int(rows[0]), retention.listed.logs
    first, last = int(listed.first[place]), int(listed.last[place])
    deletions, unseen = _deletions(look, item, place)
    count = last + 1 - first
    half = MOST_SEGMENTS // 2
    chosen = range(count) if count <= MOST_SEGMENTS else [*range(half), *range(count - half, count)]
    segments = [
        SegmentRow(
            base_offset=int(listed.base[first + each]),
            size_bytes=int(listed.size[first + each]),
            max_timestamp_ms=max(int(listed.recorded[first + each]), -1),
            active=first + each == last,
            deletable=bool(deletions.deletable[each]),
            deletion_ms=look.now_ms if deletions.deletable[each] else -1 if unseen else int(deletions.goes[each]),
            deletion_by_size=bool(deletions.by_size[each]) and not unseen,
        )
        for each in chosen
    ]
    return segments, count - len(segments)


def _deletions(look: Look, item: int, place: int) -> tuple[SegmentDeletions, bool]:
    """When the segments of a log go, by the growth from which its next deletion is, and whether nobody sees how it grows now."""
    retention, columns, replica = look.view.retention, look.view.observed.columns, look.view.logs.items[item]
    log = retention.listed.logs.take(np.array([place]))
    growth = growth_now(log, retention.watched[[place]], columns["active_first_timestamp"][[replica]], look.now_ms)
    return RetentionRule(log).segments_at(look.now_ms, growth), bool(retention.unseen[retention.listed.items[place]])


def _replicas(look: Look, item: int) -> list[ReplicaRow]:
    observed = look.view.observed
    columns, sizes = observed.columns, observed.replica_offsets["size_bytes"]
    known = observed.replica_offsets["in_sync_replicas"]
    own = look.view.logs.columns
    rows = []
    for each in np.flatnonzero(columns["replicas_of"] == own["replicas_of"][item]).tolist():
        in_sync = "unknown" if known[each] < 0 else "yes" if observed.replica_offsets["in_sync"][each] else "no"
        rows.append(
            ReplicaRow(
                broker=int(columns["broker"][each]),
                role=role_of(observed, each),
                in_sync=in_sync,
                shown=bool(columns["slot"][each] == own["slot"][item]),
                log_dir=observed.log_dirs[int(columns["log_dir"][each])][1],
                size_bytes=int(sizes[each]),
                log_start_offset=int(columns["log_start_offset"][each]),
                log_end_offset=int(columns["log_end_offset"][each]),
                last_append_ms=int(columns["last_append_ms"][each]),
            )
        )
    return sorted(rows, key=lambda each: (not each.shown, each.broker))
