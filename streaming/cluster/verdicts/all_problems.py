"""Everything that is wrong at one moment, the most severe first: for the page, the terminal and `/api/v1/problems`."""

from collections.abc import Sequence

from streaming.broker.protocol.problem_json import SEVERITIES, Problem
from streaming.cluster.verdicts.cases import Cases, all_cases
from streaming.cluster.verdicts.circumstances import Circumstances
from streaming.cluster.verdicts.cluster_problems import cluster_problems
from streaming.cluster.verdicts.group_problems import group_problems
from streaming.cluster.verdicts.kinds import ORDER
from streaming.cluster.verdicts.log_dir_problems import log_dir_problems
from streaming.cluster.verdicts.log_problems import log_problems
from streaming.cluster.verdicts.observer_problems import observer_problems
from streaming.cluster.verdicts.transaction_problems import transaction_problems

MOST_PROBLEMS = 10_000
"""The most problems that are told apart: the most severe ones."""


def problems(circumstances: Circumstances, cases: Sequence[Cases] | None = None) -> tuple[Problem, ...]:
    """All problems: by severity, then by kind, then the oldest first.

    Args:
        cases: what is wrong with replicas, by `streaming.cluster.verdicts.cases.all_cases`, if that has been decided already.
    """
    decided = all_cases(circumstances) if cases is None else cases
    every = (
        *cluster_problems(circumstances),
        *log_dir_problems(circumstances),
        *observer_problems(circumstances),
        *transaction_problems(circumstances, decided),
        *log_problems(circumstances, decided),
        *group_problems(circumstances),
    )
    return tuple(sorted(every, key=_place)[:MOST_PROBLEMS])


def count(problems: Sequence[Problem]) -> dict[str, int]:
    """How many problems there are of each severity."""
    return {severity: sum(each.severity == severity for each in problems) for severity in SEVERITIES}


def _place(problem: Problem) -> tuple[object, ...]:
    age = problem.since_ms if problem.since_ms >= 0 else float("inf")
    where = problem.topic, problem.partition, problem.broker, problem.group, problem.log_dir, problem.agent
    return SEVERITIES.index(problem.severity), ORDER[problem.kind], age, where, problem.what
