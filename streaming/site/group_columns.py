"""The columns of the page's tables about consumer groups."""

from streaming.formatting import format_count, format_name
from streaming.protocol.group_json import GroupPartition, GroupSummary
from streaming.protocol.problem_json import CRITICAL, WARNING
from streaming.site.page_links import group_link
from streaming.site.page_tables import ASCENDING, Column
from streaming.site.page_words import NOTHING, Cell, moment, number, partition_cell, records_rate, size


def _name(row: GroupSummary, now_ms: int) -> Cell:
    return Cell(text=format_name(row.group, 255), href=group_link(row.group), note=row.type, name=True)


def _state(row: GroupSummary, now_ms: int) -> Cell:
    return Cell(text=row.state or NOTHING, note=format_count(row.members, "member") if row.members >= 0 else "")


def _left(row: GroupSummary, now_ms: int) -> Cell:
    if row.lag_records_read_committed >= 0:
        return Cell(text=f"{row.lag_records_read_committed:,}", note=f"{number(row.unknown).text} unknown" if row.unknown else "")
    return Cell(text=number(row.lag_offsets).text, note="offsets" if row.lag_offsets >= 0 else "")


def _wrong(row: GroupSummary, now_ms: int) -> Cell:
    found = (
        (row.below_start, "lost records"),
        (row.held, "held up"),
        (row.beyond_end, "beyond the end"),
        (row.stopped, "stopped"),
        (row.pending, "with commits that wait"),
    )
    words = [f"{count:,} {what}" for count, what in found if count > 0]
    return Cell(text=", ".join(words) or NOTHING, tone=CRITICAL if row.below_start > 0 else WARNING if words else "")


GROUP_COLUMNS: tuple[Column[GroupSummary], ...] = (
    Column(head="Group", cell=_name, sort="group", first=ASCENDING),
    Column(head="State", cell=_state, sort="state", first=ASCENDING),
    Column(head="Partitions", cell=lambda row, _: number(row.partitions), sort="partitions", numbers=True),
    Column(head="Records left", cell=_left, sort="lag_records_read_committed", numbers=True),
    Column(head="Bytes left", cell=lambda row, _: size(row.lag_bytes), sort="lag_bytes", numbers=True),
    Column(head="Oldest unread", cell=lambda row, now: moment(row.oldest_append_ms, now), sort="oldest_append_ms", first=ASCENDING),
    Column(head="First loss", cell=lambda row, now: moment(row.loss_ms, now), sort="loss_ms", first=ASCENDING),
    Column(head="Partitions in trouble", cell=_wrong, sort="held"),
    Column(head="Last commit", cell=lambda row, now: moment(row.last_commit_ms, now), sort="last_commit_ms"),
)


def _lag(row: GroupPartition, now_ms: int) -> Cell:
    if row.lag < 0:
        return Cell(text=NOTHING, note=row.unknown.replace("_", " "))
    return Cell(text=f"{row.lag:,}", note="" if row.lag_records_read_committed >= 0 else "offsets")


def _progress(row: GroupPartition, now_ms: int) -> Cell:
    if row.held:
        return Cell(text="held up", note="by an open transaction", tone=WARNING)
    if row.stopped_since_ms >= 0:
        since = moment(row.stopped_since_ms, now_ms)
        return Cell(text="stopped", note=since.text, time=since.time, tone=WARNING)
    return Cell(text="goes on" if row.lag > 0 else NOTHING)


GROUP_PARTITION_COLUMNS: tuple[Column[GroupPartition], ...] = (
    Column(head="Partition", cell=lambda row, _: partition_cell(row.topic, row.partition), sort="topic", first=ASCENDING),
    Column(head="Committed", cell=lambda row, _: number(row.committed), sort="committed", numbers=True),
    Column(head="High watermark", cell=lambda row, _: number(row.high_watermark), sort="high_watermark", numbers=True),
    Column(head="Records left", cell=_lag, sort="lag", numbers=True),
    Column(head="Bytes left", cell=lambda row, _: size(row.lag_bytes), sort="lag_bytes", numbers=True),
    Column(head="Read a second", cell=lambda row, _: Cell(text=records_rate(row.consumed_rate)), sort="consumed_rate", numbers=True),
    Column(head="Appended a second", cell=lambda row, _: Cell(text=records_rate(row.appended_rate)), sort="appended_rate", numbers=True),
    Column(head="Progress", cell=_progress, sort="stopped_since_ms"),
    Column(head="Loss", cell=lambda row, now: moment(row.loss_ms, now), sort="loss_ms", first=ASCENDING),
    Column(head="Last commit", cell=lambda row, now: moment(row.commit_ms, now), sort="commit_ms"),
)
