"""Which agents without an address are still missed."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from streaming.broker.protocol.cluster_messages import Registered
from streaming.broker.protocol.status_messages import BrokerStatus
from streaming.cluster.view.observer import AgentStatus
from streaming.spark.job.agent_statuses import GONE_SECONDS, ExpectedAgents


def agent(name: str, *directories: str, up: bool = True, **values: Any) -> AgentStatus:
    brokers = tuple(sorted({int(each.partition(":")[0]) for each in directories}))
    return AgentStatus(name=name, up=up, brokers=brokers, directories=directories, **values)


def seeing(name: str, broker: int, **phases: str) -> AgentStatus:
    """An agent whose metadata says where brokers stand."""
    registered = [Registered(int(number[1:]), phase != "running", 5, phase) for number, phase in phases.items()]
    status = BrokerStatus(
        broker=broker, readable=True, metadata_offset=9, registered=registered, controller=-1, led=[], transaction_partitions=0
    )
    return agent(name, f"{broker}:x", broker_statuses=(status,))


def named(*statuses: AgentStatus) -> dict[str, AgentStatus]:
    return {status.name: status for status in statuses}


OLD = agent("old", "1:a", "1:b", up=False)


def test_one_without_an_address_is_missed_and_not_for_ever() -> None:
    expected, known = ExpectedAgents(), named(OLD)
    assert expected.missed(known, {}, 0.0) == ["old"]
    assert expected.missed(known, {}, GONE_SECONDS - 1) == ["old"]
    assert expected.missed(known, {}, GONE_SECONDS) == []


def test_one_that_was_renamed_or_moved_is_not_missed_once_another_watches_its_log_dirs() -> None:
    expected = ExpectedAgents()
    assert expected.missed(named(OLD), named(agent("new", "1:a", "1:b")), 0.0) == []
    assert expected.missed(named(OLD), named(agent("half", "1:a")), 0.0) == ["old"], "another agent of the same broker, not of its log dirs"
    assert expected.missed(named(OLD), named(agent("new", "1:a", "1:b", up=False)), 0.0) == ["old"]


def test_one_whose_broker_runs_unwatched_is_missed_for_as_long_as_it_does() -> None:
    expected, known = ExpectedAgents(), named(OLD)
    assert expected.missed(known, named(seeing("other", 2, b1="running")), 0.0) == ["old"]
    assert expected.missed(known, named(seeing("other", 2, b1="running")), 9 * GONE_SECONDS) == ["old"]
    assert expected.missed(known, named(seeing("other", 2, b1="stopping")), 9 * GONE_SECONDS) == []


def test_one_that_has_an_address_is_not_asked_for_here_and_its_time_begins_anew() -> None:
    expected, known = ExpectedAgents(), named(OLD)
    assert expected.missed(known, {}, 0.0) == ["old"]
    assert expected.missed(known, named(OLD), 10.0) == []
    assert expected.missed(known, {}, GONE_SECONDS + 5) == ["old"]


def test_one_that_never_took_part_is_not_missed() -> None:
    assert ExpectedAgents().missed(named(AgentStatus(name="h:1", up=False)), {}, 0.0) == []


@given(st.lists(st.tuples(st.booleans(), st.floats(0, GONE_SECONDS)), max_size=20))
def test_one_is_forgotten_after_an_hour_without_an_address_and_never_before(polls: list[tuple[bool, float]]) -> None:
    expected, now, away = ExpectedAgents(), 0.0, None
    for at_an_address, passing in polls:
        now += passing
        away = None if at_an_address else now if away is None else away
        missed = expected.missed(named(OLD), named(OLD) if at_an_address else {}, now)
        assert missed == (["old"] if away is not None and now - away < GONE_SECONDS else [])


def test_one_whose_broker_another_agent_watches_is_not_missed_for_ever() -> None:
    expected, known, found = ExpectedAgents(), named(OLD), named(seeing("other", 1, b1="running"))
    assert expected.missed(known, found, 0.0) == ["old"]
    assert expected.missed(known, found, GONE_SECONDS) == []
