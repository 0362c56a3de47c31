"""For how long a segment was seen to be deletable."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streaming.cluster.view.page_context import DeletableSince

INTERVAL, HOURS = 300_000, 36_000_000


def look(memory: DeletableSince, now_ms: int, deletable: bool, overdue: int = HOURS, *, known: bool = True, slot: int = 3) -> int:
    bound = memory.bound(np.array([slot]), now_ms)
    found = bound(np.array([known]), np.array([deletable]), np.array([overdue if deletable else 0]), np.array([INTERVAL]))
    return int(found[0])


def test_what_was_not_deletable_before_is_overdue_since_it_was_seen_to_be() -> None:
    memory = DeletableSince()
    assert [look(memory, 1000, False), look(memory, 2000, True), look(memory, 9000, True)] == [0, 0, 7000]
    assert [look(memory, 9001, False), look(memory, 9100, True), look(memory, 9200, True)] == [0, 0, 100]


def test_times_that_say_less_count() -> None:
    memory = DeletableSince()
    assert [look(memory, 1000, False), look(memory, 2000, True, 500), look(memory, 9000, True, 600)] == [0, 0, 600]


def test_what_is_deletable_at_the_first_look_is_believed_when_a_check_has_passed_it_over() -> None:
    memory = DeletableSince()
    assert [look(memory, 1000, True), look(memory, 1000 + INTERVAL - 1, True), look(memory, 1000 + INTERVAL, True)] == [0, 0, HOURS]


def test_a_log_that_was_not_exported_for_a_while_is_looked_at_for_the_first_time_again() -> None:
    memory = DeletableSince()
    assert [look(memory, 0, True), look(memory, INTERVAL, True)] == [0, HOURS]
    assert look(memory, INTERVAL + 1, False, slot=1) == 0
    assert look(memory, INTERVAL + 2, True) == 0


def test_while_nothing_is_known_what_was_seen_stands() -> None:
    memory = DeletableSince()
    seen = [look(memory, 0, False), look(memory, 1, True), look(memory, 2, False, known=False), look(memory, 6, True)]
    assert seen == [0, 0, 0, 5]


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.integers(0, 600_000)), min_size=1, max_size=30))
def test_it_is_no_longer_than_the_times_say_nor_than_it_was_seen_unless_it_was_so_from_the_first(
    looks: list[tuple[int, bool, int]],
) -> None:
    memory, now, first = DeletableSince(), 0, True
    began: int | None = None
    for minutes, deletable, overdue in looks:
        now += minutes * 60_000
        found = look(memory, now, deletable, overdue)
        if not deletable:
            began, first = None, False
            assert found == 0
            continue
        began = now if began is None else began
        assert 0 <= found <= overdue
        assert found <= now - began or (first and now - began >= INTERVAL)
