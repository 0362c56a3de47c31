"""What a round of answers makes of brokers: which of them surely have no process, and what a broker that is down has left over."""

import pytest

from streaming.broker.protocol.cluster_messages import PartitionCounts, Registered, TopicCounts
from streaming.broker.protocol.status_messages import ProcessStatus
from streaming.cluster.view.answers import apply
from streaming.cluster.view.observer import AgentStatus
from tests.exposition.reading import named
from tests.tables import each_row
from tests.view.rows import log, new_table
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


@each_row(
    ("topics", "fenced", "shown"),
    [
        pytest.param({"orders": "new"}, True, {1}, id="it was made anew"),
        pytest.param({"clicks": "c"}, True, {1}, id="it was deleted; broker 1 is about to read so"),
        pytest.param({"orders": ""}, True, {1, 2}, id="an earlier agent, which counts without ids"),
        pytest.param({"orders": "new"}, False, {1, 2}, id="a broker that runs reads it in a moment"),
        pytest.param(None, True, {1, 2}, id="nothing is counted"),
    ],
)
def test_what_a_broker_that_is_down_has_of_a_topic_that_was_deleted_counts_no_more(
    topics: dict[str, str] | None, fenced: bool, shown: set[int]
) -> None:
    """Kafka 4.4.0: broker 2 was away while the topic was deleted and made anew. It had the old one for as long as it was away."""
    counted = PartitionCounts([TopicCounts(topic=name, topic_id=of, partitions=1) for name, of in (topics or {}).items()], [])
    registered = (Registered(1, fenced=False), Registered(2, fenced=fenced))
    newest = broker(1, metadata_offset=90, registered=registered, counts="" if topics is None else counted.pack())
    table = new_table(
        log("orders", topic_id="new", leader=1, leader_epoch=0, log_end_offset=9),
        log("orders", topic_id="old", leader=2, leader_epoch=3, log_end_offset=121, broker=2, agent="a2"),
        log("__cluster_metadata", broker=2, agent="a2"),
    )
    apply(table, [agent("a1", newest), agent("a2", broker(2, metadata_offset=70))], ())
    ends = named(table, "segtail_partition_log_end_offset")
    assert {int(labels["broker"]) for each in ends if (labels := dict(each))["topic"] == "orders"} == shown
    assert any(dict(each)["topic"] == "__cluster_metadata" for each in ends)
