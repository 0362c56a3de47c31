"""A group in detail: its verdicts with their commands, and its partitions."""

from streaming.broker.protocol.group_json import GroupDetail, GroupFinding
from streaming.broker.protocol.group_verdicts import NOTHING_TO_DO
from streaming.cluster.verdicts.rebalance_words import last_rebalances
from streaming.common.formatting import format_count, format_name
from streaming.pages.listings.cells import cut
from streaming.pages.listings.group_list import GROUP_PARTITIONS, counted_in, records_left_cell
from streaming.pages.listings.list_cells import Times, place, size, word
from streaming.pages.listings.text_table import text_table
from streaming.terminal.top.labelled_text import DetailLine, all_labelled, command_lines, title

_MOST_VERDICTS, _MOST_PARTITIONS = 100, 1000


def findings_of(group: GroupDetail) -> list[GroupFinding]:
    """What is to be said of a group, the worst first, without what needs nothing."""
    return [each for each in group.findings if each.verdict not in NOTHING_TO_DO]


def group_lines(group: GroupDetail, times: Times, width: int) -> list[DetailLine]:
    """Everything about a group, what is wrong first."""
    of, found = group.summary, findings_of(group)
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
                    f"{records_left_cell(of, times).text} records, {size(of.lag_bytes)}, in {counted_in(of)}",
                ),
                ("last commit", times.of(of.last_commit_ms)),
                ("clients", ", ".join(map(format_name, group.clients))),
                ("hosts", ", ".join(map(format_name, group.hosts))),
                ("rebalances", "; ".join(last_rebalances(group.rebalances, group.at_ms))),
                ("query", ". ".join(group.notes)),
            ),
            width,
        ),
    ]
    for each in found[:_MOST_VERDICTS]:
        where = f"{place(each.topic, each.partition)}: " if each.topic else ""
        lines += title(f"{where}{each.verdict}: {each.text}", width)
        lines += command_lines(each.command, each.no_command, width)
    if len(found) > _MOST_VERDICTS:
        lines += title(f"and {len(found) - _MOST_VERDICTS:,} more: `segtail why` has all of them", width)
    if calm > 0:
        lines += title(f"nothing to do for {calm:,} of {format_count(len(group.partitions), 'partition')}", width)
    return [*lines, *_partitions(group, times, width)]


def _partitions(group: GroupDetail, times: Times, width: int) -> list[DetailLine]:
    if not group.partitions:
        return []
    lines = text_table(GROUP_PARTITIONS, group.partitions[:_MOST_PARTITIONS], times, width)
    omitted = group.omitted + max(0, len(group.partitions) - _MOST_PARTITIONS)
    return [*title(f"partitions{f', {omitted:,} left out' if omitted else ''}", width), *(DetailLine(cut(line, width)) for line in lines)]
