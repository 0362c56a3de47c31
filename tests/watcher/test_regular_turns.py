"""Each of many has its turn in its time, however often that is asked."""

from hypothesis import given
from hypothesis import strategies as st

from streaming.broker.watcher.found_events import RegularTurns

PERIOD_MS = 10_000


@given(many=st.integers(1, 50), gaps=st.lists(st.integers(0, 3_000), max_size=60), start=st.integers(0, 10**13))
def test_each_has_a_turn_in_each_period_and_not_more(many: int, gaps: list[int], start: int) -> None:
    turns, now = RegularTurns(PERIOD_MS), start
    assert turns.due(many, now) == []
    taken: list[int] = []
    for gap in gaps:
        now += gap
        taken += turns.due(many, now)
    assert len(taken) == many * (now - start) // PERIOD_MS
    assert taken == [number % many for number in range(len(taken))]


def test_after_a_long_silence_each_has_one_turn() -> None:
    turns = RegularTurns(PERIOD_MS)
    turns.due(3, 0)
    assert turns.due(3, 100 * PERIOD_MS) == [0, 1, 2]
    assert turns.due(3, 100 * PERIOD_MS + PERIOD_MS // 3) == []
    assert turns.due(3, 101 * PERIOD_MS) == [0, 1, 2]


def test_a_clock_that_went_back_costs_one_question() -> None:
    turns = RegularTurns(PERIOD_MS)
    turns.due(4, PERIOD_MS)
    assert turns.due(4, 0) == []
    assert turns.due(4, PERIOD_MS // 2) == [0, 1]


def test_there_may_be_none_and_fewer_than_before() -> None:
    turns = RegularTurns(PERIOD_MS)
    turns.due(10, 0)
    assert turns.due(10, PERIOD_MS * 8 // 10) == list(range(8))
    assert turns.due(0, PERIOD_MS) == []
    assert turns.due(2, 2 * PERIOD_MS) == [0, 1]
