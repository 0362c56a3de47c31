"""Incidents as cards: what follows is in the card of its root, and of many of one kind only the first is open."""

from typing import Any

from streaming.broker.protocol.status_json import CRITICAL, WARNING, Consequence, Problem
from streaming.pages.site.shown_incidents import by_kind, shown_problems

NOW_MS = 1_700_000_000_000


def problem(number: int, **values: Any) -> Problem:
    return Problem(**{"kind": "k", "severity": WARNING, "what": f"w{number}", "id": f"id{number}"} | values)


def test_what_follows_from_a_problem_is_in_its_card_and_has_none_of_its_own() -> None:
    follows = [Consequence(text=f"group g{each}: held up", severity=WARNING, group=f"g{each}") for each in range(7)]
    root = problem(0, worst=CRITICAL, consequences=follows, more_consequences=3, deadline_ms=NOW_MS + 3_600_000)
    (card,) = shown_problems([root, problem(1, because="id0")], NOW_MS)
    assert (card.badge, card.due.text, card.more) == (CRITICAL, "in 1h", "3 more are left out here.")
    assert [each.text for each in (*card.follows, *card.folded)] == [each.text for each in follows]
    assert (len(card.follows), card.follows[0].href) == (5, "/groups/g0")


def test_what_should_be_gone_by_its_own_times_is_due_now() -> None:
    (card,) = shown_problems([problem(0, deadline_ms=NOW_MS - 23 * 86_400_000)], NOW_MS)
    assert (card.due.text, card.due.time) == ("now", "")


def test_from_three_of_one_kind_on_all_but_the_first_are_folded_away() -> None:
    def of(*kinds: str) -> list[tuple[int, int]]:
        return [(len(each.shown), len(each.folded)) for each in by_kind(shown_problems(list(map(named, enumerate(kinds))), NOW_MS))]

    def named(numbered: tuple[int, str]) -> Problem:
        return problem(numbered[0], kind=numbered[1])

    assert of("a", "a", "b") == [(2, 0), (1, 0)]
    assert of("a", "a", "a", "b") == [(1, 2), (1, 0)]
    assert of("a", "a", "b", "a") == [(2, 0), (1, 0), (1, 0)]
