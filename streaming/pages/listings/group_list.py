"""The lists of consumer groups, and of a group's partitions."""

from dataclasses import replace

from streaming.broker.protocol.group_json import GROUPS_PATH, NOBODYS, GroupPage, GroupPartition, GroupSummary
from streaming.broker.protocol.group_verdicts import is_finding
from streaming.common.formatting import NONE, format_count, format_name
from streaming.pages.listings.list_cells import Cell, Times, after_start, count, length, of_partition, unsure, words
from streaming.pages.listings.listing import Listing


def no_groups(page: GroupPage) -> str:
    """Instead of rows, where no group is known: that there is none, or why that is not known. A clause without a period."""
    if page.coordinators < 0:
        return "no consumer groups are known"
    if not page.coordinators:
        return "no consumer groups are known: no log of a coordinator (__consumer_offsets) was read here"
    was = "was" if page.coordinators == 1 else "were"
    return f"no consumer groups: {format_count(page.coordinators, 'log')} of coordinators {was} read"


def verdict_cell(row: GroupSummary | GroupPartition, times: Times) -> Cell:
    """The worst verdict, and since when it is so; what needs nothing has a question mark where limits are assumed."""
    cell = unsure(Cell(text=words(row.verdict)), assumed=row.limits_assumed and not is_finding(row))
    return cell if row.since_ms < 0 else Cell(text=cell.text, note=times.of(row.since_ms), at_ms=row.since_ms)


def records_left_cell(row: GroupSummary, _: Times) -> Cell:
    """What is left to read, by the isolation of the group; a plus sign where that of some partition is not known."""
    known = row.records_left
    return Cell(text=NONE if known < 0 else f"{known:,}+" if row.unknown else f"{known:,}", note=besides_words(row))


def besides_words(row: GroupSummary | GroupPartition) -> str:
    """What is not in the records that are left: those that wait, and those that only the other isolation reads; "" for nothing."""
    waits = f"up to {row.records_waiting:,} more wait for open transactions" if row.records_waiting else ""
    least, most = row.lag_records_read_committed, row.lag_records_read_uncommitted
    others = most - least - row.records_waiting if min(least, most) >= 0 else 0
    isolation = f"as read with {row.isolation}" if row.isolation else f"{others:,} more if it reads with read_uncommitted"
    return ", ".join(filter(None, [waits, isolation if others > 0 else ""]))


def counted_in(row: GroupSummary) -> str:
    """In how many partitions that is left, and of how many it is not known: these are not in the sum."""
    every = format_count(row.partitions, "partition")
    return f"{every}, {row.unknown:,} of them not counted" if row.unknown and row.records_left >= 0 else every


def loss_cell(row: GroupSummary | GroupPartition, times: Times) -> Cell:
    """When the first unread record may be deleted; what is due goes with the next check of its broker."""
    if row.loss_ms < 0 and row.loss_start_of >= 0:
        return unsure(Cell(text=after_start(row.loss_start_of)), assumed=row.limits_assumed)
    due = times.relative and 0 <= row.loss_ms <= times.now_ms
    return unsure(Cell(text="next check" if due else times.of(row.loss_ms), at_ms=row.loss_ms), assumed=row.limits_assumed)


def _loss(row: GroupSummary, times: Times) -> Cell:
    """The same of a group: a loss that nobody misses says so, and is not the next loss of the cluster's numbers."""
    cell = loss_cell(row, times)
    return replace(cell, note="nobody misses it") if cell.text != NONE and row.use in NOBODYS else cell


def oldest_cell(at_ms: int, times: Times) -> Cell:
    """How old a record is; one whose clock is ahead is no event to come."""
    ahead = times.relative and at_ms > times.now_ms
    return Cell(text=f"{length(at_ms - times.now_ms)} ahead" if ahead else times.of(at_ms), at_ms=at_ms)


def _left(row: GroupPartition, _: Times) -> Cell:
    at_most = f", at most {row.uncommitted_records:,} in the log" if row.uncommitted_records >= 0 else ""
    return Cell(text=count(row.records_left), note=besides_words(row) or row.unknown.replace("_", " ") + at_most)


GROUPS = Listing(
    name="groups",
    noun="consumer group",
    row=GroupSummary,
    path=GROUPS_PATH,
    page=GroupPage,
    default="verdict",
    cells={
        "group": lambda row, _: Cell(text=format_name(row.group, 255), group=row.group),
        "lag_records_read_committed": records_left_cell,
        "oldest_ms": lambda row, times: oldest_cell(row.oldest_ms, times),
        "loss_ms": _loss,
        "verdict": verdict_cell,
    },
)
GROUP_PARTITIONS = Listing(
    name="group partitions",
    noun="partition",
    row=GroupPartition,
    default="verdict",
    cells={
        "topic": of_partition,
        "lag_records_read_committed": _left,
        "next_append_ms": lambda row, times: oldest_cell(row.next_ms, times),
        "loss_ms": loss_cell,
        "verdict": verdict_cell,
    },
)
