"""Problems over the API: a root before what follows from it, and the roots alone for whoever wants a row for each incident."""

import pytest

from streaming.broker.protocol.status_json import CRITICAL, WARNING, Consequence, Problem, ProblemPage
from streaming.errors import UsageError
from streaming.pages.api.state import problem_page

EVERY = (
    Problem(
        kind="k",
        severity=WARNING,
        worst=CRITICAL,
        what="root",
        id="a",
        consequences=[Consequence(text="group ledger: held up", severity=WARNING)],
    ),
    Problem(kind="k", severity=CRITICAL, worst=CRITICAL, what="effect", id="b", because="a"),
    Problem(kind="k", severity=WARNING, worst=WARNING, what="other", id="c"),
)


def page(query: str) -> ProblemPage:
    return problem_page(EVERY, query, 0)


def ids(query: str) -> str:
    return "".join(each.id for each in page(query).rows)


def test_all_rows_come_unless_the_roots_alone_are_wanted() -> None:
    assert (ids(""), ids("roots=false"), ids("roots=true")) == ("abc", "abc", "ac")
    assert (page("").total, page("roots=true").total) == (3, 2)
    assert [(found.critical, found.warning) for found in (page(""), page("roots=true"))] == [(1, 1)] * 2
    with pytest.raises(UsageError, match="roots is not true or false"):
        page("roots=yes")


def test_an_incident_is_chosen_by_its_worst_and_by_what_follows_from_it() -> None:
    assert (ids("severity=critical"), ids("severity=critical&roots=true")) == ("b", "a")
    assert ids("filter=LEDGER&roots=true") == "a"


def test_a_problem_of_an_earlier_job_is_an_incident_of_its_own() -> None:
    earlier = Problem.decode(b'{"kind": "k", "severity": "warning", "what": "w"}')
    assert (earlier.because, earlier.gravity, earlier.consequences) == ("", WARNING, [])
