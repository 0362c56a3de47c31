"""How consumer groups are printed: tables of groups and of partitions, sentences about one group, its history, and JSON."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from streaming.broker.protocol.group_json import NOT_KNOWN, GroupDetail, GroupFinding, GroupSummary, ReadMoments, is_finding
from streaming.broker.protocol.history_json import GroupHistory, HistoryEvent
from streaming.broker.protocol.listing_json import AwayBroker
from streaming.cluster.verdicts.commands import Commands
from streaming.cluster.verdicts.group_findings import ABOVE
from streaming.cluster.verdicts.group_words import last_rebalances
from streaming.common.settings import Settings
from streaming.common.units import TimeWords, format_count, format_list, format_name, format_time, format_word
from streaming.kafka.groups.offset_moves import MoveKind
from streaming.pages.listings.declared_lists import GROUP_PARTITIONS, besides_words, counted_in
from streaming.pages.listings.details import group_findings
from streaming.pages.listings.listing import Times
from streaming.pages.listings.text_table import text_table
from streaming.terminal.cli.assumed_limits import assumed_line
from streaming.terminal.cli.lists import AT_START, away_lines
from streaming.terminal.cli.printing import ShellCommand

_MOST_LINES = 100
_MOST_NAMES = 5

APART_MS = 10_000
"""So far the clocks of a controller and of a coordinator may be apart."""

UNREAD_NOT_ON_DISK = "whether it had records left to read there is not on disk any more"

_BY = {"admin": "by hand", "consumer": "by a member", "external": "by a program beside the group"}
_MOST_NAMED = 5


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


def head(group: GroupDetail) -> str:
    """What a group is, and what is left in all."""
    of = group.summary
    members = "" if of.members < 0 else f", {format_count(of.members, 'member')}"
    state = " ".join(filter(None, (of.type, of.state))) or "only commits"
    left = "records left not known"
    if of.records_left >= 0:  # a plus if that is a lower bound
        left = f"{of.records_left:,}+ records left" if of.unknown else f"{format_count(of.records_left, 'record')} left"
    waits = f"; {words}" if (words := besides_words(of)) else ""
    what = f"{left} in {counted_in(of)}" if of.partitions or of.uncommitted else "nothing is committed"
    return f"{format_name(of.group)}: {state}{members}; {what}{waits}"


def _where(finding: GroupFinding) -> str:
    return f"{format_name(finding.topic)}-{finding.partition}" if finding.topic else "the group"


def assumed_groups(groups: Sequence[GroupSummary], settings: Settings | None = None) -> Iterator[str]:
    """Of which groups limits are assumed, so that it is not known when retention deletes what is unread."""
    names = [format_name(each.group) for each in groups if each.limits_assumed]
    if names:
        yield f"\n{assumed_line(sorted(names), settings)}"


def assumed(groups: Sequence[GroupDetail], settings: Settings | None = None) -> Iterator[str]:
    """Of which partitions limits are assumed, so that it is not known when retention deletes what is unread."""
    partitions = sorted({(each.topic, each.partition) for group in groups for each in group.partitions if each.limits_assumed})
    if partitions:
        yield f"\n{assumed_line([f'{format_name(topic)}-{number}' for topic, number in partitions], settings)}"


def reading_notes(read: ReadMoments | None, away: Sequence[AwayBroker], at_ms: int) -> Iterator[str]:
    """When what is told was read, and which brokers are away, if any."""
    if read is not None:
        commits, ends = ((read.commits_from_ms, read.commits_until_ms), (read.ends_from_ms, read.ends_until_ms))
        yield f"\nread: committed offsets {_between(*commits)}, then the ends of the logs {_between(*ends)}"
    for line in away_lines(away, at_ms, AT_START["groups"]):
        yield f"\n{line}"


def _between(first_ms: int, last_ms: int) -> str:
    return " to ".join(format_time(each, "milliseconds") for each in (first_ms, last_ms))


def histories(groups: Sequence[GroupHistory]) -> Iterator[str]:
    """The lines about some groups.

    How the history of a group is printed: a head, then what its coordinator's log has of it, the oldest first. Consumers commit every
    few seconds, so ordinary commits between two other things are a line for each partition.
    """
    for index, group in enumerate(groups):
        if index:
            yield ""
        yield from _head(group)
        for ordinary, some in groupby(group.events, _is_ordinary):
            events = list(some)
            yield from _runs(events) if ordinary else (_line(each, group.group) for each in events)


def _head(group: GroupHistory) -> Iterator[str]:
    since = f" ({format_time(group.whole_from_ms)})" if group.whole_from_ms >= 0 else ""
    yield (
        f"{format_name(group.group)}: what {format_word(group.log)} has of it. From offset {group.whole_from}{since} on everything is "
        "there; of what is older, compaction leaves the last record of each partition and of the group"
    )
    if group.omitted:
        yield f"{format_count(group.omitted, 'record')} before are left out"


def _is_ordinary(event: HistoryEvent) -> bool:
    """Whether it is a commit as readers make them."""
    return event.event == "commit" and not event.moved and event.committed >= 0 and event.at_ms >= 0


def _runs(commits: Sequence[HistoryEvent]) -> Iterator[str]:
    """A line for each partition, in the order of their first commits."""
    of: dict[tuple[str, int], list[HistoryEvent]] = {}
    for each in commits:
        of.setdefault((each.topic, each.partition), []).append(each)
    for each, *more in of.values():
        yield _run(each, more[-1], 1 + len(more)) if more else _line(each)


def _run(first: HistoryEvent, last: HistoryEvent, count: int) -> str:
    begin = first.before if first.before >= 0 else first.committed
    step = last.committed - begin
    offsets = f"from {begin} to {last.committed} ({step:+,})" if step else f"all of {begin}"
    until = f"{format_count(count, 'commit')} until {format_time(last.at_ms, 'milliseconds')}, {offsets}"
    where = f"{format_name(first.topic)}-{first.partition}"
    return f"{format_time(first.at_ms, 'milliseconds')}  {first.record_offset} to {last.record_offset}  {where}: {until}"


def _line(event: HistoryEvent, group: str = "") -> str:
    at = format_time(event.at_ms, "milliseconds") if event.at_ms >= 0 else "at a time that is not known"
    return f"{at}  {event.record_offset}  {_what(event)}{_offsets_between(event, group)}"


def _what(event: HistoryEvent) -> str:
    where = f"{format_name(event.topic)}-{event.partition}"
    match event.event:
        case "commit":
            return f"{where}: committed {_number(event.committed)}{_step(event)}"
        case "pending":
            return f"{where}: {_number(event.committed)} waits for the end of its transaction"
        case "aborted":
            return f"{where}: {_number(event.committed)} does not count: its transaction was aborted"
        case "deleted":
            return f"{where}: {_number(event.before)} is deleted"
        case "generation":
            return f"generation {_number(event.epoch)}: {_members(event)}"
    return "the group is deleted"


def _number(value: int) -> str:
    return str(value) if value >= 0 else "what is not understood"


def _step(event: HistoryEvent) -> str:
    if event.before < 0 or event.committed < 0:
        return ""
    step = event.committed - event.before
    how = f", moved {_BY.get(event.moved, event.moved)}" if event.moved else ""
    return f" ({step:+,}{how})" if step else " (as before)"


def _members(event: HistoryEvent) -> str:
    if event.members < 0:
        return "not understood"
    names = [f"{format_name(each.client)} {format_word(each.host)}" for each in event.first_members]
    more = f": {format_list(names, _MOST_NAMED)}" if names else ""
    return f"{format_count(event.members, 'member')}{more}"


def _offsets_between(event: HistoryEvent, group: str) -> str:
    """What lies between both ends of a move. How many of it are records, this log does not show: the judge counts them of moves by hand."""
    offsets = abs(event.committed - event.before)
    if not event.moved or event.before < 0 or event.committed < 0:
        return ""
    command = Commands().why(group).line if event.moved == MoveKind.ADMIN else ""
    more = f"; for a day `{command}` says how many records, and the command" if command else ""
    return f". {format_count(offsets, 'offset')} {'lies' if offsets == 1 else 'lie'} between{more}"


def end_of(group: GroupHistory, now_ms: int, topic_ends: Mapping[str, int], *, remains: bool = False) -> str:
    """What became of a group that is gone, or ``remains`` without offsets; "" where its coordinator's log does not show it."""
    begins = [number for number, each in enumerate(group.events[:-1]) if each.event == "gone"]
    life = group.events[begins[-1] + 1 if begins else 0 :]
    ends = [each for each in life if each.event in ("gone", "deleted")]
    there = {(each.topic, each.partition): each.event == "commit" for each in life if each.event in ("commit", "deleted")}
    if not ends or life[-1] is not ends[-1] or (life[-1].event != "gone" and any(there.values())):
        return ""  # as of one whose newest records are not known to count
    times = TimeWords(now_ms)
    had = {(each.topic, each.partition): each.before for each in ends if each.event == "deleted" and each.before >= 0}
    offsets = [f"{format_name(topic)}-{partition}: {offset}" for (topic, partition), offset in sorted(had.items())]
    left_ms = max((each.at_ms for each in life if each.event == "generation" and not each.members), default=-1)
    at = f" at {times.at(ends[-1].at_ms)}" if ends[-1].at_ms >= 0 else ""
    topics = deleted_topics(group, topic_ends)
    why = "with their topic, by hand or because they expired"
    if topics and {topic for topic, _ in had} <= topics.keys():
        which = [f"{format_name(topic)}, which was deleted at {times.at(end_ms)}" for topic, end_ms in topics.items()]
        why = f"with topic {format_list(which, _MOST_NAMED)}: {UNREAD_NOT_ON_DISK}"
    parts = [
        f"its coordinator deleted them{at}, {why}"
        if remains
        else f"its coordinator deleted it{at}, by hand or because its offsets expired",
        f"it had committed {format_list(offsets, _MOST_NAMED)}" if offsets else "",
        f"its last member left at {times.at(left_ms)}" if left_ms >= 0 else "",
        "where a consumer begins that comes now, auto.offset.reset decides",
    ]
    return "; ".join(filter(None, parts))


