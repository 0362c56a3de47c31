"""The lists of partitions, of what is kept of them, of topics, of brokers, and of how many records there are."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from streaming.broker.protocol.listing_json import (
    BROKERS_PATH,
    PARTITIONS_PATH,
    RETENTION_PATH,
    TOPICS_PATH,
    BrokerPage,
    BrokerRow,
    CountRow,
    PartitionPage,
    PartitionRow,
    RetentionPage,
    RetentionRow,
    SegmentRow,
    TopicPage,
    TopicRow,
)
from streaming.common.formatting import NONE, format_count, format_list, format_name
from streaming.pages.listings.list_cells import (
    Cell,
    Times,
    after_start,
    count,
    length,
    of_partition,
    size,
    topic_cell,
    unsure,
    word,
    words,
)
from streaming.pages.listings.listing import Listing, judged_cell

_NAMED = 5
_SUMMED = ("data", "aborted", "control", "readable", "waiting", "unreplicated", "remote_offsets")


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


def _overdue(row: RetentionRow, _: Times) -> Cell:
    """For how long; with a question mark where limits are assumed, if there is something. What is blocked need not be overdue."""
    if row.retention_blocked and row.retention_overdue_ms == 0:
        return Cell(text=NONE)
    return unsure(Cell(text=length(row.retention_overdue_ms)), assumed=row.limits_assumed and row.retention_overdue_ms > 0)


def _phase(row: BrokerRow, times: Times) -> Cell:
    return Cell(text=words(row.phase), note="" if row.phase_ms < 0 else times.of(row.phase_ms), at_ms=row.phase_ms)


def _agent(row: BrokerRow, _: Times) -> Cell:
    return Cell(text=format_name(row.agent), note="" if row.agent_up else "does not answer") if row.agent else Cell(text=NONE)


_LIMITS = {
    "next_deletion_ms": next_deletion,
    "retention_limit_ms": lambda row, _: unsure(Cell(text=length(row.retention_limit_ms)), assumed=row.limits_assumed),
    "retention_limit_bytes": lambda row, _: unsure(Cell(text=size(row.retention_limit_bytes)), assumed=row.limits_assumed),
    "kind": judged_cell,
}

PARTITIONS = Listing(
    name="partitions",
    noun="partition",
    row=PartitionRow,
    path=PARTITIONS_PATH,
    page=PartitionPage,
    default="kind",
    off_page=("log_end_offset", "hanging_transactions", "oldest_record_ms", "segments"),
    cells={"topic": of_partition, "unread_offsets": _held_back, "next_deletion_ms": next_deletion, "kind": judged_cell},
)
RETENTION = Listing(
    name="retention",
    noun="retention",
    row=RetentionRow,
    path=RETENTION_PATH,
    page=RetentionPage,
    default="kind",
    off_page=("segments", "cleanup_policy", "broker"),
    cells={"topic": of_partition, "retention_overdue_ms": _overdue, **_LIMITS},
)
TOPICS = Listing(
    name="topics",
    noun="topic",
    row=TopicRow,
    path=TOPICS_PATH,
    page=TopicPage,
    default="kind",
    cells={"topic": lambda row, _: topic_cell(row.topic), **_LIMITS},
)
BROKERS = Listing(
    name="brokers",
    noun="broker",
    row=BrokerRow,
    path=BROKERS_PATH,
    page=BrokerPage,
    default="kind",
    cells={"phase": _phase, "agent": _agent, "kind": judged_cell},
)
_COUNTED = {"data": "Data", "aborted": "Aborted", "control": "Control", "readable": "Readable"}
COUNTS = {
    "topic": Listing(
        name="count",
        noun="topic",
        row=CountRow,
        heads={"topic": "Topic", "partitions": "Partitions", **_COUNTED},
        cells={"topic": lambda row, _: Cell(text=word(row.topic))},
    ),
    "partition": Listing(
        name="count by partition",
        noun="partition",
        row=CountRow,
        heads={"topic": "Partition", "broker": "Broker", "first_offset": "From", "next_offset": "To", **_COUNTED},
        cells={"topic": of_partition},
    ),
}


def by_topic(rows: Iterable[CountRow]) -> list[CountRow]:
    """A row for each topic, in the order in which they come first, with the first error of its partitions."""
    topics: dict[str, list[CountRow]] = {}
    for row in rows:
        topics.setdefault(row.topic, []).append(row)
    return [
        replace(
            CountRow(topic=topic, partitions=len(those), error=next((row.error for row in those if row.error), "")),
            **{name: _sum([getattr(row, name) for row in those]) for name in _SUMMED},
        )
        for topic, those in topics.items()
    ]


def uncounted(rows: Iterable[CountRow], advice: Callable[[CountRow], str] = lambda _: "") -> Iterator[str]:
    """What is not counted, or not to its end, and why: a sentence without a period for each reason, whoever has counted.

    Args:
        rows: of partitions.
        advice: what can be done about one of them, as further sentences.
    """
    alike: dict[tuple[bool, str], list[CountRow]] = {}
    for row in rows:
        if row.error:
            alike.setdefault((row.data >= 0, f"{row.error}{advice(row)}"), []).append(row)
    for (counted, reason), some in alike.items():
        names = [f"{row.topic}-{row.partition}" for row in some]
        one = len(some) == 1
        have, are = ("has", "is") if one else ("have", "are")
        what = f"{have} damage after what is counted" if counted else f"{are} not counted"
        yield (
            f"{names[0]} of broker {some[0].broker} {what}: {reason}"
            if one
            else (f"{len(some):,} partitions {what}: {format_list(names, _NAMED)}: {reason}")
        )


def _sum(values: list[int]) -> Any:
    return -1 if min(values) < 0 else sum(values)
