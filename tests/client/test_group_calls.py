"""What a client makes of the answers of agents about groups: of this version, and of wrong ones."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest

from streaming.broker.protocol.agent_calls import Call, Reason
from streaming.broker.protocol.group_messages import POSITIONS, POSITIONS_ASKED, BatchRequest, GroupsRequest, PositionsRequest
from streaming.broker.protocol.group_stream import table_message
from streaming.errors import AgentError
from streaming.spark.client import agent_client
from streaming.spark.client.agent_client import AgentClient
from tests.agents import served
from tests.tables import each_row

ASKED = pa.table(
    {
        "broker": [1] * 5,
        "topic": ["t"] * 5,
        "topic_id": [""] * 5,
        "partition": [0] * 5,
        "offset": range(5),
        "upto": [9] * 5,
        "reads_uncommitted": [0] * 5,
    },
    POSITIONS_ASKED,
)


@contextmanager
def connected(answer: Callable[[bytes], Iterator[bytes | pa.Buffer]]) -> Iterator[AgentClient]:
    """An agent that answers every call in one way."""
    with served(dict.fromkeys(Call, answer)) as address:
        client = AgentClient(address)
        yield client
        client.close()


def positions(body: bytes) -> Iterator[pa.Buffer]:
    """An answer in two messages."""
    asked = PositionsRequest.decode(body).table()
    found = [{name: "" if type_ == pa.string() else -1 for name, type_ in zip(POSITIONS.names, POSITIONS.types, strict=True)} | row
             for row in asked.to_pylist()]  # fmt: skip
    yield from (table_message(pa.Table.from_pylist(part, POSITIONS)) for part in (found[:1], found[1:]))


CALLS: dict[str, Callable[[AgentClient], object]] = {
    "groups": lambda client: client.groups(GroupsRequest()),
    "positions": lambda client: client.positions(ASKED),
    "records": lambda client: client.records(),
    "batch": lambda client: client.batch(BatchRequest(broker=1, topic="t", topic_id="", partition=0, offset=3)),
}


@each_row("call", CALLS)
def test_an_agent_that_does_not_know_the_call_is_named(call: str) -> None:
    with served({}) as address, pytest.raises(AgentError, match=f"{address}: this agent knows no call") as refused:
        CALLS[call](AgentClient(address))
    assert refused.value.reason == Reason.PROTOCOL


@each_row("call", CALLS)
def test_an_answer_that_is_none_is_an_error_that_names_the_agent(call: str) -> None:
    with connected(lambda *_: iter([b"{"])) as client, pytest.raises(AgentError, match=client.address):
        CALLS[call](client)


@each_row("call", CALLS)
def test_no_answer_at_all_is_an_error_that_names_the_agent(call: str) -> None:
    with connected(lambda *_: iter([])) as client, pytest.raises(AgentError, match=client.address):
        CALLS[call](client)


@pytest.mark.parametrize("most", [1, 2, 100])
def test_many_offsets_are_asked_in_parts_and_answered_in_order(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_client, "MOST_POSITIONS", most)
    calls = []

    def answer(body: bytes, _: str) -> Iterator[pa.Buffer]:
        calls.append(body)
        return positions(body)

    with connected(answer) as client:
        found = client.positions(ASKED)
    assert found["offset"].to_pylist() == [0, 1, 2, 3, 4]
    assert found.schema == POSITIONS
    assert len(calls) == -(-5 // most)


def test_an_answer_with_too_few_positions_is_an_error() -> None:
    with connected(lambda body, _: iter(list(positions(body))[:1])) as client, pytest.raises(AgentError, match="1 of 5 positions"):
        client.positions(ASKED)
