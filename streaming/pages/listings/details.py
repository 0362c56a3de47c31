"""One thing in detail, the same on every face: its facts, by the columns of its list, what is wrong, and the tables of its parts."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from streaming.broker.protocol.group_json import NOT_KNOWN, GroupDetail, GroupFinding, is_finding
from streaming.broker.protocol.json_message import PublicMessage, Unit
from streaming.broker.protocol.listing_json import PartitionDetail, PartitionRow, ReplicaRow, SegmentRow, TopicReader, TransactionRow
from streaming.cluster.verdicts.group_words import last_rebalances
from streaming.common.units import NONE, capitalized, format_list, format_name
from streaming.pages.listings.declared_lists import GROUPS, PARTITIONS, RETENTION, TRANSACTIONS, segment_deletion
from streaming.pages.listings.listing import Cell, Listing, Times, count, number, severity_of, verdict_cell

_MOST_CLIENTS = 5

_LONG_NAMES = {"Open": "Open transactions", "Hanging": "Hanging transactions", "Why": "Why it is kept"}
"""What a heading is called where it stands alone, beside its value."""

REPLICAS = Listing(
    name="replicas",
    noun="replica",
    row=ReplicaRow,
    cells={"broker": lambda row, _: Cell(text=str(row.broker), note="shown here" if row.shown else "")},
)
READERS = Listing(
    name="readers",
    noun="consumer group",
    row=TopicReader,
    cells={
        "group": lambda row, _: Cell(text=format_name(row.group, 255), group=row.group),
        "verdict": lambda row, times: verdict_cell(row.verdict, row.since_ms, times),
    },
)


def partition_facts(detail: PartitionDetail, times: Times) -> Iterator[Fact]:
    """Those of a partition but what retention does with it."""
    row = detail.row
    yield from listed_facts(PARTITIONS, row, times, without=("topic", "kind", "rates", "next_deletion_ms", "oldest_record_ms", "segments"))
    yield Fact(name="Log start", cell=Cell(text=number(row.log_start_offset)))
    yield Fact(name="Last stable", cell=Cell(text=number(row.last_stable_offset)))
    yield Fact(name="High watermark", cell=Cell(text=number(row.high_watermark)))
    yield Fact(name="Records on disk", cell=Cell(text=count(row.records_data), note=detail.records_why))
    yield Fact(name="of these aborted", cell=Cell(text=count(row.records_aborted)))
    yield Fact(name="Control records", cell=Cell(text=count(row.records_control)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A value with its name. ``tone``: its severity; ``is_name``: it is a name that a user of Kafka chose; ``long``: it is a sentence."""

    name: str
    cell: Cell
    tone: str = ""
    is_name: bool = False
    long: bool = False


def listed_facts(listing: Listing, row: PublicMessage, times: Times, *, without: Collection[str]) -> Iterator[Fact]:
    """A row of a list with its headings and cells, but for some of its fields."""
    for each in listing.columns:
        if each.name not in without:
            tone = severity_of(row) if each.toned else ""
            yield Fact(
                name=_LONG_NAMES.get(each.heading, each.heading), cell=each.cell_in(row, times), tone=tone, is_name=each.unit is Unit.NAME
            )


def group_facts(detail: GroupDetail, times: Times) -> Iterator[Fact]:
    """Those of a group. A streaming query has neither clients nor rebalances."""
    yield from listed_facts(GROUPS, detail.summary, times, without=("group",))
    if detail.notes:
        yield Fact(name="Query", cell=Cell(text=". ".join(map(capitalized, detail.notes))), long=True)
        return
    for name, members in (("Clients", detail.clients), ("Hosts", detail.hosts)):
        yield Fact(name=name, cell=Cell(text=format_list([format_name(each) for each in members], _MOST_CLIENTS) or NONE))
    rebalances = "; ".join(last_rebalances(detail.rebalances, detail.at_ms))
    yield Fact(name="Last rebalances", cell=Cell(text=rebalances or NONE), long=True)


def group_findings(detail: GroupDetail) -> list[GroupFinding]:
    """What is wrong with a group or not known of it, the worst first."""
    return [each for each in detail.findings if is_finding(each) or each.verdict in NOT_KNOWN]


def retention_facts(detail: PartitionDetail, times: Times) -> Iterator[Fact]:
    """What is kept of a partition and why."""
    if detail.retention is not None:
        why = () if detail.retention.retention_blocked_why else ("retention_blocked_why",)
        yield from listed_facts(RETENTION, detail.retention, times, without=("topic", "kind", "broker", "size_bytes", *why))


def transaction_facts(row: TransactionRow, times: Times) -> Iterator[Fact]:
    """Those of an open transaction of a partition, without its producer, verdict and command."""
    return listed_facts(TRANSACTIONS, row, times, without=("topic", "producer_id", "verdict", "broker", "command"))


def segments_of(row: PartitionRow) -> Listing:
    """The list of a partition's segments, oldest first."""

    def deletion(segment: SegmentRow, times: Times) -> Cell:
        return Cell(text=segment_deletion(segment, row, times), at_ms=-1 if row.next_deletion_start_of >= 0 else segment.deletion_ms)

    return Listing(name="segments", noun="segment", row=SegmentRow, cells={"active": _state, "deletion_ms": deletion})


def _state(segment: SegmentRow, _: Times) -> Cell:
    return Cell(text="active" if segment.active else "beyond the limit" if segment.deletable else "closed")
