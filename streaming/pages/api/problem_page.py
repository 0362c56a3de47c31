"""A page of problems, as it is asked for."""

from collections.abc import Mapping, Sequence
from typing import Any

from streaming.broker.protocol.listing_json import LARGEST_LIMIT
from streaming.broker.protocol.problem_json import SEVERITIES, Problem, ProblemPage
from streaming.cluster.verdicts.all_problems import count
from streaming.errors import UsageError
from streaming.pages.api.paging import filter_of, limit_of, offset_of, parameters_of


def problem_page(every: Sequence[Problem], query: str, at_ms: int, largest: int = LARGEST_LIMIT) -> ProblemPage:
    """The problems that a query string asks for.

    Raises:
        UsageError: a parameter is not understood; the sentence names it.
    """
    given = parameters_of(query, ("severity", "filter", "offset", "limit"))
    severity, wanted = given.get("severity", ""), filter_of(given).casefold()
    if severity and severity not in SEVERITIES:
        raise UsageError(f"severity is not one of {', '.join(SEVERITIES)}")
    offset = offset_of(given)
    matched = [each for each in every if (not severity or each.severity == severity) and (not wanted or wanted in _text(each).casefold())]
    return ProblemPage(
        at_ms=at_ms,
        total=len(every),
        matched=len(matched),
        offset=offset,
        rows=matched[offset : offset + limit_of(given, largest=largest)],
        **_counts(every),
    )


def _counts(every: Sequence[Problem]) -> Mapping[str, Any]:
    return count(every)


def _text(problem: Problem) -> str:
    """What a filter is looked for in."""
    place = f"{problem.topic}-{problem.partition}" if problem.partition >= 0 else problem.topic
    return " ".join((problem.kind, problem.what, place, problem.group, problem.log_dir, problem.agent, problem.holds_back))
