"""What reaches an agent's port: strangers without a token cost nothing, and whoever has one disturbs only its own consumer."""

import http.client
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from streaming.broker.agent.call_server import CONNECTIONS as MOST
from streaming.broker.agent.call_server import CONNECTIONS_OF_CLIENT as MOST_OF_CLIENT
from streaming.broker.agent.call_server import THREADS
from streaming.broker.protocol.consumer_messages import PlanRequest, Range, Register
from streaming.common.units import Address
from streaming.errors import AgentError
from streaming.spark.client.agent_client import AgentClient
from tests.faults.writing import WritingBroker, writing_broker
from tests.hostile.http1 import CALL, Flood, bare_call
from tests.hostile.processes import STRANGERS_TOKEN, Attacked, attacked_agent
from tests.processes import until

MIB = 1 << 20
EVER_MS = 10**12


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[WritingBroker]:
    with writing_broker(tmp_path / "broker") as broker:
        yield broker


@pytest.fixture
def agent(broker: WritingBroker, tmp_path: Path) -> Iterator[Attacked]:
    with attacked_agent(broker.log_dirs, tmp_path) as agent:
        yield agent
        agent.process.terminate()
        assert agent.process.wait() == 0, agent.process.stated


def call(agent: Attacked, message: bytes, token: str = "") -> int:
    """The status of a call with a message of any size, 0 where the connection is cut."""
    where = Address.parse(agent.address)
    connection = http.client.HTTPConnection(where.host, where.port, timeout=60)
    try:
        connection.request("POST", "/calls/status", message, {"authorization": f"Bearer {token}"} if token else {})
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


@pytest.mark.slow
@pytest.mark.parametrize("token", ["", "w" * 32, STRANGERS_TOKEN])
def test_a_large_message_costs_no_memory(agent: Attacked, token: str) -> None:
    agent.forget_peak()
    before = agent.status("VmRSS")
    with ThreadPoolExecutor(4) as pool:
        codes = list(pool.map(lambda _: call(agent, b"x" * (128 * MIB), token), range(4)))
    assert 200 not in codes
    assert agent.status("VmHWM") - before < 64 * MIB
    assert agent.client().status().agent == "a1"


@pytest.mark.slow
def test_connections_that_send_nothing_are_few_and_end(agent: Attacked) -> None:
    """A client that is connected goes on meanwhile; others come in again when the silent ones are gone."""
    client, address = agent.client(), Address.parse(agent.address)
    client.status()
    descriptors, before = agent.descriptors(), agent.status("VmRSS")
    with ExitStack() as silent:
        for _ in range(4 * MOST):
            silent.enter_context(socket.create_connection((address.host, address.port)))
        assert client.status().agent == "a1"
        assert agent.descriptors() - descriptors <= MOST_OF_CLIENT + 16
        assert agent.status("VmRSS") - before < 64 * MIB
    until("a new client is answered", lambda: answered(agent.client().status))


def test_strangers_whose_calls_are_refused_displace_each_other_and_no_job(agent: Attacked, broker: WritingBroker) -> None:
    """From the job's own address."""
    job = Reader(agent.client(), "job")
    until("the job has begun", job.step)
    until("it has all", lambda: not job.step() and job.appended == sum(each.appended.bytes for each in broker.facts()))
    with ThreadPoolExecutor(1) as pool, ExitStack() as strangers:
        plan = pool.submit(job.client.plan, PlanRequest("job", "run", job.journal, job.seq, None, 30_000))
        for _ in range(2 * MOST_OF_CLIENT):
            assert b" 401 " in strangers.enter_context(bare_call(agent.address))
        broker.write_on(1_000)
        assert plan.result().seq > job.seq


@pytest.mark.slow
@pytest.mark.parametrize("frame", [b"\r\n", b"x", CALL + b"Content-Length: 0\r\n\r\n"])
def test_a_connection_that_never_pauses_holds_up_nobody(agent: Attacked, frame: bytes) -> None:
    """Bytes that mean nothing, and calls without a token: while there were more to read, nobody else was."""
    client = agent.client()
    client.status()
    with Flood(agent.address, frame) as flood:
        until("it is under way", lambda: flood.sent)
        for _ in range(10):
            assert client.status().agent == "a1"
        newcomer = agent.client()
        assert newcomer.status().agent == "a1"


def answered(ask: Callable[[], object]) -> bool:
    try:
        ask()
    except AgentError:
        return False
    return True


