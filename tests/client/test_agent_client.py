"""A connection to an agent is used by several threads, each of which may let it go."""

import subprocess
import sys

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


def test_a_connection_that_one_thread_closes_does_not_end_the_process_in_which_others_call() -> None:
    (nobody,) = free_ports(1)
    done = subprocess.run([sys.executable, "-c", CALLING_AND_CLOSING, str(nobody)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "all have ended\n"), done.stderr
