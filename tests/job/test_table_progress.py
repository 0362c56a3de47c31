"""Up to where journals are in the table."""

from typing import Any

import pyarrow as pa

from streaming.broker.protocol.status_messages import Status
from streaming.common.state_row import STATES
from streaming.spark.job.query_progress import Reached
from streaming.spark.source.offsets import AgentOffset
from tests.builders import CLUSTER_ID


def arrived(agent: str, seq: int, journal: str = "j") -> pa.Table:
    row = {"change": "arrived", "agent": agent, "topic_id": journal, "log_end_offset": seq, "appended_bytes": 0}
    return pa.Table.from_pylist([row], schema=STATES)


def status(agent: str, seq: int, *, caught_up: bool, journal: str = "j") -> Status:
    values: dict[str, Any] = {"brokers": [1], "unreadable_metadata": [], "logs": 1, "total": 0, "cluster_id": CLUSTER_ID, "version": "1"}
    return Status(agent=agent, journal=journal, seq=seq, caught_up=caught_up, **values)


def at(seq: int, journal: str = "j") -> AgentOffset:
    return AgentOffset(journal, 0, seq, 0, 0)


def test_an_agent_is_through_with_what_was_there_when_it_had_caught_up() -> None:
    reached = Reached()
    assert reached.through([status("a", 3, caught_up=True)]) == frozenset()  # for others: it has not heard of this job
    reached.take(arrived("a", 5))
    assert reached.through([status("a", 9, caught_up=False)]) == frozenset()
    assert reached.through([status("a", 9, caught_up=True)]) == frozenset()
    reached.take(arrived("a", 8))
    assert reached.through([status("a", 20, caught_up=True)]) == frozenset()
    reached.take(arrived("a", 9))
    assert reached.through([status("a", 99, caught_up=True)]) == {"a"}  # whatever has come since
    assert reached.through([]) == {"a"}


def test_what_another_journal_holds_is_not_what_was_there() -> None:
    reached = Reached()
    reached.take(arrived("a", 50))
    assert reached.through([status("a", 60, caught_up=True)]) == frozenset()
    reached.take(arrived("a", 99, "k"))
    assert reached.through([status("a", 100, caught_up=True, journal="k")]) == frozenset()
    reached.take(arrived("a", 100, "k"))
    assert reached.through([status("a", 100, caught_up=True, journal="k")]) == {"a"}


def test_it_lacks_what_was_planned_and_did_not_arrive() -> None:
    reached = Reached()
    start, end = {"a": at(5), "b": at(5)}, {"a": at(5), "b": at(7), "c": at(3)}
    assert reached.lacks(start, end) == ["b", "c"]
    reached.take(arrived("b", 6))
    reached.take(arrived("c", 3))
    assert reached.lacks(start, end) == ["b"]
    reached.take(arrived("b", 7, "another"))
    assert reached.lacks(start, end) == ["b"]
    reached.take(arrived("b", 7))
    reached.take(arrived("b", 2))  # a micro-batch that comes again
    assert reached.lacks(start, end) == []
