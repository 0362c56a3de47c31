"""A group's last rebalances as messages have them."""

from streaming.broker.protocol.group_json import GroupRebalance, RebalancedMember
from streaming.kafka.groups.group_rows import GroupFacts
from streaming.kafka.groups.rebalances import MemberName, unpacked_rebalances


def listed_rebalances(facts: GroupFacts | None) -> list[GroupRebalance]:
    """Those that are known of a group, the newest first."""
    if facts is None:
        return []
    return [
        GroupRebalance(
            at_ms=each.at_ms,
            kind=each.kind,
            generation=each.raised,
            generations=each.generations,
            unfinished=each.unfinished,
            members=each.members,
            joined_members=each.joined,
            left_members=each.left,
            joined=[_member(name) for name in each.joined_names],
            left=[_member(name) for name in each.left_names],
        )
        for each in reversed(unpacked_rebalances(facts.rebalances, facts.rebalance_clients, facts.rebalance_hosts))
    ]


def _member(name: MemberName) -> RebalancedMember:
    return RebalancedMember(client=name.client, host=name.host)
