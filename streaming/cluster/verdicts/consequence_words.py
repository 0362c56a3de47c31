"""What follows from a problem, in a clause for each group and topic, or for another thing."""

from collections.abc import Sequence

from streaming.broker.protocol.status_json import SEVERITIES, Consequence, Problem
from streaming.cluster.verdicts import kinds
from streaming.common.formatting import format_age, format_name, format_time

_OPEN_TOO = frozenset({kinds.OVERDUE.name, kinds.HANGING.name, kinds.STUCK.name})

_AWAY = frozenset(kind.name for kind in kinds.AWAY)

_DONE = {
    kinds.GROUP_HELD.name: "held up",
    kinds.GROUP_PENDING.name: "its commits wait",
    kinds.GROUP_STOPPED.name: "has stopped",
    kinds.GROUP_OFFSET_INVALID.name: "has an offset that is not valid",
    kinds.GROUP_LOST.name: "has lost records",
    kinds.GROUP_SKIPPED.name: "has skipped records",
    kinds.GROUP_OFFSETS_EXPIRE.name: "has offsets that expire",
}


def consequences(root: Problem, those: Sequence[Problem], now_ms: int) -> list[Consequence]:
    """What follows from a root, in the order of ``those``; what one group suffers in one topic is one."""
    subjects: dict[tuple[str, str, str], list[Problem]] = {}
    for each in those:
        subjects.setdefault((each.group, each.topic, "" if each.group else each.id), []).append(each)
    return [_consequence(root, some, now_ms) for some in subjects.values()]


def _consequence(root: Problem, some: Sequence[Problem], now_ms: int) -> Consequence:
    first, dated = some[0], [each.deadline_ms for each in some if each.deadline_ms >= 0]
    partitions = {each.partition for each in some}
    return Consequence(
        text=_of_group(root, some, now_ms) if first.group else _of_other(first),
        severity=min((each.severity for each in some), key=SEVERITIES.index),
        broker=first.broker if len({each.broker for each in some}) == 1 else -1,
        topic=first.topic,
        partition=first.partition if len(partitions) == 1 else -1,
        group=first.group,
        deadline_ms=min(dated, default=-1),
        problems=[each.id for each in some],
    )


def _of_group(root: Problem, some: Sequence[Problem], now_ms: int) -> str:
    ordered = sorted(some, key=lambda each: (each.kind not in _DONE, [*_DONE].index(each.kind) if each.kind in _DONE else 0))
    suffers = ", ".join(dict.fromkeys(_suffers(root, each, now_ms) for each in ordered))
    first = some[0]
    topic = "" if (first.group, first.topic) == (root.group, root.topic) else f" in {_where(some)}"
    return f"group {format_name(first.group)}{topic}: {suffers}"


def _where(some: Sequence[Problem]) -> str:
    first, partitions = some[0], {each.partition for each in some}
    one = len(partitions) == 1 and first.partition >= 0
    return format_name(f"{first.topic}-{first.partition}") if one else f"topic {format_name(first.topic)}"


def _suffers(root: Problem, problem: Problem, now_ms: int) -> str:
    if problem.kind in _DONE:
        return _DONE[problem.kind]
    if problem.deadline_ms < 0:
        return f"loses records after the start of broker {root.broker}" if root.kind in _AWAY else "will lose records"
    if problem.deadline_ms <= now_ms:
        return "loses records with the next check"
    return f"loses records from {format_time(problem.deadline_ms)} on ({format_age((now_ms - problem.deadline_ms) / 1000)})"


def _of_other(problem: Problem) -> str:
    if problem.kind in _OPEN_TOO:
        costs = f": {problem.holds_back.rstrip('.')}" if problem.holds_back else ""
        return f"it is open in {_where([problem])}, too{costs}"
    return problem.summary or problem.what
