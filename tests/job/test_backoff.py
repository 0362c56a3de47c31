"""How long the job waits before it starts something again."""

from streaming.job.backoff import BackOff


def test_pauses_grow_and_stay_at_the_last() -> None:
    back_off = BackOff((0.0, 1.0, 5.0), well_seconds=60.0)
    assert [back_off.ended(3.0) for _ in range(5)] == [0.0, 1.0, 5.0, 5.0, 5.0]


def test_one_that_ran_well_for_a_while_begins_at_the_first_again() -> None:
    back_off = BackOff((0.0, 1.0, 5.0), well_seconds=60.0)
    assert [back_off.ended(ran) for ran in (3.0, 3.0, 59.9, 60.0, 3.0)] == [0.0, 1.0, 5.0, 0.0, 1.0]
