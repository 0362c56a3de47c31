"""The lists of what fills log dirs: a row for each topic, partition, log dir, or kind of files."""

from streaming.broker.protocol.disk_json import KIND_WORDS, DiskRow
from streaming.common.formatting import NONE, format_name, format_size
from streaming.pages.listings.list_cells import Cell, Times, Unit, after_start, partition_cell, size, topic_cell, unsure
from streaming.pages.listings.listing import Field, Listing


def _next(row: DiskRow, times: Times) -> Cell:
    if row.next_ms < 0 and row.next_start_of >= 0:
        return Cell(text=after_start(row.next_start_of))
    due = row.next_ms >= 0 and row.frees_now > 0
    return Cell(text="due" if due else times.deletion(row.next_ms), at_ms=row.next_ms)


def _listing(by: str, columns: dict[str, str]) -> Listing:
    """A list with these columns, by their fields, the most important one first."""
    ranks = {name: rank for rank, name in enumerate(columns, 1)}

    def field(name: str, unit: Unit, meaning: str) -> Field:
        return Field(
            name=name,
            unit=unit,
            meaning=meaning,
            heading=columns.get(name, ""),
            rank=ranks.get(name, 0),
            cell=(_partition if by == "partition" and name == "topic" else _CELLS.get(name)),
            least=16 if ranks.get(name) == 1 else 0,
        )

    return Listing(
        name=f"disk by {by}",
        noun=by,
        row=DiskRow,
        fields=(
            field("topic", Unit.NAME, "what the row is about, by `by`; `null` if it is about something else"),
            field("broker", Unit.ID, "likewise"),
            field("partition", Unit.ID, "likewise"),
            field("log_dir", Unit.NAME, "likewise"),
            field("kind", Unit.WORD, "likewise"),
            field("replicas", Unit.COUNT, "live ones, without that of the metadata log"),
            field("taken", Unit.BYTES, "what it takes on the disk; of segments their length where a job or the page of log dirs tells it"),
            field("apparent", Unit.BYTES, "the length of its files"),
            field("segments", Unit.BYTES, "of live segments"),
            field("not_live", Unit.BYTES, "of what is no live log"),
            field("growth_day", Unit.BYTES, "bytes a day, of the replicas whose growth is known"),
            field("growth_unknown", Unit.COUNT, "how many the others are"),
            field("growth_unread", Unit.COUNT, "of how many of these the log cannot be read"),
            field("frees_now", Unit.BYTES, "what the next check deletes"),
            field("frees_day", Unit.BYTES, "what is free in 24 hours"),
            field(
                "next_ms",
                Unit.MOMENT,
                "when the next space is free: after the next deletion, when a check has come and the files are unlinked",
            ),
            field("next_start_of", Unit.ID, "a broker, without a process, that has to be started before some of it is"),
            field("policy", Unit.WORD, "the cleanup policy of a topic"),
            field("limits_assumed", Unit.FLAG, "the limits of a topic are Kafka's defaults, because the real ones are not known"),
            field("on_no_disk", Unit.BYTES, "the most of a topic that is on no disk of any replica: what a power cut of the site may take"),
            field("on_no_disk_partly", Unit.COUNT, "of how many partitions not every replica is observed, so that it may be less"),
        ),
    )


_CELLS = {
    "topic": lambda row, _: topic_cell(row.topic) if row.topic else Cell(text=NONE),
    "log_dir": lambda row, _: Cell(text=format_name(row.log_dir, 300) if row.log_dir else NONE),
    "kind": lambda row, _: Cell(text=KIND_WORDS.get(row.kind, row.kind) or NONE),
    "not_live": lambda row, _: Cell(text=format_size(row.not_live) if row.not_live else NONE),
    "taken": lambda row, _: Cell(text=size(row.taken)),
    "next_ms": _next,
    "policy": lambda row, _: unsure(Cell(text=row.policy or NONE), assumed=row.limits_assumed),
}


def _partition(row: DiskRow, _: Times) -> Cell:
    return partition_cell(row.topic, row.partition)


_SUMS = {
    "taken": "On disk",
    "growth_day": "Growth a day",
    "frees_now": "Next check frees",
    "next_ms": "Next freed",
    "frees_day": "Free in 24h",
    "not_live": "Not live",
}

DISK = {
    "topic": _listing("topic", {"topic": "Topic", **_SUMS, "replicas": "Replicas", "on_no_disk": "On no disk", "policy": "Policy"}),
    "partition": _listing("partition", {"topic": "Partition", **_SUMS, "broker": "Broker", "log_dir": "Log dir"}),
    "dir": _listing("log dir", {"log_dir": "Log dir", **_SUMS, "broker": "Broker", "replicas": "Replicas"}),
    "kind": _listing("kind", {"kind": "Kind", "taken": "On disk", "apparent": "Length of the files"}),
}
"""The list by what its rows are."""
