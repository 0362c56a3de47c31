"""The list of consumer groups."""

from dataclasses import replace

from streaming.broker.protocol.group_json import GroupPage, GroupPartition, GroupSummary
from streaming.broker.protocol.group_use import NOBODYS, GroupUse
from streaming.broker.protocol.group_verdicts import is_finding
from streaming.common.formatting import NONE, format_count, format_name
from streaming.pages.listings.list_cells import Cell, Times, Unit, after_start, length, unsure, words
from streaming.pages.listings.listing import ASCENDING, DESCENDING, WIDE, Field, Listing

_PARTITIONS = "the partitions of which this is so"


def no_groups(page: GroupPage) -> str:
    """Instead of rows, where no group is known: that there is none, or why that is not known. A clause without a period."""
    if page.coordinators < 0:
        return "no consumer groups are known"
    if not page.coordinators:
        return "no consumer groups are known: no log of a coordinator (__consumer_offsets) was read here"
    return (
        f"no consumer groups: {format_count(page.coordinators, 'log')} of coordinators {'was' if page.coordinators == 1 else 'were'} read"
    )


def _name(row: GroupSummary, _: Times) -> Cell:
    return Cell(text=format_name(row.group, 255), group=row.group)


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


def _oldest(row: GroupSummary, times: Times) -> Cell:
    return oldest_cell(row.oldest_ms, times)


def _counted(name: str, meaning: str) -> Field:
    return Field(name=name, unit=Unit.COUNT, meaning=meaning, sort=DESCENDING)


LAG_OFFSETS = Field(
    name="lag_offsets",
    unit=Unit.COUNT,
    meaning="what `kafka-consumer-groups` calls LAG",
    heading="Offsets",
    rank=7,
    sort=DESCENDING,
    key="F",
)
LAG_RECORDS = Field(
    name="lag_records_read_committed",
    unit=Unit.COUNT,
    meaning="the records that a consumer with `read_committed` will get; a table shows those of the group's own isolation",
    heading="Records left",
    rank=3,
    sort=DESCENDING,
    key="R",
)
LAG_RECORDS_UNCOMMITTED = Field(name="lag_records_read_uncommitted", unit=Unit.COUNT, meaning="the records that other consumers will get")
ISOLATION = Field(
    name="isolation",
    unit=Unit.WORD,
    meaning="`read_uncommitted` if an offset of the group shows that, or what is given for a streaming query; else `null`: then "
    "`read_committed` is assumed",
)
LAG_BYTES = Field(
    name="lag_bytes",
    unit=Unit.BYTES,
    meaning="of the whole batches that the records are in",
    heading="Bytes",
    rank=6,
    sort=DESCENDING,
    key="B",
)
LOSS = Field(
    name="loss_ms",
    unit=Unit.MOMENT,
    meaning="when retention may delete the first unread record",
    heading="Next loss",
    rank=5,
    sort=ASCENDING,
    key="L",
    cell=loss_cell,
)
START_OF = Field(
    name="loss_start_of",
    unit=Unit.ID,
    meaning="the broker that would delete it and has no process: it has to be started first, and when is not known",
)
JUDGEMENT = (
    Field(
        name="verdict",
        unit=Unit.WORD,
        meaning="the worst of its findings, as in [groups.md](groups.md)",
        heading="Verdict",
        rank=2,
        sort=ASCENDING,
        key="V",
        toned=True,
        least=8,
        cell=verdict_cell,
    ),
    Field(name="severity", unit=Unit.WORD, meaning="of that finding; `null` for what needs no look"),
    Field(name="since_ms", unit=Unit.MOMENT, meaning="since when it is so"),
)
"""The last fields of groups and of their partitions."""

