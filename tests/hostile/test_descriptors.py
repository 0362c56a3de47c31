"""Strangers who connect until no descriptor is free, to a real agent: its log dirs stay up, it says what it lacks, and it recovers."""

import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from streaming.broker.protocol.consumer_messages import Register
from streaming.broker.protocol.status_messages import Status
from streaming.errors import AgentError
from streaming.spark.client.agent_client import AgentClient
from tests.builders import batch, log_dir, partition
from tests.faults.consuming import address
from tests.processes import segtail, until

LIMIT = 130
STRANGERS = 400


@pytest.mark.slow
def test_log_dirs_stay_up_while_strangers_take_all_descriptors(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    logs = [partition(disk, "t", number) for number in range(5)]
    for log in logs:
        log.append(batch(1))
    arguments = ("agent", "--log-dirs", disk.path, "--listen", "127.0.0.1:0")
    with segtail(*arguments, stated=tmp_path / "said", before=("prlimit", f"--nofile={LIMIT}:{LIMIT}")) as agent, ExitStack() as strangers:
        where = until("it listens", lambda: address(agent))
        client = AgentClient(where)
        seen: list[Status] = []

        def read() -> bool:
            try:
                seen.append(client.register(Register("job", "earliest", False)))
            except AgentError:
                return False
            return seen[-1].total == sum(log.active.size for log in logs)

        until("everything is read", read)
        host, _, port = where.rpartition(":")
        for _ in range(STRANGERS):
            stranger = strangers.enter_context(socket.socket())
            stranger.settimeout(5)
            stranger.connect((host, int(port)))
        until("it says what it lacks", lambda: read() and "Too many open files" in agent.stated)
        for log in logs:
            log.append(batch(1))
        until("what is appended is read", read)
        assert "log dir cannot be" not in agent.stated
        assert all(each.up for status in seen for each in status.log_dirs)
        strangers.close()
        # strangers give way to each other, so that it may have been short for connections alone
        until("it recovers", lambda: read() and ("too many open files:" not in agent.stated or "files can be opened again" in agent.stated))
        agent.terminate()
        assert agent.wait() == 0
    assert "Traceback" not in agent.stated
