"""Server and client over HTTP on loopback."""

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from streaming.broker.agent import excerpt_answers
from streaming.broker.agent.call_answers import answers
from streaming.broker.agent.call_server import AT_ONCE_BYTES, PRINCIPALS_CALLS, AgentServer
from streaming.broker.protocol.agent_calls import POSITIONS_BYTES, REGISTER_BYTES, REQUEST_BYTES, Call, Reason
from streaming.broker.protocol.consumer_messages import PlanRequest, Range, Register
from streaming.broker.protocol.excerpt_messages import Scan, ScanRequest
from streaming.broker.protocol.status_messages import Status
from streaming.common.event_row import EVENTS
from streaming.common.rows import Kind
from streaming.common.units import Address
from streaming.errors import AgentError
from streaming.simulator.log import PartitionLog
from streaming.spark.client import agent_client as client_module
from streaming.spark.client.agent_client import AgentClient
from tests.agents import Agent, served
from tests.builders import NOW, batch, log_dir, partition
from tests.limits import SECONDS
from tests.processes import until


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    made = partition(log_dir(tmp_path), "orders")
    made.append(batch(3), batch(2, timestamp=NOW + 50))
    return made


@pytest.fixture
def client(agent: Agent) -> Iterator[AgentClient]:
    with agent.served() as address:
        made = AgentClient(address)
        yield made
        made.close()


def refused() -> str:
    """An address at which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


def begun(client: AgentClient) -> PlanRequest:
    """Register and wait for the beginning; returns how to plan."""
    client.register(Register("job", "earliest", resumed=False, run="run 1"))
    while not client.status().caught_up:
        pass
    return PlanRequest("job", "run 1", "", -1, None, 0)


def test_no_proxy_of_the_web_is_asked_for_an_agent(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would get the token, and cannot reach an agent of this host."""
    monkeypatch.setenv("http_proxy", f"http://{refused()}")
    monkeypatch.delenv("no_proxy", raising=False)
    with agent.served() as address:
        client = AgentClient(address)
        assert client.status().journal
        client.close()


def test_rows_cross_the_wire_as_they_are(agent: Agent, client: AgentClient) -> None:
    plan = client.plan(begun(client))
    asked = Range("job", "run 1", plan.journal, plan.after, plan.seq)
    table = client.read(asked)
    assert table.schema == EVENTS
    assert table["kind"].to_pylist()[:4] == [Kind.APPEARED, Kind.CENSUS, Kind.CENSUS_END, Kind.APPENDED]
    assert table["records"].to_pylist()[3] == 5
    assert agent.service.plan(PlanRequest("job", "run 1", plan.journal, plan.seq, None, 0)).seq == plan.seq


