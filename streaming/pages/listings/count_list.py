"""The lists of how many records there are: a row for each topic, or for each partition."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from streaming.broker.protocol.count_json import CountRow
from streaming.common.formatting import format_list
from streaming.pages.listings.list_cells import Cell, Unit, partition_cell, word
from streaming.pages.listings.listing import Field, Listing

_NAMED = 5
_SUMMED = ("data", "aborted", "control", "readable", "waiting", "unreplicated", "remote_offsets")


def _listing(name: str, *, by_topic: bool) -> Listing:
    def rank(of_topic: int, of_partition: int) -> int:
        return of_topic if by_topic else of_partition

    def heading(text: str, *, topics: bool = True, partitions: bool = True) -> str:
        return text if (topics if by_topic else partitions) else ""

    return Listing(
        name=name,
        noun="topic" if by_topic else "partition",
        row=CountRow,
        fields=(
            Field(
                name="topic",
                unit=Unit.NAME,
                meaning="which one",
                heading="Topic" if by_topic else "Partition",
                rank=1,
                least=16,
                cell=lambda row, _: Cell(text=word(row.topic)) if row.partition < 0 else partition_cell(row.topic, row.partition),
            ),
            Field(name="partition", unit=Unit.ID, meaning="which one; `null` in a row of a topic"),
            Field(
                name="partitions",
                unit=Unit.COUNT,
                meaning="how many the row is about",
                heading=heading("Partitions", partitions=False),
                rank=rank(2, 0),
            ),
            Field(
                name="broker", unit=Unit.ID, meaning="whose replica was counted", heading=heading("Broker", topics=False), rank=rank(0, 2)
            ),
            Field(name="leader", unit=Unit.FLAG, meaning="whether it leads"),
            Field(
                name="first_offset",
                unit=Unit.ID,
                meaning="it was counted from here",
                heading=heading("From", topics=False),
                rank=rank(0, 3),
            ),
            Field(name="next_offset", unit=Unit.ID, meaning="and up to before this", heading=heading("To", topics=False), rank=rank(0, 4)),
            Field(name="high_watermark", unit=Unit.ID, meaning="Kafka's own"),
            Field(name="last_stable_offset", unit=Unit.ID, meaning="Kafka's own"),
            Field(
                name="data", unit=Unit.COUNT, meaning="records that producers have sent, without those compacted", heading="Data", rank=5
            ),
            Field(name="aborted", unit=Unit.COUNT, meaning="of these, in aborted transactions", heading="Aborted", rank=6),
            Field(name="control", unit=Unit.COUNT, meaning="markers of transactions, which have offsets too", heading="Control", rank=7),
            Field(
                name="readable",
                unit=Unit.COUNT,
                meaning="what a consumer with read_committed gets; `null` from a job, which counts by whole logs",
                heading="Readable",
                rank=8,
            ),
            Field(name="waiting", unit=Unit.COUNT, meaning="data between the last stable offset and the high watermark"),
            Field(name="unreplicated", unit=Unit.COUNT, meaning="data after the high watermark"),
            Field(name="remote_offsets", unit=Unit.COUNT, meaning="offsets that are only in remote storage"),
            Field(
                name="error",
                unit=Unit.SENTENCE,
                meaning="why it is not counted, or where it is damaged; of a topic that of its first such partition",
            ),
        ),
    )


COUNTS = {"topic": _listing("count", by_topic=True), "partition": _listing("count by partition", by_topic=False)}


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
        if len(some) == 1:
            what = "has damage after what is counted" if counted else "is not counted"
            yield f"{names[0]} of broker {some[0].broker} {what}: {reason}"
        else:
            what = "have damage after what is counted" if counted else "are not counted"
            yield f"{len(some):,} partitions {what}: {format_list(names, _NAMED)}: {reason}"


def _sum(values: list[int]) -> Any:
    return -1 if min(values) < 0 else sum(values)
