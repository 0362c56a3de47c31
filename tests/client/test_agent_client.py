"""Connections to agents: several threads use one, each of which may let it go, and agents take them away."""

import subprocess
import sys
from pathlib import Path

import pytest

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
agent = Agent(log.directory.parent)
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
_GONE = 40


@pytest.mark.slow
def test_calls_to_an_agent_that_has_just_gone_end(tmp_path: Path) -> None:
    """They are not made again and again, and none waits for its deadline."""
    (port,) = free_ports(1)
    command = [sys.executable, "-c", AGENTS_THAT_GO, str(tmp_path), str(port), str(_GONE), str(SECONDS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == f"{3 * _GONE} calls were refused\n", done.stderr