def test_an_answer_that_does_not_come_in_time_is_an_error(client: AgentClient, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = client.plan(begun(client))
    client.read(Range("job", "run 1", plan.journal, plan.after, plan.seq))
    monkeypatch.setattr(client_module, "ANSWER_SECONDS", -0.19)  # what it may take beyond the wait that is asked for
    with pytest.raises(AgentError, match=client.address):
        client.plan(PlanRequest("job", "run 1", plan.journal, plan.seq, None, 200))


@pytest.mark.parametrize("ask", ["status", "topics"])
def test_an_agent_that_is_not_there_is_an_error_that_names_its_address(ask: str) -> None:
    address = refused()
    with pytest.raises(AgentError, match=address):
        getattr(AgentClient(address), ask)()


def test_reading_from_an_agent_that_is_not_there_is_an_error_too() -> None:
    address = refused()
    with pytest.raises(AgentError, match=address):
        AgentClient(address).read(Range("job", "run 1", "j1", 0, 1))
    with pytest.raises(AgentError, match=address):
        list(AgentClient(address).scan(ScanRequest(scan=Scan.BATCHES, excerpts=[])))


def test_an_address_that_is_none_is_an_error() -> None:
    with pytest.raises(AgentError, match="no address at all"):
        AgentClient("no address at all").status()


def test_what_the_agent_refuses_comes_with_its_own_words(client: AgentClient) -> None:
    with pytest.raises(AgentError, match=f"{client.address}.*no such start: 'noon'"):
        client.register(Register("job", "noon", resumed=False))


def test_a_call_that_an_agent_does_not_know_says_what_may_be_wrong(client: AgentClient) -> None:
    with pytest.raises(AgentError, match=r"knows no call 'levitate'.*same version"):
        client._ask("levitate", b"{}", Status, SECONDS)


def test_a_message_that_is_none_is_refused(client: AgentClient) -> None:
    with pytest.raises(AgentError, match="not a message of kind Register"):
        client._ask(Call.REGISTER, b"[]", Status, SECONDS)


def test_an_error_that_is_none_of_ours_brings_no_stack_and_no_path(client: AgentClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise FileNotFoundError(2, "no such file", "/some/path")

    monkeypatch.setattr(excerpt_answers, "topics_of", failing)
    with pytest.raises(AgentError, match="its own log says why") as refused:
        client.topics()
    assert not any(word in str(refused.value) for word in ("/some/path", "Traceback", ".py", "FileNotFound"))


def test_a_connection_is_made_anew_after_it_was_closed(client: AgentClient) -> None:
    before = client.status().journal
    client.close()
    assert client.status().journal == before


@pytest.mark.parametrize("error", [OSError("the file /var/lib/own cannot be used"), KeyError("a fault of ours")])
def test_what_is_not_for_callers_is_in_the_agent_s_log_alone_and_once_a_second(
    agent: Agent, error: Exception, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streaming.common.logs.EVERY_SECONDS", SECONDS)  # twenty calls may take longer than a second

    def fail(_: bytes, principal: str = "") -> Iterator[bytes]:
        raise error

    with served(answers(agent.service) | {Call.STATUS: fail}) as address:
        client = AgentClient(address)
        for _ in range(20):
            with pytest.raises(AgentError, match="its own log says why") as reported:
                client.status()
            assert str(error.args[0]) not in str(reported.value)
        client.close()
    lines = [record for record in caplog.records if record.getMessage() == "a call cannot be answered"]
    # a call of the test before may end meanwhile, on another server
    assert [line.exc_info[1] for line in lines if line.exc_info and line.exc_info[1] is error] == [error]


@pytest.mark.parametrize("run", ["r" * 65, "line\nfeed", "\x1b[31m"])
def test_an_id_of_a_run_is_short_and_printable(client: AgentClient, run: str) -> None:
    client.plan(begun(client))
    with pytest.raises(AgentError, match="no such id of a run"):
        client.plan(PlanRequest("job", run, "", -1, None, 0))


def test_a_port_that_is_taken_is_refused(agent: Agent) -> None:
    with agent.served() as where, pytest.raises(OSError, match="in use"):
        AgentServer({}, Address.parse(where))


def test_a_call_that_is_refused_before_its_message_has_come_is_refused_with_words(client: AgentClient) -> None:
    with pytest.raises(AgentError, match="knows no call 'levitate'"):
        client._ask("levitate", b"x" * REQUEST_BYTES, Status, SECONDS)


def test_only_a_registration_may_be_larger_than_other_requests() -> None:
    def answer(body: bytes, _principal: str) -> Iterator[bytes]:
        yield str(len(body)).encode()

    with served({Call.REGISTER: answer, Call.PLAN: answer}) as address:
        client = AgentClient(address)
        assert client._one(Call.REGISTER, b"x" * REGISTER_BYTES, SECONDS) == str(REGISTER_BYTES).encode()
        for call, size in ((Call.REGISTER, REGISTER_BYTES + 1), (Call.PLAN, REQUEST_BYTES + 1)):
            with pytest.raises(AgentError, match=r"what listens there is no agent|closed the connection"):
                client._one(call, b"x" * size, SECONDS)
        client.close()


def test_requests_with_positions_may_be_larger_than_others_and_not_without_bound(client: AgentClient) -> None:
    for call, size, words in (
        (Call.PLAN, REQUEST_BYTES + 1, "what listens there is no agent"),
        (Call.REACH, REQUEST_BYTES + 1, "not a message of kind ReachRequest"),
        (Call.BETWEEN, POSITIONS_BYTES, "not a message of kind BetweenRequest"),
        (Call.BETWEEN, POSITIONS_BYTES + 1, "what listens there is no agent"),
    ):
        with pytest.raises(AgentError, match=words):
            client._ask(call, b"x" * size, Status, SECONDS)


def test_an_error_behind_messages_comes_with_its_words_and_its_reason() -> None:
    def answer(_body: bytes, _principal: str) -> Iterator[bytes]:
        yield b"x" * AT_ONCE_BYTES
        raise AgentError("the log was deleted", Reason.GONE)

    with served({Call.SCAN: answer}) as address:
        client = AgentClient(address)
        messages = client._messages(Call.SCAN, b"", SECONDS)
        assert len(next(messages)) == AT_ONCE_BYTES
        with pytest.raises(AgentError, match="the log was deleted") as refused:
            next(messages)
        assert refused.value.reason == Reason.GONE
        client.close()


class Held:
    """An answer that waits until the test lets it go on."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.begun = threading.Semaphore(0)

    def answer(self, _body: bytes, _principal: str) -> Iterator[bytes]:
        self.begun.release()
        self.go_on.wait(SECONDS)
        yield b"{}"

    def wait(self, number: int) -> None:
        for _ in range(number):
            assert self.begun.acquire(timeout=SECONDS)


def test_a_call_has_a_moment_to_end_when_its_agent_ends() -> None:
    held = Held()
    server = AgentServer({Call.BATCH: held.answer}, Address("127.0.0.1", 0))
    client = AgentClient(str(server.address))
    with ThreadPoolExecutor(2) as pool:
        call = pool.submit(client._one, Call.BATCH, b"", SECONDS)
        held.wait(1)
        end = pool.submit(server.close, SECONDS)
        try:
            until("nobody else is taken", lambda: not answers_at(server.address))
        finally:  # else the pool waits for the call
            held.go_on.set()
        assert call.result(SECONDS) == b"{}"
        end.result(SECONDS)
    client.close()


def answers_at(address: Address) -> bool:
    try:
        socket.create_connection((address.host, address.port), SECONDS).close()
    except ConnectionError:  # refused, or reset where it stops to listen in this moment
        return False
    return True


def test_a_call_counts_for_its_token_as_long_as_a_thread_works_for_it() -> None:
    """Its client may be gone: else one token would keep all threads."""
    held = Held()
    server = AgentServer({Call.BATCH: held.answer}, Address("127.0.0.1", 0))
    for _ in range(PRINCIPALS_CALLS):
        with socket.create_connection((server.address.host, server.address.port), SECONDS) as gone:
            gone.sendall(b"POST /calls/batch HTTP/1.0\r\nContent-Length: 0\r\n\r\n")
            held.wait(1)
    client = AgentClient(str(server.address))
    with pytest.raises(AgentError, match=f"{PRINCIPALS_CALLS} calls with this token"):
        client._one(Call.BATCH, b"", SECONDS)
    held.go_on.set()
    until("its calls are over", lambda: is_answered(client))
    client.close()
    server.close()


def test_a_call_whose_message_does_not_come_counts_no_longer_than_its_connection() -> None:
    with served({Call.BATCH: lambda _body, _principal: iter([b"{}"])}) as address:
        where, client = Address.parse(address), AgentClient(address)
        for _ in range(PRINCIPALS_CALLS):
            with socket.create_connection((where.host, where.port), SECONDS) as gone:
                gone.sendall(b"POST /calls/batch HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
                assert gone.recv(100).startswith(b"HTTP/1.1 100 ")
        until("its calls are over", lambda: is_answered(client))
        client.close()


def is_answered(client: AgentClient) -> bool:
    try:
        return client._one(Call.BATCH, b"", SECONDS) == b"{}"
    except AgentError:
        return False


def test_a_job_that_speaks_grpc_is_refused_and_named_in_the_log_once(agent: Agent, caplog: pytest.LogCaptureFixture) -> None:
    with agent.served() as address:
        where = Address.parse(address)
        for _ in range(3):
            with socket.create_connection((where.host, where.port), SECONDS) as job:
                job.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
                job.shutdown(socket.SHUT_WR)
                assert job.makefile("rb").read().startswith(b"HTTP/1.1 505 ")
    assert [line for line in caplog.messages if "upgrade the job" in line] == [
        "refused: HTTP/2 is what jobs of protocol 4 speak, upgrade the job"
    ]


def test_an_agent_that_speaks_grpc_is_to_be_upgraded() -> None:
    """As it was: settings, and that it goes away."""
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(AgentClient(f"127.0.0.1:{listening.getsockname()[1]}").status)
        job, _ = listening.accept()
        with job:
            assert job.recv(4)
            job.sendall(bytes(3) + b"\x04" + bytes(5) + b"\0\0\x08\x07" + bytes(9) + bytes([0, 0, 0, 11]))
            job.shutdown(socket.SHUT_WR)
            with pytest.raises(AgentError, match=r"it speaks gRPC.*upgrade the agent") as refused:
                asked.result(SECONDS)
        assert refused.value.reason == Reason.PROTOCOL
