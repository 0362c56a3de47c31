"""Problems of one cause are an incident: its root with its consequences.

A consequence has no command of its own unless it mends what its root's
command does not: who mends an effect has mended nothing.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from streaming.broker.protocol.status_json import SEVERITIES, Problem
from streaming.cluster.verdicts import kinds
from streaming.cluster.verdicts.circumstances import Circumstances
from streaming.cluster.verdicts.consequence_words import consequences
from streaming.cluster.verdicts.incident_roots import roots_of
from streaming.cluster.verdicts.kinds import ORDER
from streaming.cluster.verdicts.links import LinkedProblem

MOST_CONSEQUENCES = 100
"""So many are listed with a root."""

_OWN_REMEDY = frozenset({kinds.HANGING.name})
"""A hanging transaction has to be ended in each of its partitions."""

_MENDS_WHAT_COMES = frozenset({kinds.ARRIVES_EXPIRED.name})
"""Their commands change nothing for the records that are there."""

_FAR = float("inf")


def incidents(problems: Iterable[LinkedProblem], circumstances: Circumstances) -> Iterator[Problem]:
    """All problems, each root before its consequences: by severity, then by what is lost first, then by kind, the oldest first."""
    every = sorted(problems, key=lambda each: _place(each.problem))
    roots = roots_of(every, circumstances)
    ids = _ids(every)
    following: dict[int, list[int]] = defaultdict(list)
    for number, root in enumerate(roots):
        if root != number:
            following[root].append(number)
    made = []
    for number, root in enumerate(roots):
        if root == number:
            those = sorted((_consequence(every, of, root, ids) for of in following[root]), key=_place)
            made.append((_root(every[root].problem, ids[root], those, circumstances), those))
    for head, those in sorted(made, key=lambda each: _place(each[0])):
        yield head
        yield from those


def _root(problem: Problem, own_id: str, those: Sequence[Problem], circumstances: Circumstances) -> Problem:
    clauses = consequences(problem, those, circumstances.now_ms)
    dated = [each.deadline_ms for each in (problem, *those) if each.deadline_ms >= 0]
    return replace(
        problem,
        id=own_id,
        worst=min((problem.severity, *(each.severity for each in those)), key=SEVERITIES.index),
        deadline_ms=min(dated, default=-1),
        consequences=clauses[:MOST_CONSEQUENCES],
        more_consequences=max(0, len(clauses) - MOST_CONSEQUENCES),
    )


def _consequence(every: Sequence[LinkedProblem], number: int, root: int, ids: Sequence[str]) -> Problem:
    problem, of = every[number].problem, every[root].problem
    mended = replace(problem, id=ids[number], because=ids[root], worst=problem.severity)
    part = problem.group and (problem.group, problem.topic) == (of.group, of.topic) and not every[number].links.waits
    before = every[number].links.awaited >= 0  # what its root asks for is what lets the records be lost
    own = part or before or problem.kind in _OWN_REMEDY or of.kind in _MENDS_WHAT_COMES
    return mended if own else replace(mended, command="", no_command="it ends with its cause")


def _ids(every: Sequence[LinkedProblem]) -> list[str]:
    """Names of the problems that stay as long as they are about the same."""
    seen: dict[str, int] = defaultdict(int)
    ids = []
    for each in every:
        of, links = each.problem, each.links
        about = (of.kind, of.broker, of.topic, of.partition, of.group, of.log_dir, of.agent, links.producer, links.waits, links.reason)
        name = hashlib.sha256(repr(about).encode()).hexdigest()[:12]
        seen[name] += 1
        ids.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return ids


def _place(problem: Problem) -> tuple[object, ...]:
    age = problem.since_ms if problem.since_ms >= 0 else _FAR
    deadline = problem.deadline_ms if problem.deadline_ms >= 0 else _FAR
    where = problem.topic, problem.partition, problem.broker, problem.group, problem.log_dir, problem.agent
    return SEVERITIES.index(problem.gravity), deadline, ORDER[problem.kind], age, where, problem.what
