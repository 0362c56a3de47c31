"""Everything that is wrong at one moment, the most severe first: for the page, the terminal and `/api/v1/problems`."""

from collections.abc import Sequence

from streaming.protocol.problem_json import SEVERITIES, Problem
from streaming.verdicts.circumstances import Circumstances
from streaming.verdicts.cluster_problems import cluster_problems
from streaming.verdicts.group_problems import group_problems
from streaming.verdicts.kinds import ORDER
from streaming.verdicts.log_dir_problems import log_dir_problems
from streaming.verdicts.log_problems import log_problems
from streaming.verdicts.observer_problems import observer_problems
from streaming.verdicts.transaction_problems import transaction_problems

MOST_PROBLEMS = 10_000
"""The most problems that are told apart: the most severe ones."""

_PARTS = (cluster_problems, log_dir_problems, observer_problems, transaction_problems, log_problems, group_problems)


def problems(of: Circumstances) -> tuple[Problem, ...]:
    """All problems: by severity, then by kind, then the oldest first."""
    every = (problem for part in _PARTS for problem in part(of))
    return tuple(sorted(every, key=_place)[:MOST_PROBLEMS])


def count(of: Sequence[Problem]) -> dict[str, int]:
    """How many problems there are of each severity."""
    return {severity: sum(each.severity == severity for each in of) for severity in SEVERITIES}


def _place(problem: Problem) -> tuple[object, ...]:
    age = problem.since_ms if problem.since_ms >= 0 else float("inf")
    where = problem.topic, problem.partition, problem.broker, problem.group, problem.log_dir, problem.agent
    return SEVERITIES.index(problem.severity), ORDER[problem.kind], age, where, problem.what
