"""What an agent remembers of its consumers while it runs."""

import threading

from streaming.broker.agent.consumer_memory import ConsumerArrivals


def test_only_what_this_run_received_of_this_journal_counts() -> None:
    arrivals = ConsumerArrivals()
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
    arrivals = ConsumerArrivals()
    arrivals.note("job", "run 1", "j1", 10)
    arrivals.note("job", "run 1", "j1", 5)
    assert arrivals.upto("job", "run 1", "j1") == 10
    arrivals.note("job", "run 2", "j1", 5)
    assert (arrivals.upto("job", "run 2", "j1"), arrivals.upto("job", "run 1", "j1")) == (5, -1)


def test_a_beginning_is_on_its_way_until_it_is_published() -> None:
    arrivals, begun = ConsumerArrivals(), threading.Event()
    assert not arrivals.begins("job")
    arrivals.note_beginning("job", begun)
    assert (arrivals.begins("job"), arrivals.begins("other")) == (True, False)
    begun.set()
    assert not arrivals.begins("job")


def test_what_was_asked_for_of_another_watcher_or_for_less_has_to_be_asked_for_again() -> None:
    arrivals, published, watcher = ConsumerArrivals(), threading.Event(), object()
    assert [arrivals.appears_again("job", missed, watcher) for missed in (-1, 0, 5)] == [None] * 3
    arrivals.note_appearing("job", 5, watcher, published)
    assert arrivals.appears_again("job", 5, watcher) is published
    assert arrivals.appears_again("job", 6, watcher) is None
    assert arrivals.appears_again("job", 5, object()) is None
