"""A group in detail: its verdicts with their commands, and its partitions."""

from streaming.formatting import format_count, format_name, format_table
from streaming.protocol.group_json import GroupDetail
from streaming.top.cells import cut
from streaming.top.columns import Times, count, number, place, size, word
from streaming.top.labelled_text import Line, all_labelled, command_lines, title
from streaming.verdicts.group_verdicts import Bounds, GroupVerdict, Kind, judge

_MOST_VERDICTS, _MOST_PARTITIONS = 100, 1000
_CALM = (Kind.FINE, Kind.ONLY_MARKERS)


def verdicts_of(group: GroupDetail) -> list[GroupVerdict]:
    """What is to be said of a group as of its answer, the most severe first."""
    return [each for each in judge(group, group.at_ms, Bounds()) if each.kind not in _CALM]


def group_lines(group: GroupDetail, times: Times, width: int) -> list[Line]:
    """Everything about a group, what is wrong first."""
    of, found = group.summary, verdicts_of(group)
    calm = len(group.partitions) - len({(each.topic, each.partition) for each in found if each.topic})
    lines = [
        *title(format_name(of.group), width),
        *all_labelled(
            (
                (
                    "type",
                    f"{word(of.type)}, {word(of.state)}, {'members not known' if of.members < 0 else format_count(of.members, 'member')}",
                ),
                (
                    "left",
                    f"{count(of.lag_records_read_committed)} records, {size(of.lag_bytes)}, in {format_count(of.partitions, 'partition')}",
                ),
                ("last commit", times.of(of.last_commit_ms)),
                ("clients", ", ".join(map(format_name, group.clients))),
                ("hosts", ", ".join(map(format_name, group.hosts))),
            ),
            width,
        ),
    ]
    for each in found[:_MOST_VERDICTS]:
        where = f"{place(each.topic, each.partition)}: " if each.topic else ""
        lines += title(f"{where}{each.kind.label}: {each.text}", width)
        lines += command_lines(each.command.line, each.command.reason, width)
    if len(found) > _MOST_VERDICTS:
        lines += title(f"and {len(found) - _MOST_VERDICTS:,} more: `segtail why` has all of them", width)
    if calm > 0:
        lines += title(f"nothing to do for {calm:,} of {format_count(len(group.partitions), 'partition')}", width)
    return [*lines, *_partitions(group, times, width)]


def _partitions(group: GroupDetail, times: Times, width: int) -> list[Line]:
    rows: list[tuple[str | None, ...]] = [("partition", "records left", "bytes", "committed", "end", "next record")]
    for each in group.partitions[:_MOST_PARTITIONS]:
        oldest = each.next_append_ms if each.next_append_ms >= 0 else each.next_timestamp_ms
        left, end = count(each.lag_records_read_committed), number(each.high_watermark)
        rows.append((place(each.topic, each.partition), left, size(each.lag_bytes), number(each.committed), end, times.of(oldest)))
    if len(rows) == 1:
        return []
    lines = format_table(rows, ("records left", "bytes", "committed", "end", "next record"))
    omitted = group.omitted + max(0, len(group.partitions) - _MOST_PARTITIONS)
    return [*title(f"partitions{f', {omitted:,} left out' if omitted else ''}", width), *(Line(cut(line, width)) for line in lines)]
