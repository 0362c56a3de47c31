"""Calls that no job would make: whatever they hold, the agent answers on, to everybody."""

import json
import random
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pyarrow as pa
import pytest

from streaming.broker.agent.call_answers import REQUEST_VALUES
from streaming.broker.agent.call_server import CONNECTIONS_CALLS
from streaming.broker.protocol.agent_calls import Call, method
from streaming.broker.protocol.consumer_messages import PlanRequest
from tests.faults.writing import writing_broker
from tests.hostile.http2 import bare_call, endless_headers, many_fields
from tests.hostile.processes import STRANGERS_TOKEN, TOKEN, Attacked, attacked_agent

MIB = 1 << 20


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Attacked]:
    with writing_broker(tmp_path / "broker") as broker, attacked_agent(broker.log_dirs, tmp_path) as agent:
        yield agent
        agent.process.terminate()
        assert agent.process.wait() == 0, agent.process.stated


def headers(token: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {token}"),)


def _read(answer: Iterable[bytes]) -> grpc.StatusCode:
    try:
        list(answer)
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


class Connection:
    """A connection of its own."""

    def __init__(self, agent: Attacked, token: str = STRANGERS_TOKEN) -> None:
        self._channel = grpc.insecure_channel(agent.address, [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)])
        self._headers = headers(token)

    def ask(self, call: str, message: bytes) -> grpc.StatusCode:
        (code,) = self.many(call, message, 1)
        return code

    def many(self, call: str, message: bytes, count: int) -> list[grpc.StatusCode]:
        """At the same time."""
        ask = self._channel.unary_stream(method(call))
        return [_read(each) for each in [ask(message, metadata=self._headers, timeout=60) for _ in range(count)]]

    def close(self) -> None:
        self._channel.close()


@pytest.mark.parametrize("token", ["w" * 32, STRANGERS_TOKEN])
def test_a_connection_serves_on_however_many_calls_were_answered_at_once_before(agent: Attacked, token: str) -> None:
    """A thread that was idle kept its last call, and so its stream: after a crowd, each connection was good for 33 calls for ever."""
    crowd = [Connection(agent, token) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(8):
            list(pool.map(lambda each: each.many(Call.STATUS, b"{}", CONNECTIONS_CALLS), crowd))
    assert agent.status("Threads") > CONNECTIONS_CALLS + 16  # with those that are there anyway
    for each in crowd:
        each.close()
    job = Connection(agent, TOKEN)
    assert {job.ask(Call.STATUS, b"{}") for _ in range(4 * CONNECTIONS_CALLS)} == {grpc.StatusCode.OK}
    job.close()


def test_headers_of_many_fields_take_no_memory(agent: Attacked) -> None:
    """A field that was sent before is a byte: 6 MB of them took 80 MiB, without a token, and the memory stayed."""
    before = agent.status("VmRSS")
    for _ in range(3):
        many_fields(agent.address, 400)
    assert agent.status("VmRSS") - before < 16 * MIB
    assert Connection(agent, TOKEN).ask(Call.STATUS, b"{}") is grpc.StatusCode.OK


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
        assert stranger.ask(Call.POSITIONS, bytes(broken)) is grpc.StatusCode.FAILED_PRECONDITION
    for odd in (
        {},
        {"rows": 5},
        {"rows": [[]]},
        {"rows": [[1, 2, 3, 4, 5, 6]]},
        {"rows": [[1, "o", "", 0, 2**70, 5]]},
        {"rows": [["a"] * 6]},
    ):
        assert stranger.ask(Call.POSITIONS, json.dumps(odd).encode()) is grpc.StatusCode.FAILED_PRECONDITION
    stranger.close()
    assert agent.client().status().agent == "a1"


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_is_none_is_refused(agent: Attacked, number: str) -> None:
    """A plan that waited for NaN milliseconds never ended, also when its client was gone."""
    message = PlanRequest("", "r", "", 10**9, None, 12345).encode().replace(b"12345", number.encode())
    stranger = Connection(agent)
    assert stranger.ask(Call.PLAN, message) is grpc.StatusCode.FAILED_PRECONDITION
    stranger.close()


def test_requests_of_many_small_parts_take_little_memory(agent: Attacked) -> None:
    """As many as a request may have: one with more is refused before it is read."""
    message = b'{"x":[' + b"[]," * ((REQUEST_VALUES - 4) // 2) + b"[]]}"
    strangers = [Connection(agent) for _ in range(30)]
    agent.forget_peak()
    before = agent.status("VmRSS")
    with ThreadPoolExecutor(30) as pool:
        codes = set(pool.map(lambda each: each.ask(Call.STATUS, message), strangers))
    assert codes <= {grpc.StatusCode.OK, grpc.StatusCode.CANCELLED, grpc.StatusCode.RESOURCE_EXHAUSTED}
    assert strangers[0].ask(Call.STATUS, b'{"x":[' + b"[]," * 650_000 + b"[]]}") is grpc.StatusCode.FAILED_PRECONDITION
    assert agent.status("VmHWM") - before < 256 * MIB
    for each in strangers:
        each.close()


def test_strangers_fill_no_log(agent: Attacked) -> None:
    """gRPC itself logs a header that is no text, with a traceback."""
    before = len(agent.process.stated)
    for number in range(100):
        with bare_call(agent.address, Call.STATUS.method, [(b"authorization", b"\xff\xfe" + str(number).encode())]):
            pass
    assert len(agent.process.stated) - before < 4_096


@pytest.mark.parametrize("part", [b"", b"\0\x01a\x01b", bytes([0x82]) * 16_000])
def test_headers_without_end_take_no_memory(agent: Attacked, part: bytes) -> None:
    """gRPC refuses them and reads on: sixteen such connections took 400 MiB, without a token."""
    client, before = agent.client(), agent.status("VmRSS")
    agent.forget_peak()
    with ThreadPoolExecutor(16) as pool:
        taken = list(pool.map(lambda _: endless_headers(agent.address, part, 20 * MIB), range(16)))
    assert all(sent < 20 * MIB for sent, _ in taken)
    assert agent.status("VmHWM") - before < 32 * MIB
    assert client.status().agent == "a1"
    client.close()