def deleted_topics(group: GroupHistory, topic_ends: Mapping[str, int]) -> dict[str, int]:
    """The topics whose commits the coordinator deleted because the topic was, with when, Unix milliseconds.

    A commit that expires or is deleted by hand leaves the same record: the last commit was made before the deletion of the topic in the
    metadata log, and its end was written after it.

    Args:
        topic_ends: when topics were deleted.
    """
    last_ms: dict[tuple[str, int], int] = {}
    found = {}
    for each in group.events:
        place, end_ms = (each.topic, each.partition), topic_ends.get(each.topic, -1)
        if each.event == "commit":
            last_ms[place] = each.at_ms
        elif each.event == "deleted" and 0 <= end_ms <= each.at_ms + APART_MS and last_ms.get(place, -1) <= end_ms + APART_MS:
            found[each.topic] = end_ms
    return found


def reasons(group: GroupDetail) -> Iterator[str]:
    """What is said about one group: a head, then a line for each finding with its command, at last what needs nothing."""
    yield head(group)
    yield from (f"    {note}." for note in group.notes)
    found, calm = group_findings(group), dict[tuple[str, str], list[GroupFinding]]()
    for finding in (each for each in group.findings if not is_finding(each) and each.verdict not in NOT_KNOWN):
        calm.setdefault((finding.verdict, finding.text), []).append(finding)
    alike: dict[tuple[str, str, str], list[GroupFinding]] = {}
    for finding in found[:_MOST_LINES]:
        alike.setdefault((finding.verdict, finding.because, "" if finding.topic else finding.text), []).append(finding)
    for some in alike.values():
        yield from _alike(some)
    if len(found) > _MOST_LINES:
        yield f"- and {len(found) - _MOST_LINES:,} more: --json has all of them"
    for (_, text), same in list(calm.items())[:_MOST_LINES]:
        yield f"- {format_list([_where(each) for each in same], _MOST_NAMES)}: {text}."
    if group.rebalances:
        yield "last rebalances:"
    for line in last_rebalances(group.rebalances, group.at_ms):
        yield f"    {line}"


