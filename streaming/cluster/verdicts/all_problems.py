"""Everything that is wrong at one moment, by incidents, the most severe first: for the page, the terminal and `/api/v1/problems`."""

from collections.abc import Sequence
from itertools import islice

from streaming.broker.protocol.status_json import SEVERITIES, Problem
from streaming.cluster.verdicts.cases import Cases, all_cases
from streaming.cluster.verdicts.circumstances import Circumstances
from streaming.cluster.verdicts.cluster_problems import cluster_problems
from streaming.cluster.verdicts.group_problems import group_problems
from streaming.cluster.verdicts.incidents import incidents
from streaming.cluster.verdicts.log_dir_problems import log_dir_problems
from streaming.cluster.verdicts.log_problems import log_problems
from streaming.cluster.verdicts.observer_problems import observer_problems
from streaming.cluster.verdicts.transaction_problems import transaction_problems

MOST_PROBLEMS = 10_000
"""The most problems that are told apart: the most severe ones."""


def problems(circumstances: Circumstances, cases: Sequence[Cases] | None = None) -> tuple[Problem, ...]:
    """All problems: by the severity of their incident, then by what is lost first, a root before its consequences.

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
    return tuple(islice(incidents(every, circumstances), MOST_PROBLEMS))


def roots(problems: Sequence[Problem]) -> list[Problem]:
    """One problem for each incident."""
    return [each for each in problems if not each.because]


def count(problems: Sequence[Problem]) -> dict[str, int]:
    """How many incidents there are of each severity."""
    return {severity: sum(each.gravity == severity for each in roots(problems)) for severity in SEVERITIES}
