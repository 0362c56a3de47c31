"""Connections to agents: several threads use one, each of which may let it go, and agents take them away."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest

from streaming.broker.protocol.agent_calls import pieces
from streaming.broker.protocol.excerpt_messages import Excerpts
from streaming.errors import AgentError
from streaming.spark.client.agent_client import AgentClient
from tests.limits import SECONDS
from tests.ports import free_ports

CALLING_AND_CLOSING = """\
import sys
import threading
from streaming.spark.client.agent_client import AgentClient
from streaming.errors import AgentError

client, over = AgentClient(f"127.0.0.1:{sys.argv[1]}"), threading.Event()

def ask():
    for _ in range(300):
        try:
            client.status()
        except AgentError:
            pass

def close():
    while not over.is_set():
        client.close()

asking, closing = [threading.Thread(target=ask) for _ in range(4)], threading.Thread(target=close)
for each in (*asking, closing):
    each.start()
for each in asking:
    each.join()
over.set()
closing.join()
print("all have ended")
"""


@pytest.mark.slow
def test_a_connection_that_one_thread_closes_does_not_end_the_process_in_which_others_call() -> None:
    (nobody,) = free_ports(1)
    done = subprocess.run([sys.executable, "-c", CALLING_AND_CLOSING, str(nobody)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "all have ended\n"), done.stderr


AGENTS_THAT_GO = """\
import sys
import threading
from pathlib import Path
from streaming.spark.client.agent_client import AgentClient
from streaming.errors import AgentError
from tests.agents import Agent
from tests.builders import batch, log_dir, partition

directory, port, times = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
log = partition(log_dir(directory), "orders")
log.append(batch(3))
agent = Agent(log.directory.parent, journal=directory / "journal")
ended = []

def ask():
    for _ in range(times):
        with agent.served(port=port) as address:
            client = AgentClient(address)
            client.status()
        for _ in range(3):
            try:
                client.status()
            except AgentError as error:
                ended.append(error.reason)

asking = threading.Thread(target=ask, daemon=True)  # a call that does not end must not keep the process
asking.start()
asking.join(float(sys.argv[4]))
print(f"{len(ended)} calls were refused")
"""
_GONE = 400
"""So often, one of them hangs in most runs where gRPC is left to make calls again that a connection took away."""


@pytest.mark.slow
def test_calls_to_an_agent_that_has_just_gone_end(tmp_path: Path) -> None:
    """Not even their deadline ended them: a job did not go on."""
    (port,) = free_ports(1)
    command = [sys.executable, "-c", AGENTS_THAT_GO, str(tmp_path), str(port), str(_GONE), str(SECONDS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == f"{3 * _GONE} calls were refused\n", done.stderr


class _Taken(grpc.GenericRpcHandler):
    """Takes calls as an agent whose connection ends: so many of them before, or after, a piece of the answer."""

    def __init__(self, times: int, *, in_the_middle: bool = False) -> None:
        self.asked, self._times, self._in_the_middle = 0, times, in_the_middle

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes]":
        return grpc.unary_stream_rpc_method_handler(self._answer)

    def _answer(self, _: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        self.asked += 1
        whole = list(pieces(Excerpts(excerpts=[], last=True).encode()))
        if self.asked <= self._times:
            if self._in_the_middle:
                yield from whole
            context.abort(grpc.StatusCode.UNAVAILABLE, "Stream removed (GOAWAY received; Error code: 0)")
        yield from whole


@contextmanager
def _served(taken: _Taken) -> Iterator[AgentClient]:
    server = grpc.server(ThreadPoolExecutor(1), handlers=[taken])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield AgentClient(f"127.0.0.1:{port}")
    finally:
        server.stop(0).wait()


def test_a_call_that_a_connection_took_away_is_made_once_more() -> None:
    """An agent ends its connections now and then, and a call may be on its way."""
    with _served(taken := _Taken(1)) as client:
        assert (client.topics(), taken.asked) == ([], 2)


@pytest.mark.parametrize(("taken", "asked"), [(_Taken(2), 2), (_Taken(1, in_the_middle=True), 1)])
def test_a_call_that_fails_again_or_in_its_answer_has_failed(taken: _Taken, asked: int) -> None:
    with _served(taken) as client, pytest.raises(AgentError, match="GOAWAY"):
        client.topics()
    assert taken.asked == asked
