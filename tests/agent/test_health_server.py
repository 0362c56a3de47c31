"""When an agent is alive and when it serves."""

from streaming.broker.agent.health_server import HEALTHY_SECONDS, Pulse


def test_is_ready_with_its_first_look_and_healthy_as_long_as_it_looks() -> None:
    now = [100.0]
    pulse = Pulse(lambda: now[0])
    assert (pulse.healthy, pulse.ready) == (True, False)
    now[0] += HEALTHY_SECONDS
    assert (pulse.healthy, pulse.ready) == (False, False)
    pulse.beat()
    assert (pulse.healthy, pulse.ready) == (True, True)
    now[0] += HEALTHY_SECONDS
    assert (pulse.healthy, pulse.ready) == (False, True)