GROUPS = Listing(
    name="groups",
    noun="consumer group",
    row=GroupSummary,
    default="verdict",
    fields=(
        Field(name="group", unit=Unit.NAME, meaning="its name", heading="Group", rank=1, sort=ASCENDING, key="G", least=16, cell=_name),
        Field(
            name="type",
            unit=Unit.WORD,
            meaning="as Kafka's tools call it; one that has only commits is `Classic`, a streaming query `Spark`",
            heading="Type",
            rank=11,
            sort=ASCENDING,
            key="Y",
        ),
        Field(name="protocol", unit=Unit.WORD, meaning="of a classic group, as `consumer` or `connect`"),
        Field(
            name="state",
            unit=Unit.WORD,
            meaning="as Kafka's tools call it; of a query `Planned` or `Committed`",
            heading="State",
            rank=10,
            sort=ASCENDING,
            key="S",
        ),
        Field(
            name="members",
            unit=Unit.COUNT,
            meaning="`null` if nothing is known of them",
            heading="Members",
            rank=7,
            sort=DESCENDING,
            key="M",
        ),
        Field(
            name="epoch",
            unit=Unit.ID,
            meaning="of a classic group its generation, of a streaming query its last micro-batch that is committed",
        ),
        Field(name="state_ms", unit=Unit.MOMENT, meaning="since when it is in its state; of a newer protocol only while it is empty"),
        Field(
            name="partitions",
            unit=Unit.COUNT,
            meaning="those with a committed offset, or with one that waits in a transaction",
            heading="Partitions",
            rank=12,
            sort=DESCENDING,
            key="P",
        ),
        _counted("unknown", "the partitions of which the lag is not known: sums are lower bounds if there are any"),
        Field(name="uncommitted", unit=Unit.COUNT, meaning="of those, the ones that have no committed offset"),
        Field(name="uncommitted_records", unit=Unit.COUNT, meaning="at most so many records are in the logs of these; no lag counts them"),
        _counted("stopped", _PARTITIONS),
        _counted("held", _PARTITIONS),
        Field(name="beyond_end", unit=Unit.COUNT, meaning=_PARTITIONS),
        Field(name="below_start", unit=Unit.COUNT, meaning=_PARTITIONS),
        _counted("pending", "commits that wait in open transactions"),
        Field(name="oldest_pending_ms", unit=Unit.MOMENT, meaning="when the first of those was committed, by the coordinator's clock"),
        ISOLATION,
        replace(LAG_OFFSETS, rank=9),
        replace(LAG_RECORDS, cell=records_left_cell),
        LAG_RECORDS_UNCOMMITTED,
        LAG_BYTES,
        Field(
            name="oldest_ms",
            unit=Unit.MOMENT,
            meaning="since when the oldest unread record is there: its append, or its own timestamp where that was not seen",
            heading="Oldest unread",
            rank=4,
            sort=ASCENDING,
            key="O",
            cell=_oldest,
        ),
        Field(name="oldest_append_ms", unit=Unit.MOMENT, meaning="the oldest append of a next unread record"),
        Field(name="oldest_timestamp_ms", unit=Unit.MOMENT, meaning="the oldest timestamp of a next unread record"),
        replace(LOSS, cell=_loss),
        START_OF,
        Field(name="limits_assumed", unit=Unit.FLAG, meaning="the limits of some partition are Kafka's defaults or weaker ones"),
        Field(
            name="last_commit_ms",
            unit=Unit.MOMENT,
            meaning="the last commit of an offset",
            heading="Last commit",
            rank=WIDE,
            sort=DESCENDING,
            key="C",
        ),
        Field(
            name="interval_ms",
            unit=Unit.DURATION,
            meaning="its usual interval between two commits, see [groups.md](groups.md#who-uses-a-group)",
            sort=DESCENDING,
        ),
        Field(name="expiration_ms", unit=Unit.MOMENT, meaning="when its coordinator may first delete an offset"),
        Field(name="last_rebalance_ms", unit=Unit.MOMENT, meaning="when it last rebalanced", sort=DESCENDING),
        Field(
            name="rebalances_lately",
            unit=Unit.COUNT,
            meaning="how often members have interrupted each other by that within half an hour, see [groups.md](groups.md#rebalances)",
            sort=DESCENDING,
        ),
        Field(
            name="use",
            unit=Unit.WORD,
            meaning="who uses it, see [groups.md](groups.md#who-uses-a-group)",
            heading="Use",
            rank=8,
            sort=ASCENDING,
            key="U",
            choices=tuple(GroupUse),
        ),
        *JUDGEMENT,
    ),
)
