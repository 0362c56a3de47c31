"""The table of a tail's states: every state can be reached and left, and docs/internals/watcher.md has the same table."""

import re
from itertools import chain
from pathlib import Path

import pytest

from streaming.broker.watcher.tail_states import TRANSITIONS, Cause, TailState, TransitionError, step
from tests.tables import each_row

PAGE = Path(__file__).parents[2] / "docs" / "internals" / "watcher.md"
FIRST = {TailState.REMEMBERED, TailState.WATCHED, TailState.AVAILABLE, TailState.READING, TailState.BACKLOG}

QUESTIONS = {
    "where is its directory?": (TailState.REMEMBERED, TailState.WATCHED, TailState.LEAVING, TailState.GONE),
    "is its log dir available?": (TailState.AVAILABLE, TailState.AWAY),
    "what stands after its cursor?": (TailState.READING, TailState.WAITING, TailState.SUSPECT, TailState.HELD, TailState.STOPPED),
    "how is it read?": (TailState.BACKLOG, TailState.LIVE),
}


def test_each_state_answers_one_question() -> None:
    assert sorted(chain.from_iterable(QUESTIONS.values())) == sorted(TailState)


def test_a_transition_answers_the_question_that_it_was_asked_and_so_does_its_cause() -> None:
    asked = {state: question for question, states in QUESTIONS.items() for state in states}
    assert [row for row in TRANSITIONS.items() if asked[row[0][0]] != asked[row[1]]] == []
    by_cause = {(cause, asked[state]) for state, cause in TRANSITIONS}
    assert sorted(cause for cause, _ in by_cause) == sorted(Cause)


def test_every_state_is_reached_and_only_one_is_never_left() -> None:
    reached = set(FIRST)
    while more := {after for (state, _), after in TRANSITIONS.items() if state in reached} - reached:
        reached |= more
    assert reached == set(TailState)
    assert set(TailState) - {state for state, _ in TRANSITIONS} == {TailState.GONE}


@each_row("state", TailState)
def test_what_is_not_in_the_table_does_not_happen(state: TailState) -> None:
    for cause in Cause:
        if (state, cause) in TRANSITIONS:
            assert step(state, cause) is TRANSITIONS[state, cause]
        else:
            with pytest.raises(TransitionError, match=f"a log that is {state} has no transition for: {cause}"):
                step(state, cause)


def test_the_page_has_the_same_states_and_transitions() -> None:
    page = PAGE.read_text(encoding="utf-8")
    described = re.findall(r"^\| `([a-z ]+)` \| [^`|]", page, re.MULTILINE)
    assert described == [state.value for state in chain.from_iterable(QUESTIONS.values())]
    rows = re.findall(r"^\| `([a-z ]+)` \| `([a-z ]+)` \| `([a-z ]+)` \|", page, re.MULTILINE)
    assert rows == [(state.value, cause.value, after.value) for (state, cause), after in TRANSITIONS.items()]
