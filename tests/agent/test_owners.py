"""Of two runs that have one consumer, one is served."""

from streaming.broker.agent.service import OWNED_SECONDS, Owners
from tests.clocks import Clock


def test_a_run_that_is_new_takes_over_at_once_and_the_one_before_it_does_not_come_back() -> None:
    owners = Owners(Clock())
    assert owners.claim("job", "first")
    assert owners.claim("job", "second")
    assert owners.claim("other", "first")
    assert (owners.twins(), owners.owns("job", "first"), owners.owns("job", "second")) == ([], False, True)
    assert not owners.claim("job", "first")
    assert owners.claim("job", "second")
    assert owners.twins() == ["job"]
    assert owners.claim("job", "third")
    assert not owners.claim("job", "second")


def test_a_run_that_was_taken_over_from_goes_on_when_the_other_is_no_more() -> None:
    clock = Clock()
    owners = Owners(clock)
    for run in ("first", "second"):
        assert owners.claim("job", run)
    assert not owners.claim("job", "first")
    clock.now += OWNED_SECONDS
    assert owners.claim("job", "first")
    assert owners.twins() == []
    assert not owners.claim("job", "second")


def test_before_anybody_has_asked_nobody_is_refused() -> None:
    assert Owners().owns("job", "any")
