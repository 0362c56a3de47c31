"""The findings about a group with causes before effects: an open transaction that holds a partition up is why the rest is so there.

That nobody is in the group is why its partitions stand still, whatever else does not hold them up.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace

from streaming.broker.protocol.group_json import GroupFinding
from streaming.broker.protocol.group_verdicts import GroupVerdict

_CAUSES = (GroupVerdict.HELD.label, GroupVerdict.PENDING.label)
"""Verdicts that are the cause of others about the same partition, that which explains most first."""

_EFFECTS = frozenset(verdict.label for verdict in (GroupVerdict.LOST, GroupVerdict.WILL_LOSE, GroupVerdict.STOPPED, GroupVerdict.SLOWER))

TopicPartition = tuple[str, int]

BECAUSE = "what follows is because "


def causes_first(findings: Sequence[GroupFinding], gone_on: Collection[TopicPartition] = ()) -> list[GroupFinding]:
    """The findings in their order, but those that follow from another one come after it, and it comes where the worst of them was.

    A cause says so: its sentence begins with `BECAUSE`, and ``because`` of its effects is its verdict. Nobody is the cause of what no other
    finding explains.

    Args:
        gone_on: partitions in which the group has gone on since it lost something: what holds it up now was not the cause of that.
    """

    def follows(one: GroupFinding) -> bool:
        past = one.verdict == GroupVerdict.LOST.label and (one.topic, one.partition) in gone_on
        return one.verdict in _EFFECTS and not past

    of_partition: dict[TopicPartition, list[GroupFinding]] = defaultdict(list)
    for each in findings:
        of_partition[each.topic, each.partition].append(each)
    ordered: list[GroupFinding] = []
    placed: set[TopicPartition] = set()
    for each in findings:
        where = each.topic, each.partition
        some = of_partition[where]
        cause = _cause(some) if each.topic and any(map(follows, some)) else None
        if cause is None:
            ordered.append(each)
        elif where not in placed and (each is cause or follows(each)):
            placed.add(where)
            text = f"{BECAUSE}{'it is ' if cause.verdict == GroupVerdict.HELD.label else ''}{cause.text}"
            ordered.append(replace(cause, text=text))
            ordered += (replace(one, because=cause.verdict) for one in some if follows(one))
        elif each is not cause and not follows(each):
            ordered.append(each)
    return _nobody_first(ordered, [each for each in ordered if follows(each) and not each.because])


def _nobody_first(findings: list[GroupFinding], effects: Sequence[GroupFinding]) -> list[GroupFinding]:
    """The same with the absence of members before the first of some effects."""
    nobody = next((each for each in findings if each.verdict == GroupVerdict.NO_MEMBERS.label), None)
    if nobody is None or not effects:
        return findings
    cause = replace(nobody, text=f"{BECAUSE}{nobody.text}")
    found = [replace(each, because=nobody.verdict) if each in effects else each for each in findings if each is not nobody]
    first = next(at for at, each in enumerate(found) if each.because == nobody.verdict)
    return [*found[:first], cause, *found[first:]]


def _cause(some: Sequence[GroupFinding]) -> GroupFinding | None:
    """The cause among the findings about one partition, None if there is none. Commits may wait for a while, and nothing follows."""
    held, pending = ([each for each in some if each.verdict == verdict] for verdict in _CAUSES)
    return next(iter([*held, *(each for each in pending if each.severity)]), None)
