"""Rebalances in words: how often, and who came and went."""

from collections import Counter
from collections.abc import Iterator, Sequence

from streaming.broker.protocol.group_json import GroupRebalance, RebalancedMember
from streaming.cluster.consumers.group_rebalances import Lately
from streaming.common.formatting import TimeWords, format_count, format_duration, format_list, format_name
from streaming.kafka.groups.rebalances import MINUTE_MS, RebalanceKind

_MOST_NAMED = 3
_MOST_REBALANCES = 3


def storm_text(of_late: Lately, rebalances: Sequence[GroupRebalance], times: TimeWords) -> str:
    """What is said of a group that rebalances all the time. ``rebalances``: its last ones, the newest first."""
    lasted_ms = max(of_late.last_ms - of_late.first_ms, MINUTE_MS)
    often = f"it has rebalanced {format_count(of_late.in_a_row, 'time')} within {format_duration(lasted_ms / 1000)}"
    members = f"with {format_count(of_late.members, 'member')} at most"
    last = f"last {times.ago(of_late.last_ms)}"
    return f"{often}, {members}, {last}{_restless([each for each in rebalances if each.at_ms >= of_late.first_ms], times)}"


def rebalance_text(rebalance: GroupRebalance, now_ms: int) -> str:
    """One rebalance in a line."""
    at = TimeWords(now_ms).at(rebalance.at_ms) if rebalance.at_ms >= 0 else "at a time that is not stored"
    if rebalance.kind == RebalanceKind.REJOINED:
        return f"{at}: {_named(rebalance.joined, 1)} came back under its group.instance.id, without a rebalance"
    return f"{at}: generation {rebalance.generation}, {format_count(rebalance.members, 'member')}; {'; '.join(_what(rebalance))}"


def last_rebalances(rebalances: Sequence[GroupRebalance], now_ms: int) -> list[str]:
    """The last ones of a group, a line each, the newest first, as they come."""
    return [rebalance_text(each, now_ms) for each in rebalances[:_MOST_REBALANCES]]


def _what(rebalance: GroupRebalance) -> Iterator[str]:
    if rebalance.kind == RebalanceKind.METADATA:
        yield "partitions or topics came or went"
    elif rebalance.joined_members < 0:
        yield "who joined or left is not on disk any more"
    elif not rebalance.joined_members and not rebalance.left_members:
        yield "nobody joined or left"
    if rebalance.joined_members > 0:
        yield f"{_named(rebalance.joined, rebalance.joined_members)} joined"
    if rebalance.left_members > 0:
        yield f"{_named(rebalance.left, rebalance.left_members)} left"
    if rebalance.unfinished:
        yield f"{format_count(rebalance.unfinished, 'generation')} before it had no assignment"


def _restless(rebalances: Sequence[GroupRebalance], times: TimeWords) -> str:
    """Who has come and gone most often, and since when: it may have joined long before it first left."""
    joined = Counter(member for each in rebalances for member in each.joined if each.kind != RebalanceKind.REJOINED)
    left = Counter(member for each in rebalances for member in each.left)
    both = (joined + left).most_common(1)
    if not both or both[0][1] < 2:
        return ""
    ((member, _),) = both
    counts = [f"{verb} {format_count(of[member], 'time')}" for verb, of in (("left", left), ("joined", joined)) if of[member]]
    first_ms = min(each.at_ms for each in rebalances if member in (each.left if left[member] else each.joined))
    return f"; {_name(member)} {' and '.join(counts)}, first {times.ago(first_ms)}"


def _named(members: Sequence[RebalancedMember], count: int) -> str:
    names = [_name(each) for each in members]
    return format_list([*names, *[""] * (count - len(names))], min(len(names), _MOST_NAMED)) if names else format_count(count, "member")


def _name(member: RebalancedMember) -> str:
    return f"{format_name(member.client)} ({format_name(member.host)})"
