"""The numbers of each minute of the last hour that only judged looks show."""

from streaming.pages.api.history import MINUTE_MS, MINUTES, NumberHours, NumberMemory, ShownNumbers

START = 1_700_000_040_000 // MINUTE_MS * MINUTE_MS


def test_each_minute_has_its_last_number_and_one_without_is_not_known() -> None:
    memory = NumberMemory()
    assert memory.hours(START) == NumberHours()
    for second, lag in [(0, 5), (50, 7), (60, 9), (180, 0)]:
        memory.record(START + 1000 * second, ShownNumbers(lag=lag))
    found = memory.hours(START + 181_000).lag
    assert (len(found), found[-4:], set(found[:-4])) == (MINUTES, [7.0, 9.0, -1.0, 0.0], {-1.0})


def test_what_is_older_than_an_hour_is_forgotten_and_a_clock_that_was_set_back_begins_anew() -> None:
    memory = NumberMemory()
    memory.record(START, ShownNumbers(lag=5))
    memory.record(START + MINUTES * MINUTE_MS, ShownNumbers(lag=6))
    assert list(memory.hours(START + MINUTES * MINUTE_MS).lag) == [-1.0] * (MINUTES - 1) + [6.0]
    memory.record(START, ShownNumbers(lag=8))
    assert list(memory.hours(START).lag)[-1] == 8.0
    assert max(memory.hours(START + MINUTES * MINUTE_MS).lag, default=-1.0) == -1.0


def test_each_number_has_an_hour_of_its_own_and_what_is_not_known_is_no_number() -> None:
    memory = NumberMemory()
    memory.record(START, ShownNumbers())
    assert memory.hours(START) == NumberHours()
    memory.record(START, ShownNumbers(loss_left_ms=0))
    memory.record(START + MINUTE_MS, ShownNumbers(full_left_ms=90))
    found = memory.hours(START + MINUTE_MS)
    assert (found.lag, found.loss_left_ms[-2:], found.full_left_ms[-2:]) == ((), [0.0, -1.0], [-1.0, 90.0])