def test_plans_that_wait_for_ever_keep_no_threads(agent: Attacked) -> None:
    job, strangers = Reader(agent.client(), "job"), [agent.client(STRANGERS_TOKEN) for _ in range(8)]
    until("the job has begun", job.step)
    for number in range(8):
        strangers[0].register(Register(f"stranger-{number}", "latest", resumed=False, run="r"))
    with ThreadPoolExecutor(300) as pool:
        waiting: list[Future[object]] = [
            pool.submit(quietly, lambda n=n: strangers[n % 8].plan(PlanRequest(f"stranger-{n % 8}", "r", "", -1, None, EVER_MS)))  # type: ignore[misc]
            for n in range(300)
        ]
        for _ in range(20):
            assert job.client.status().agent == "a1"
        assert agent.status("Threads") <= THREADS + 32
        for stranger in strangers:
            stranger.close()
    assert all(each.done() for each in waiting)
    job.catch_up()


def quietly(ask: Callable[[], object]) -> object:
    try:
        return ask()
    except AgentError as error:
        return error


class Reader:
    """A job, as far as an agent sees it."""

    def __init__(self, client: AgentClient, name: str) -> None:
        self.client, self.name = client, name
        self.journal, self.seq = "", -1
        self.ends: dict[tuple[str, int], int] = {}  # by topic and partition
        self.appended = 0
        self.journals: set[str] = set()

    def step(self) -> bool:
        """Plan and read; returns whether there was anything."""
        plan = self.client.plan(PlanRequest(self.name, "run", self.journal, self.seq, None, 0))
        if plan.seq < 0:
            self.client.register(Register(self.name, "earliest", resumed=bool(self.journal), run="run"))
            return False
        if plan.seq == plan.after:
            return False
        table = self.client.read(Range(self.name, "run", plan.journal, plan.after, plan.seq))
        for row in table.to_pylist():
            log = row["topic"], row["partition"]
            # a coordinator's log may come again for another job
            if row["kind"] == "appended" and row["base_offset"] >= self.ends.get(log, 0):
                self.ends[log] = row["next_offset"]
                self.appended += row["bytes"]
        self.journals.add(plan.journal)
        self.journal, self.seq = plan.journal, plan.seq
        return True

    def catch_up(self) -> None:
        while self.step():
            pass


@pytest.mark.slow
def test_foreign_plans_change_nothing_of_a_job(agent: Attacked, broker: WritingBroker) -> None:
    """With the journal's name as the status tells it, with an id that is made up, and with the job's own id."""
    job, stranger = Reader(agent.client(), "job"), agent.client(STRANGERS_TOKEN)
    until("the job has begun", job.step)
    for number in range(60):
        journal = stranger.status().journal
        quietly(lambda journal=journal: stranger.plan(PlanRequest("", "r", journal, 10**9, None, 0)))  # type: ignore[misc]
        quietly(lambda journal=journal: stranger.plan(PlanRequest("who", "r", journal, 10**9, None, 0)))  # type: ignore[misc]
        for name in (job.journal, journal):
            quietly(lambda name=name, run=f"r{number}": stranger.plan(PlanRequest("job", run, name, 10**9, None, 0)))  # type: ignore[misc]
            quietly(lambda: stranger.register(Register("job", "latest", resumed=False, run="theirs")))
            quietly(lambda name=name: stranger.read(Range("job", "run", name, 0, 10**12)))  # type: ignore[misc]
        if number % 10 == 0:
            broker.write_on(50)
            job.catch_up()
    until("the job has it all", lambda: job.step() or job.appended == sum(each.appended.bytes for each in broker.facts()))
    assert len(job.journals) == 1


def test_made_up_consumers_get_no_room_of_others(agent: Attacked, broker: WritingBroker) -> None:
    job, stranger = Reader(agent.client(), "job"), agent.client(STRANGERS_TOKEN)
    until("the job has begun", job.step)
    refused = [quietly(lambda n=n: stranger.register(Register(f"c{n}", "earliest", resumed=False, run="r"))) for n in range(200)]  # type: ignore[misc]
    assert sum(isinstance(each, AgentError) and each.reason == "busy" for each in refused) > 150
    broker.write_on(100)
    another = Reader(agent.client(), "another")
    until("another job begins", another.step)
    until("the job has it all", lambda: job.step() or job.appended == sum(each.appended.bytes for each in broker.facts()))
