"""What was done to the members of a group, held against the rebalances that segtail shows of it."""

from collections.abc import Sequence

from streaming.broker.protocol.group_json import GroupRebalance, RebalancedMember
from streaming.kafka.groups.rebalance_log import MOST_RECENT
from tests.broker.rebalancing import NOTHING, Step

ELECTION = "election"
"""What was done to the brokers: members may have been lost by it, and have joined again."""


def agree(steps: Sequence[Step], rebalances: Sequence[GroupRebalance], *, metadata: str) -> int:
    """Hold what the disk shows against what was done; returns how many rebalances were compared.

    Args:
        rebalances: its last ones, the oldest first.
        metadata: the kind of one that new partitions made.
    """
    before, compared, first = 0, 0, rebalances[0].generation
    for step in steps:
        last = step.generation if step.generation >= 0 else rebalances[-1].generation
        if before + 1 < first and len(rebalances) == MOST_RECENT:  # the disk shows more than segtail keeps of one group
            before = last
            continue
        some = [each for each in rebalances if before < each.generation <= last and each.kind != "rejoined"]
        joined, left = ({name for each in some for name in _clients(getattr(each, verb))} for verb in ("joined", "left"))
        if step.done == ELECTION:
            before = last
            continue
        did = {"join": (set(step.names), set()), "leave": (set(), set(step.names))}.get(step.done, (set(), set()))
        if not before and some and some[0].joined_members < 0:  # a broker does not write a generation that is over before all know of it
            assert (step.done, some[-1].members) == ("join", len(step.names)), (step, some)
            did = (set(), set())
        assert (joined, left) == did, (step, some)
        assert not before or sum(each.generations for each in some) == last - before, (step, some)
        if step.done == NOTHING:
            assert {each.kind for each in some} == {metadata}, (step, some)
        if step.done == "return":
            assert some == [], "nothing was raised"
        before, compared = last, compared + len(some)
    returned = [name for each in rebalances if each.kind == "rejoined" for name in _clients(each.joined)]
    assert returned == [name for step in steps if step.done == "return" for name in step.names]
    return compared


def _clients(members: Sequence[RebalancedMember]) -> list[str]:
    return [each.client for each in members]
