"""How consumer groups are printed: tables of groups and of partitions, sentences about one group, and JSON."""

from collections.abc import Iterator, Sequence

from streaming.broker.protocol.group_json import GroupDetail, GroupFinding, GroupSummary, ReadMoments
from streaming.broker.protocol.group_verdicts import NOT_KNOWN, is_finding
from streaming.broker.protocol.listing_json import AwayBroker
from streaming.cluster.verdicts.group_words import last_rebalances
from streaming.common.formatting import format_count, format_list, format_name, format_time
from streaming.pages.listings.details import group_findings
from streaming.pages.listings.group_list import GROUP_PARTITIONS, besides_words, counted_in
from streaming.pages.listings.list_cells import Times
from streaming.pages.listings.text_table import text_table
from streaming.terminal.cli.lists import AT_START, away_lines
from streaming.terminal.cli.printing import ShellCommand

_ASSUMED = (
    "assumed: {}: what sets the limits of these topics is not all known here, so weaker settings or Kafka's defaults are used. Give "
    "--server-properties, and the log dir with __cluster_metadata if it is not among these; a cluster with ZooKeeper has "
    "none: give topic_config."
)

_MOST_LINES = 100
_MOST_NAMES = 5


def partition_tables(groups: Sequence[GroupDetail], width: int | None = None) -> Iterator[str]:
    """For each group a head, a table of its partitions that fits the width, the worst first, and what is to be said of it as a whole."""
    for index, group in enumerate(groups):
        if index:
            yield ""
        yield head(group)
        yield from (f"{note}." for note in group.notes)
        if group.partitions:
            yield from text_table(GROUP_PARTITIONS, group.partitions, Times(group.at_ms), width)
        yield from (f"{_where(each)}: {each.text}" for each in group.findings if not each.topic)


def reasons(group: GroupDetail) -> Iterator[str]:
    """What is said about one group: a head, then a line for each finding with its command, at last what needs nothing."""
    yield head(group)
    yield from (f"    {note}." for note in group.notes)
    found, calm = group_findings(group), dict[tuple[str, str], list[GroupFinding]]()
    for finding in (each for each in group.findings if not is_finding(each) and each.verdict not in NOT_KNOWN):
        calm.setdefault((finding.verdict, finding.text), []).append(finding)
    for finding in found[:_MOST_LINES]:
        yield f"- {_where(finding)}: {finding.text}."
        if finding.command:
            yield ShellCommand(f"    {finding.command}")
        elif finding.no_command:
            yield f"    no command: {finding.no_command}"
    if len(found) > _MOST_LINES:
        yield f"- and {len(found) - _MOST_LINES:,} more: --json has all of them"
    for (_, text), same in list(calm.items())[:_MOST_LINES]:
        yield f"- {format_list([_where(each) for each in same], _MOST_NAMES)}: {text}."
    if group.rebalances:
        yield "last rebalances:"
    for line in last_rebalances(group.rebalances, group.at_ms):
        yield f"    {line}"


def assumed_groups(groups: Sequence[GroupSummary]) -> Iterator[str]:
    """Of which groups limits are assumed, so that nobody knows when retention deletes what is unread."""
    names = [format_name(each.group) for each in groups if each.limits_assumed]
    if names:
        yield f"\n{_ASSUMED.format(format_list(sorted(names), 3))}"


def assumed(groups: Sequence[GroupDetail]) -> Iterator[str]:
    """Of which partitions limits are assumed, so that nobody knows when retention deletes what is unread."""
    partitions = sorted({(each.topic, each.partition) for group in groups for each in group.partitions if each.limits_assumed})
    if partitions:
        yield f"\n{_ASSUMED.format(format_list([f'{format_name(topic)}-{number}' for topic, number in partitions], 3))}"


def read_between(read: ReadMoments | None) -> Iterator[str]:
    """When what is told was read."""
    if read is not None:
        commits, ends = ((read.commits_from_ms, read.commits_until_ms), (read.ends_from_ms, read.ends_until_ms))
        yield f"\nread: committed offsets {_between(*commits)}, then the ends of the logs {_between(*ends)}"


def away_notes(away: Sequence[AwayBroker], at_ms: int) -> Iterator[str]:
    """Which brokers are away, if any."""
    for line in away_lines(away, at_ms, AT_START["groups"]):
        yield f"\n{line}"


def _between(first_ms: int, last_ms: int) -> str:
    return " to ".join(format_time(each, "milliseconds") for each in (first_ms, last_ms))


def head(group: GroupDetail) -> str:
    """What a group is, and what is left in all."""
    of = group.summary
    members = "" if of.members < 0 else f", {format_count(of.members, 'member')}"
    state = " ".join(filter(None, (of.type, of.state))) or "only commits"
    left = "records left not known"
    if of.records_left >= 0:  # a plus if that is a lower bound
        left = f"{of.records_left:,}+ records left" if of.unknown else f"{format_count(of.records_left, 'record')} left"
    waits = f"; {words}" if (words := besides_words(of)) else ""
    return f"{format_name(of.group)}: {state}{members}; {left} in {counted_in(of)}{waits}"


def _where(finding: GroupFinding) -> str:
    return f"{format_name(finding.topic)}-{finding.partition}" if finding.topic else "the group"
