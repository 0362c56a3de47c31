"""What an agent remembers of its consumers while it runs."""

import threading

from streaming.agent.arrivals import Arrivals, Loss


def test_only_what_this_run_received_of_this_journal_counts() -> None:
    arrivals = Arrivals()
    arrivals.note("job", "run 1", "j1", 10)
    assert [
        arrivals.upto(*who) for who in (("job", "run 1", "j1"), ("job", "run 2", "j1"), ("job", "run 1", "j2"), ("other", "run 1", "j1"))
    ] == [
        10,
        -1,
        -1,
        -1,
    ]


def test_a_range_that_arrives_again_takes_nothing_back_and_another_run_begins_anew() -> None:
    arrivals = Arrivals()
    arrivals.note("job", "run 1", "j1", 10)
    arrivals.note("job", "run 1", "j1", 5)
    assert arrivals.upto("job", "run 1", "j1") == 10
    arrivals.note("job", "run 2", "j1", 5)
    assert (arrivals.upto("job", "run 2", "j1"), arrivals.upto("job", "run 1", "j1")) == (5, -1)


def test_a_beginning_is_on_its_way_until_it_is_published() -> None:
    arrivals, begun = Arrivals(), threading.Event()
    assert not arrivals.begins("job")
    arrivals.note_beginning("job", begun)
    assert (arrivals.begins("job"), arrivals.begins("other")) == (True, False)
    begun.set()
    assert not arrivals.begins("job")


def test_a_loss_is_remembered() -> None:
    arrivals = Arrivals()
    assert arrivals.loss("job") is None
    arrivals.note_loss("job", Loss(5, 100))
    assert arrivals.loss("job") == Loss(5, 100)
