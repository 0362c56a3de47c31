"""Who is cut and who is refused when there are too many connections."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.common.web import places as limits
from streaming.common.web.places import Bounds, ConnectionPlace, ConnectionPlaces, Stage, client_of
from tests.tables import each_row


class Crowd:
    """Places that note who was cut."""

    def __init__(self, bounds: Bounds | None = None) -> None:
        self.places = ConnectionPlaces(bounds)
        self.now = 0.0
        self.cut: list[str] = []

    def enter(self, host: str, name: str = "") -> ConnectionPlace:
        return self.places.enter(host, self.now, lambda: self.cut.append(name or host))

    def asking(self, host: str, name: str = "", *, is_probe: bool = False) -> ConnectionPlace:
        place = self.enter(host, name)
        assert self.places.ask(place, self.now, is_probe)
        return place


def hosts() -> Callable[[], str]:
    numbers = iter(range(1 << 16))
    return lambda: f"10.1.{(number := next(numbers)) >> 8}.{number & 255}"


def test_a_client_displaces_its_own_silent_connections() -> None:
    crowd, other = Crowd(), hosts()
    for number in range(limits.SILENT_PER_CLIENT + 3):
        crowd.enter("10.0.0.1", str(number))
        crowd.enter(other())
    assert crowd.cut == ["0", "1", "2"]


def test_one_too_many_cuts_the_oldest_of_whoever_has_most() -> None:
    crowd, other = Crowd(), hosts()
    crowd.enter("10.0.0.9", "scraper")
    for number in range(limits.SILENT_PER_CLIENT):
        crowd.enter("10.0.0.1", str(number))
    for _ in range(limits.SILENT_CONNECTIONS - limits.SILENT_PER_CLIENT - 1):
        crowd.enter(other())
    assert crowd.cut == []
    crowd.enter(other())
    crowd.enter(other())
    assert crowd.cut == ["0", "1"]


def test_silence_displaces_nobody_who_is_answered() -> None:
    crowd, other = Crowd(), hosts()
    answered = [crowd.asking("10.0.0.1", "asks"), crowd.asking("10.0.0.1", "probes", is_probe=True), crowd.asking("10.0.0.1", "takes")]
    crowd.places.take(answered[2], crowd.now, 1)
    for _ in range(3 * limits.SILENT_CONNECTIONS):
        crowd.enter(other())
    assert len(crowd.cut) == 2 * limits.SILENT_CONNECTIONS
    assert not {"asks", "probes", "takes"} & {*crowd.cut}


def test_requests_have_a_bound_for_a_client_and_one_for_all_and_probes_have_their_own() -> None:
    crowd, other = Crowd(), hosts()
    for _ in range(limits.REQUESTS_PER_CLIENT):
        crowd.asking("10.0.0.1")
    assert not crowd.places.ask(crowd.enter("10.0.0.1"), 0.0, False)
    for _ in range(limits.REQUESTS - limits.REQUESTS_PER_CLIENT):
        crowd.asking(other())
    assert not crowd.places.ask(crowd.enter(other()), 0.0, False)
    for _ in range(limits.PROBES):
        crowd.asking("10.0.0.1", is_probe=True)
    assert not crowd.places.ask(crowd.enter(other()), 0.0, True)
    assert crowd.cut == []


def test_whoever_takes_nothing_goes_first() -> None:
    crowd, other = Crowd(), hosts()
    takers = [crowd.asking(other(), str(number)) for number in range(limits.READERS)]
    for place in takers:
        crowd.now += 0.1
        crowd.places.take(place, crowd.now, 1)
    takers[0].since = crowd.now + 1  # it has taken something
    crowd.places.take(crowd.asking(other(), "new"), crowd.now + 2, 1)
    assert crowd.cut == ["1"]


def test_a_client_s_readers_displace_its_own() -> None:
    crowd = Crowd()
    crowd.places.take(crowd.asking("10.0.0.9", "other"), 0.0, 1)
    for number in range(limits.READERS_PER_CLIENT + 1):
        crowd.places.take(crowd.asking("10.0.0.1", str(number)), 1.0 + number, 1)
    assert crowd.cut == ["0"]


def test_answers_have_a_bound_in_bytes_but_one_of_them_may_have_any_size() -> None:
    crowd, other = Crowd(), hosts()
    crowd.places.take(crowd.asking(other(), "first"), 0.0, limits.ANSWER_BYTES * 2)
    assert crowd.cut == []
    crowd.places.take(crowd.asking(other(), "second"), 1.0, limits.ANSWER_BYTES // 2)
    crowd.places.take(crowd.asking(other(), "third"), 2.0, limits.ANSWER_BYTES // 2)
    assert crowd.cut == ["first"]


@each_row(
    ("stage", "seconds"),
    [
        (Stage.SILENT, limits.HEAD_SECONDS),
        (Stage.TAKING, limits.STALLED_SECONDS),
        (Stage.ASKING, limits.CONNECTION_SECONDS),
        (Stage.PROBING, limits.CONNECTION_SECONDS),
    ],
)
def test_each_stage_has_its_time(stage: Stage, seconds: float) -> None:
    crowd = Crowd()
    crowd.enter("10.0.0.1").stage = stage
    crowd.places.cut_overdue(seconds - 0.1)
    assert crowd.cut == []
    crowd.places.cut_overdue(seconds)
    assert (crowd.cut, len(crowd.places)) == (["10.0.0.1"], 0)


def test_no_progress_prolongs_a_connection_for_ever() -> None:
    crowd = Crowd()
    place = crowd.asking("10.0.0.1")
    crowd.places.take(place, limits.CONNECTION_SECONDS - 1, 1)
    place.since = limits.CONNECTION_SECONDS
    crowd.places.cut_overdue(limits.CONNECTION_SECONDS)
    assert crowd.cut == ["10.0.0.1"]


@each_row(
    ("one", "other", "same"),
    [
        ("10.0.0.1", "10.0.0.2", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("2001:db8::1", "2001:db8::2:3", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
    ],
)
def test_a_client_is_an_address_or_a_network_of_ipv6(one: str, other: str, same: bool) -> None:
    assert (client_of(one) == client_of(other)) is same


_STEPS = st.lists(st.tuples(st.sampled_from(["enter", "ask", "probe", "take", "leave", "wait"]), st.integers(0, 9)), max_size=1500)


@pytest.mark.parametrize("spread", [1, 5, 1000])
@given(_STEPS)
def test_whatever_comes_every_bound_holds(spread: int, steps: list[tuple[str, int]]) -> None:
    places, there, now = ConnectionPlaces(), list[ConnectionPlace](), 0.0
    for number, (step, choice) in enumerate(steps * 3):
        now += 0.01
        mine = there[choice % len(there)] if there else None
        if step == "enter" or mine is None:
            place = places.enter(f"10.0.{number % spread}.1", now, lambda number=number: None)  # type: ignore[misc]
            there.append(place)
        elif step in ("ask", "probe"):
            places.ask(mine, now, step == "probe")
        elif step == "take":
            places.take(mine, now, limits.ANSWER_BYTES // 3)
        elif step == "leave":
            places.leave(mine)
        else:
            places.cut_overdue(now := now + choice)
        there = [each for each in there if each in places]
        of = {stage: [each for each in there if each.stage is stage] for stage in Stage}
        assert len(of[Stage.SILENT]) <= limits.SILENT_CONNECTIONS
        assert len(of[Stage.ASKING]) <= limits.REQUESTS
        assert len(of[Stage.PROBING]) <= limits.PROBES
        assert len(of[Stage.TAKING]) <= limits.READERS
        assert sum(each.nbytes for each in of[Stage.TAKING]) <= limits.ANSWER_BYTES or len(of[Stage.TAKING]) == 1


def test_one_that_had_an_answer_stays_longer_than_those_that_had_none() -> None:
    """Neither another silent one of its client nor too many of others displace it before them."""
    crowd, other = Crowd(), hosts()
    crowd.places.end(crowd.asking("10.0.0.1", "job"), crowd.now, answered=True)
    crowd.places.end(crowd.asking("10.0.0.1", "refused"), crowd.now)
    for number in range(limits.SILENT_PER_CLIENT):
        crowd.enter("10.0.0.1", str(number))
    assert crowd.cut == ["refused", "0"]
    for _ in range(limits.SILENT_CONNECTIONS):
        crowd.enter(other())
    assert "job" not in crowd.cut


def test_a_connection_that_is_kept_has_times_of_its_own() -> None:
    bounds = Bounds(head_seconds=10, idle_seconds=60, age_seconds=100, connection_seconds=math.inf)
    crowd = Crowd(bounds)
    answered, asks = crowd.asking("10.0.0.1", "answered"), crowd.asking("10.0.0.2", "asks")
    crowd.enter("10.0.0.3", "silent")
    crowd.places.end(answered, 0.0, answered=True)
    crowd.places.cut_overdue(59.9)
    assert crowd.cut == ["silent"]
    crowd.places.end(answered, 59.9, answered=True)
    crowd.places.cut_overdue(99.9)
    assert crowd.cut == ["silent"]
    crowd.places.cut_overdue(100.0)
    assert crowd.cut == ["silent", "answered"]
    crowd.places.cut_overdue(1e6)
    assert asks in crowd.places
    assert crowd.places.busy
    assert crowd.places.end(asks, 1e6)
    assert not crowd.places.busy
    assert not crowd.places.end(answered, 1e6)
