"""When a job asks its agents how they are."""

from streaming.spark.job.agent_statuses import QUIET_SECONDS, AgentPolls
from tests.clocks import Clock


def test_agents_that_are_well_are_asked_less_often_and_all_others_at_each_turn() -> None:
    clock = Clock()
    polls = AgentPolls(clock)
    assert polls.due
    polls.begin()
    polls.answered(quiet=True)
    asked = []
    for _ in range(6):
        clock.now += 1.0
        asked.append(polls.due)
        if polls.due:
            polls.begin()
            polls.answered(quiet=True)
    assert asked == [False, False, True, False, False, True]
    polls.answered(quiet=False)
    assert polls.due


def test_after_a_micro_batch_they_are_asked_at_the_next_turn_and_so_they_are_if_it_lands_meanwhile() -> None:
    polls = AgentPolls(Clock())
    polls.begin()
    polls.answered(quiet=True)
    assert not polls.due
    polls.landed()
    assert polls.due
    polls.begin()
    polls.landed()
    polls.answered(quiet=True)
    assert polls.due


def test_a_poll_that_failed_is_done_again() -> None:
    clock = Clock()
    polls = AgentPolls(clock)
    polls.begin()
    polls.answered(quiet=True)
    clock.now += QUIET_SECONDS
    polls.begin()
    assert polls.due