def _alike(findings: Sequence[GroupFinding]) -> Iterator[str]:
    """What is found of some partitions: what only one of them has, then the sentences that all end with, and the commands."""
    ended = [each.text.split(". ") for each in findings]
    one, least = len(findings) == 1, min(map(len, ended))
    same = 0 if one else least if len({each.text for each in findings}) == 1 else 0
    while not one and same < least - 1 and len({words[-1 - same] for words in ended}) == 1:
        same += 1
    of_text: dict[str, list[str]] = {}
    for finding, words in zip(findings, ended, strict=True):
        of_text.setdefault(". ".join(words[: len(words) - same]), []).append(_where(finding))
    shared = ". ".join(ended[0][len(ended[0]) - same :]) if same else ""
    if "" in of_text:  # of all of them all is the same
        yield f"- {format_list(of_text[''], _MOST_NAMES)}: {shared}."
    else:
        yield from (f"- {format_list(where, _MOST_NAMES)}: {text}." for text, where in of_text.items())
        yield from [f"    all {len(findings)}: {shared}."] if shared else []
    commands = dict.fromkeys(each.command for each in findings if each.command)
    yield from (ShellCommand(f"    {each}") for each in commands)
    reasons = dict.fromkeys(each.no_command for each in findings if each.no_command and not (commands and each.no_command == ABOVE))
    yield from (f"    no command: {each}" for each in reasons)
