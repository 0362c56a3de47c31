"""The lists of log dirs, and of what fills them: a row for each topic, partition, log dir, or kind of files."""

from streaming.broker.protocol.disk_json import FULL, KIND_WORDS, NEVER, DiskRow, LogDirUse
from streaming.common.formatting import NONE, format_name, format_size
from streaming.pages.listings.list_cells import Cell, Times, after_start, of_partition, size, topic_cell, unsure
from streaming.pages.listings.listing import Listing, MakeCell


def _next(row: DiskRow, times: Times) -> Cell:
    if row.next_ms < 0 and row.next_start_of >= 0:
        return Cell(text=after_start(row.next_start_of))
    due = row.next_ms >= 0 and row.frees_now > 0
    return Cell(text="due" if due else times.deletion(row.next_ms), at_ms=row.next_ms)


def _full(row: LogDirUse, times: Times) -> Cell:
    if not row.up:
        return Cell(text="cannot be read", note=row.problem)
    if row.outlook == FULL:
        return Cell(text=times.deadline(row.full_ms), at_ms=row.full_ms)
    if row.outlook == NEVER:
        return Cell(text="not within a year")
    return Cell(text=NONE, note="not all of its logs can be read" if row.growth_unread else "its growth is not known")


def _growth(row: LogDirUse, _: Times) -> Cell:
    notes = [f"without {row.growth_unknown:,} replicas"] if row.growth_unknown and row.growth_day >= 0 else []
    notes += [f"others on its disk take {format_size(row.others_day)} a day"] if row.others_day > 0 else []
    return Cell(text=size(row.growth_day), note=", ".join(notes))


_CELLS: dict[str, MakeCell] = {
    "topic": lambda row, _: topic_cell(row.topic) if row.topic else Cell(text=NONE),
    "log_dir": lambda row, _: Cell(text=format_name(row.log_dir, 300) if row.log_dir else NONE),
    "kind": lambda row, _: Cell(text=KIND_WORDS.get(row.kind, row.kind) or NONE),
    "not_live": lambda row, _: Cell(text=format_size(row.not_live) if row.not_live else NONE),
    "next_ms": _next,
    "policy": lambda row, _: unsure(Cell(text=row.policy or NONE), assumed=row.limits_assumed),
}
_SUMS = {
    "taken": "On disk",
    "growth_day": "Growth a day",
    "frees_now": "Next check frees",
    "next_ms": "Next freed",
    "frees_day": "Free in 24h",
    "not_live": "Not live",
}


def _by(by: str, heads: dict[str, str], **cells: MakeCell) -> Listing:
    return Listing(name=f"disk by {by}", noun=by, row=DiskRow, heads=heads, cells=_CELLS | cells)


DISK = {
    "topic": _by("topic", {"topic": "Topic", **_SUMS, "replicas": "Replicas", "on_no_disk": "On no disk", "policy": "Policy"}),
    "partition": _by("partition", {"topic": "Partition", **_SUMS, "broker": "Broker", "log_dir": "Log dir"}, topic=of_partition),
    "dir": _by("log dir", {"log_dir": "Log dir", **_SUMS, "broker": "Broker", "replicas": "Replicas"}),
    "kind": _by("kind", {"kind": "Kind", "taken": "On disk", "apparent": "Length of the files"}),
}
"""The list by what its rows are."""

LOG_DIRS = Listing(
    name="log dirs",
    noun="log dir",
    row=LogDirUse,
    cells={"log_dir": _CELLS["log_dir"], "growth_day": _growth, "outlook": _full},
)
