"""Clients that abort most of their transactions."""

import pyarrow as pa

from streaming.common.rows import COORDINATOR
from streaming.rules.transaction_verdicts import LEAST_SEEN, PAUSE_MS, WINDOW_MS, AbortingClient, AbortingClients

MINUTE = 60_000


def entries(*rows: tuple[str, str, int, int]) -> pa.Table:
    """Entries of (transactional id, state, epoch, last update)."""
    plain = {"offset": 0, "timeout_ms": MINUTE, "start_ms": -1, "partitions": [], "previous_producer_id": -1, "producer_id": 7}
    named = [
        plain | {"transactional_id": name, "state": state, "producer_epoch": epoch, "last_update_ms": at} for name, state, epoch, at in rows
    ]
    return pa.Table.from_pylist(named, COORDINATOR)


def watched(states: str, *, epochs: int = 0, minutes: int = 1) -> tuple[AbortingClient, ...]:
    """What is found of a client after looks at its entry: a is CompleteAbort, c is CompleteCommit, o is Ongoing, - is the entry before."""
    clients, at, found = AbortingClients(), 0, ()
    words = {"a": "CompleteAbort", "c": "CompleteCommit", "o": "Ongoing"}
    entry = ("abuser", "CompleteCommit", 0, 0)
    for number, state in enumerate(f"-{states}"):
        at += minutes * MINUTE
        if state != "-":
            entry = ("abuser", words[state], number * epochs, at - 1)
        found = clients.look(entries(entry), at)
    return found


def test_most_of_enough_transactions_have_to_be_aborted() -> None:
    assert watched("a" * (LEAST_SEEN - 1)) == ()
    (found,) = watched("a" * LEAST_SEEN)
    assert (found.transactional_id, found.seen, found.aborted) == ("abuser", LEAST_SEEN, LEAST_SEEN)
    assert watched("ac" * LEAST_SEEN) == ()
    (found,) = watched("aac" * LEAST_SEEN, minutes=1)
    assert found.aborted > found.seen / 2


def test_an_entry_that_does_not_change_and_a_transaction_that_is_open_are_no_ends() -> None:
    assert watched("a" * 5 + "-" * 20) == ()
    assert watched("a" * 5 + "o" * 5) == ()


def test_what_was_before_the_window_counts_no_more() -> None:
    assert watched("a" * LEAST_SEEN + "-" * (WINDOW_MS // MINUTE + 1)) == ()
    assert watched("a" * LEAST_SEEN + "c" * (LEAST_SEEN + 1)) == ()


def test_how_many_end_is_known_by_the_epoch_that_each_of_them_raises() -> None:
    assert watched("a" * LEAST_SEEN)[0].per_second == -1
    assert watched("a" * LEAST_SEEN, epochs=120)[0].per_second == 2.0


def test_looks_that_are_close_count_once() -> None:
    clients = AbortingClients()
    for number in range(LEAST_SEEN + 2):
        at = number * (PAUSE_MS // 2)
        found = clients.look(entries(("abuser", "CompleteAbort", 0, at)), at)
    assert found == ()


def test_who_never_aborts_costs_nothing_and_the_worst_comes_first() -> None:
    clients = AbortingClients()
    for number in range(LEAST_SEEN + 1):
        at = (number + 1) * MINUTE
        some = [("often", "CompleteAbort"), ("seldom", "CompleteAbort" if number % 3 else "CompleteCommit"), ("never", "CompleteCommit")]
        found = clients.look(entries(*((name, state, 0, at) for name, state in some)), at)
    assert [each.transactional_id for each in found] == ["often", "seldom"]
    assert clients._ends.keys() == {"often", "seldom"}
