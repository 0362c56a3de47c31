"""Calls that no job would make: whatever they hold, the agent answers on, to everybody."""

import http.client
import json
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from streaming.broker.agent.call_answers import REQUEST_VALUES
from streaming.broker.agent.call_server import PRINCIPALS_CALLS
from streaming.broker.protocol.agent_calls import PATH, Call
from streaming.broker.protocol.consumer_messages import PlanRequest
from streaming.common.units import Address
from tests.faults.writing import writing_broker
from tests.hostile.http1 import bare_call, endless_headers
from tests.hostile.processes import STRANGERS_TOKEN, TOKEN, Attacked, attacked_agent

MIB = 1 << 20


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Attacked]:
    with writing_broker(tmp_path / "broker") as broker, attacked_agent(broker.log_dirs, tmp_path) as agent:
        yield agent
        agent.process.terminate()
        assert agent.process.wait() == 0, agent.process.stated


REFUSED = 409


class Connection:
    """A connection of its own."""

    def __init__(self, agent: Attacked, token: str = STRANGERS_TOKEN) -> None:
        where = Address.parse(agent.address)
        self._connection = http.client.HTTPConnection(where.host, where.port, timeout=60)
        self._headers = {"authorization": f"Bearer {token}"}

    def ask(self, call: str, message: bytes) -> int:
        self._connection.request("POST", PATH + call, message, self._headers)
        answer = self._connection.getresponse()
        answer.read()
        return answer.status

    def close(self) -> None:
        self._connection.close()


@pytest.mark.parametrize("token", ["w" * 32, STRANGERS_TOKEN])
def test_an_agent_serves_on_however_many_calls_were_answered_at_once_before(agent: Attacked, token: str) -> None:
    crowd = [Connection(agent, token) for _ in range(PRINCIPALS_CALLS)]
    with ThreadPoolExecutor(PRINCIPALS_CALLS) as pool:
        for _ in range(8):
            list(pool.map(lambda each: each.ask(Call.STATUS, b"{}"), crowd))
    for each in crowd:
        each.close()
    job = Connection(agent, TOKEN)
    assert {job.ask(Call.STATUS, b"{}") for _ in range(4 * PRINCIPALS_CALLS)} == {200}
    job.close()


def test_whatever_is_asked_about_positions_ends_no_agent(agent: Attacked) -> None:
    """Arrow believes the offsets of a message: one whose texts began elsewhere ended the process."""
    rows = pa.table({"broker": pa.array([1] * 50, pa.int32()), "topic": ["orders"] * 50, "topic_id": [""] * 50}).append_column(
        "partition", pa.array([0] * 50, pa.int32())
    )
    for name in ("offset", "upto"):
        rows = rows.append_column(name, pa.array(range(50), pa.int64()))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write(rows)
    sound, chance = sink.getvalue().to_pybytes(), random.Random(7)
    stranger = Connection(agent)
    for _ in range(150):
        broken = bytearray(sound)
        for _ in range(chance.choice((1, 1, 2, 5))):
            broken[chance.randrange(len(broken))] = chance.choice((0, 1, 127, 128, 255))
        assert stranger.ask(Call.POSITIONS, bytes(broken)) == REFUSED
    for odd in (
        {},
        {"rows": 5},
        {"rows": [[]]},
        {"rows": [[1, 2, 3, 4, 5, 6]]},
        {"rows": [[1, "o", "", 0, 2**70, 5]]},
        {"rows": [["a"] * 6]},
    ):
        assert stranger.ask(Call.POSITIONS, json.dumps(odd).encode()) == REFUSED
    stranger.close()
    assert agent.client().status().agent == "a1"


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_is_none_is_refused(agent: Attacked, number: str) -> None:
    """A plan that waited for NaN milliseconds never ended, also when its client was gone."""
    message = PlanRequest("", "r", "", 10**9, None, 12345).encode().replace(b"12345", number.encode())
    stranger = Connection(agent)
    assert stranger.ask(Call.PLAN, message) == REFUSED
    stranger.close()


def test_requests_of_many_small_parts_take_little_memory(agent: Attacked) -> None:
    """As many as a request may have: one with more is refused before it is read."""
    message = b'{"x":[' + b"[]," * ((REQUEST_VALUES - 4) // 2) + b"[]]}"
    strangers = [Connection(agent) for _ in range(30)]
    agent.forget_peak()
    before = agent.status("VmRSS")
    with ThreadPoolExecutor(30) as pool:
        codes = set(pool.map(lambda each: each.ask(Call.STATUS, message), strangers))
    assert codes <= {200, 503}
    assert strangers[0].ask(Call.STATUS, b'{"x":[' + b"[]," * 650_000 + b"[]]}") == REFUSED
    assert agent.status("VmHWM") - before < 256 * MIB
    for each in strangers:
        each.close()


def test_strangers_fill_no_log(agent: Attacked) -> None:
    """Nor headers that are no text."""
    before = len(agent.process.stated)
    for number in range(100):
        with bare_call(agent.address, [(b"authorization", b"\xff\xfe" + str(number).encode())]):
            pass
    assert len(agent.process.stated) - before < 4_096


@pytest.mark.parametrize("part", [b"x" * 1_000, b"a: b\r\n" * 200, b"a: " + b"x" * 4_000 + b"\r\n"])
def test_headers_without_end_take_no_memory(agent: Attacked, part: bytes) -> None:
    client, before = agent.client(), agent.status("VmRSS")
    agent.forget_peak()
    with ThreadPoolExecutor(16) as pool:
        taken = list(pool.map(lambda _: endless_headers(agent.address, part, 20 * MIB), range(16)))
    assert all(sent < 20 * MIB for sent in taken)
    assert agent.status("VmHWM") - before < 32 * MIB
    assert client.status().agent == "a1"
    client.close()
