"""What a round of answers makes of brokers: which of them surely have no process."""

from streaming.broker.protocol.status_messages import ProcessStatus
from streaming.cluster.view.answers import apply
from streaming.cluster.view.observer import AgentStatus
from tests.view.rows import new_table
from tests.worlds.broker_states import ENDED, FREE, UNKNOWN, UP
from tests.worlds.hosts import agent, broker


def away(*agents: AgentStatus) -> set[int]:
    table = new_table()
    apply(table, agents, ())
    return set(table.snapshot(1.0).context.away)


def of(process: ProcessStatus | None, name: str = "a1", *, up: bool = True) -> AgentStatus:
    return agent(name, broker(1, process=process), up=up)


def test_a_broker_is_away_only_where_an_agent_that_answers_is_sure() -> None:
    assert [away(of(each)) for each in (ENDED, FREE, UNKNOWN, UP, None)] == [{1}, {1}, set(), set(), set()]
    assert away(of(ENDED, up=False)) == set()
    assert away(of(ENDED), of(UP, "a2")) == set()


def test_a_broker_that_was_started_is_away_no_more() -> None:
    table = new_table()
    for process, expected in ((UP, set()), (ENDED, {1}), (UP, set())):
        apply(table, [of(process)], ())
        assert table.snapshot(1.0).context.away == expected
