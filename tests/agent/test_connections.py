"""Which connection goes when there are too many: whoever has no call, then whoever had no answer, and whoever has most."""

from streaming.broker.agent.connections import MOST, MOST_OF_CLIENT, SILENT_SECONDS, STALLED_SECONDS, Connection, Connections


class Port:
    def __init__(self) -> None:
        self.connections = Connections()
        self.cut: list[str] = []

    def enter(self, client: str, name: str = "", *, calls: int = 0, answered: bool = False, now: float = 0.0) -> Connection:
        made = self.connections.enter(client, now, lambda: self.cut.append(name or client))
        made.calls, made.answered = calls, answered
        return made


def test_a_client_with_many_displaces_its_own_and_first_one_without_a_call() -> None:
    port = Port()
    port.enter("10.0.0.1", "other")
    for number in range(MOST_OF_CLIENT):
        port.enter("10.0.0.2", f"{number}", calls=number != 5)
    port.enter("10.0.0.2", "one more", calls=1)
    assert port.cut == ["5"]
    port.enter("10.0.0.2", "and one more", calls=1)
    assert port.cut == ["5", "0"]


def test_a_client_with_many_displaces_those_without_an_answer_before_an_older_one_that_had_one() -> None:
    port = Port()
    for number in range(MOST_OF_CLIENT):
        port.enter("10.0.0.2", f"{number}", calls=1, answered=number != 5)
    port.enter("10.0.0.2", "refused", calls=1)
    assert port.cut == ["5"]
    port.enter("10.0.0.2", "refused, too", calls=1)
    assert port.cut == ["5", "refused"]


def test_those_of_one_network_of_ipv6_are_one_client() -> None:
    port = Port()
    for number in range(MOST_OF_CLIENT + 1):
        port.enter(f"2001:db8::{number:x}", f"{number}", calls=1)
    assert port.cut == ["0"]


def test_beyond_the_bound_of_all_the_silent_ones_go_and_jobs_stay() -> None:
    port = Port()
    port.enter("10.1.0.1", "job", calls=1)
    for number in range(MOST - 1):
        port.enter(f"10.0.{number % 8}.1", f"{number}")
    assert not port.cut
    port.enter("10.2.0.1", "another job")
    assert port.cut == ["0"]
    assert len(port.connections) == MOST


def test_beyond_the_bound_of_all_those_without_an_answer_go_and_jobs_stay() -> None:
    """Though one address has more of the jobs."""
    port = Port()
    for number in range(MOST_OF_CLIENT):
        port.enter("10.1.0.1", f"job {number}", calls=1, answered=True)
    for number in range(MOST - MOST_OF_CLIENT):
        port.enter(f"10.0.{number % 8}.1", f"{number}", calls=1)
    port.enter("10.2.0.1", "another job", calls=1)
    assert port.cut == ["0"]


def test_where_all_have_calls_the_client_with_most_loses_its_oldest() -> None:
    port = Port()
    port.enter("10.1.0.1", "job", calls=1)
    for number in range(MOST - 1):
        port.enter(f"10.0.{number % 8}.1", f"{number}", calls=1)
    port.enter("10.2.0.1", "another job", calls=1)
    assert port.cut == ["0"]


def test_one_without_a_call_is_cut_in_time() -> None:
    port = Port()
    port.enter("10.0.0.1", "silent")
    port.enter("10.0.0.2", "job", calls=1)
    left = port.enter("10.0.0.3", "gone")
    port.connections.leave(left)
    port.connections.cut_overdue(SILENT_SECONDS - 0.1)
    assert not port.cut
    port.connections.cut_overdue(SILENT_SECONDS)
    assert port.cut == ["silent"]
    assert port.connections.cuts == 1


def test_one_that_takes_nothing_is_cut_in_time() -> None:
    port = Port()
    port.enter("10.0.0.1", "reader", calls=1)
    port.enter("10.0.0.2", "stalled", calls=1).stalled = 5.0
    port.connections.cut_overdue(5.0 + STALLED_SECONDS - 0.1)
    assert not port.cut
    port.connections.cut_overdue(5.0 + STALLED_SECONDS)
    assert port.cut == ["stalled"]
