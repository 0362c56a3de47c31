"""What is right to say of committed offsets while groups commit: by what their coordinators answered."""

import time
from typing import Any, cast

import pytest

from tests.broker import coordinator_answers
from tests.broker.coordinator_answers import NONE, Answers, Counts
from tests.broker.lab import Lab

KEY = ("g", "t", 0)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


class Coordinators:
    """Stand for the clients that ask them. ``rows``: what they answer, by group."""

    def __init__(self) -> None:
        self.rows: dict[str, list[tuple[str, int, int]]] = {}

    def ask(self, _: str, **__: object) -> Any:
        return self.rows


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(coordinator_answers, "time", made)
    assert time.monotonic() != made.now
    return made


def answered(clock: Clock, offsets: list[int | None], sharers: tuple[str, ...] = ()) -> Answers:
    """One answer a second; None: the coordinator did not answer."""
    coordinators = Coordinators()
    answers = Answers(cast(Lab, coordinators), [] if sharers else ["g"], sharers)
    for offset in offsets:
        coordinators.rows = {} if offset is None else {"g": [] if offset == NONE else [("t", 0, offset)]}
        answers.ask()
        clock.now += 1
    return answers


def test_what_was_answered_in_the_window_is_right_and_nothing_before(clock: Clock) -> None:
    answers = answered(clock, [1, 2, 3, NONE, 5])
    assert answers.given(101.5, 104.5) == {KEY: {3, NONE, 5}}


def test_what_a_client_committed_between_two_answers_is_right(clock: Clock) -> None:
    answers = answered(clock, [612])
    answers.committed(KEY, 619)
    clock.now += 0.5
    answers.committed(KEY, 620)
    answers.committed(("another", "t", 0), 7)
    answers.ask()
    assert answers.given(100.5, clock.now) == {KEY: {612, 619, 620}}
    for _ in range(9):
        clock.now += 1
        answers.ask()
    assert answers.given(clock.now - 5, clock.now) == {KEY: {612}}, "as often as it was asked then"


def test_nothing_is_right_or_wrong_of_a_group_whose_coordinator_did_not_answer_for_a_moment(clock: Clock) -> None:
    assert answered(clock, [1, 2, None, None, 5]).given(100.5, 104.5) == {}
    assert answered(clock, [1, 2, None, 4, 5]).given(105.5, 109.5) == {KEY: {2, 4, 5}}


def test_of_share_groups_what_is_between_two_answers_is_right(clock: Clock) -> None:
    assert answered(clock, [1, 2, 5, 5], ("g",)).given(100.5, 103.5) == {KEY: {2, 3, 4, 5}}


@pytest.mark.parametrize(
    ("stated", "right", "doubts", "kind"),
    [
        ((5, ""), {4, 5}, [], "equal"),
        ((5, "leader_not_observed"), {5}, [], "equal"),  # that is about the lag
        ((3, ""), {4, 5}, [], "differ"),
        ((3, "leader_not_observed"), {4, 5}, [], "differ"),
        ((3, ""), {4, 5}, ["its log dirs may be old"], "elsewhere"),
        ((3, "coordinator_not_observed"), {4, 5}, [], "elsewhere"),
        ((NONE, "commit_not_replicated"), {4}, [], "absent"),
        ((NONE, "commit_not_replicated"), {NONE, 4}, [], "absent"),
        ((NONE, "coordinator_not_observed"), {4}, [], "elsewhere"),
        ((NONE, "not_committed"), {4, NONE}, [], "equal"),
        ((NONE, "not_committed"), {4}, [], "differ"),
        (None, {4, NONE}, [], "equal"),
        (None, {4}, [], "differ"),
        (None, {4}, ["a log is not read"], "elsewhere"),
    ],
)
def test_an_answer_is_right_or_wrong_or_says_why_it_is_none(
    stated: tuple[int, str] | None, right: set[int], doubts: list[str], kind: str
) -> None:
    counts = Counts()
    counts.add("who", {} if stated is None else {KEY: stated}, {KEY: right}, doubts)
    found = {"equal": counts.equal, "differ": len(counts.differ), "absent": counts.absent.total(), "elsewhere": counts.elsewhere.total()}
    assert found == {name: int(name == kind) for name in found}
    assert counts.compared == 1
