"""How long lists are looked at in one poll."""

from streaming.broker.watcher.found_events import FIRST_LOOK_SECONDS, LOOK_SECONDS, MOST_LOOK_SECONDS, ListTime
from tests.clocks import Clock


def looked(clock: Clock, time: ListTime, *, first: bool) -> float:
    """The seconds of a look at lists that take a millisecond each."""
    began = clock.now
    time.begin(first=first)
    while time.left:
        clock.now += 0.001
    time.end()
    return round(clock.now - began, 2)


def test_a_start_looks_at_lists_for_as_long_as_the_rest_of_a_poll_takes() -> None:
    clock = Clock(0.0)
    time = ListTime(clock)
    for rest, expected in ((0.0, FIRST_LOOK_SECONDS), (0.7, 0.7), (30.0, MOST_LOOK_SECONDS), (0.1, FIRST_LOOK_SECONDS)):
        clock.now += rest
        assert looked(clock, time, first=True) == expected
    clock.now += 5.0
    assert looked(clock, time, first=False) == LOOK_SECONDS
