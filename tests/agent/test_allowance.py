"""How often a principal may ask for work, and that it takes nothing from another."""

from streaming.broker.agent.service import Allowance
from tests.clocks import Clock


def test_so_many_at_once_and_one_more_each_time_that_has_passed() -> None:
    clock = Clock(100)
    allowance = Allowance(3, 10.0, clock)
    assert [allowance.take("a") for _ in range(5)] == [True, True, True, False, False]
    assert allowance.take("b")
    clock.now += 9
    assert not allowance.take("a")
    clock.now += 1
    assert [allowance.take("a") for _ in range(2)] == [True, False]
    clock.now += 1000
    assert [allowance.take("a") for _ in range(5)] == [True, True, True, False, False]
