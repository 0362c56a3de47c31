"""A plan is answered after a look that began when it was asked; nobody waits for one that does not come."""

import threading

from streaming.broker.agent.polling_thread import Polls

LONG = 600.0


def _waits(polls: Polls) -> tuple[threading.Thread, list[bool]]:
    """Somebody who waits for a look."""
    answers: list[bool] = []
    thread = threading.Thread(target=lambda: answers.append(polls.request(LONG)))
    thread.start()
    polls.rest(LONG)  # until it is wanted
    return thread, answers


def test_a_look_that_began_before_does_not_count() -> None:
    polls = Polls()
    with polls.polling():
        thread, answers = _waits(polls)
    assert thread.is_alive()
    assert not answers
    with polls.polling():
        pass
    thread.join(LONG)
    assert answers == [True]


def test_a_look_that_does_not_come_is_not_waited_for() -> None:
    polls = Polls()
    assert not polls.request(LONG)  # nobody has ever looked
    with polls.polling():
        pass
    assert not polls.request(0.0)


def test_a_wish_is_fulfilled_by_the_look_that_begins_after_it() -> None:
    polls = Polls()
    polls.want()
    polls.rest(LONG)
    with polls.polling():
        polls.want()
    polls.rest(LONG)  # one that came meanwhile stands


def test_a_watcher_that_was_replaced_does_not_take_back_what_the_one_after_it_saw() -> None:
    polls = Polls()
    with polls.polling():
        with polls.polling():
            thread, answers = _waits(polls)
        with polls.polling():
            pass
        thread.join(LONG)
    assert answers == [True]
