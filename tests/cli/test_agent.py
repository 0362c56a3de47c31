"""`segtail agent` as a process of its own."""

import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from streaming.agent.client import AgentClient
from streaming.errors import AgentError
from tests.builders import batch, log_dir, partition
from tests.processes import SEGTAIL, Segtail, segtail, until


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    made = log_dir(tmp_path)
    partition(made, "orders").append(batch(3))
    return made.path


def address(agent: Segtail) -> str | None:
    found = re.search(r"message=\"agent listens\" address=(\S+)", agent.said)
    return found[1] if found else None


def test_listens_until_it_is_told_to_end(tmp_path: Path, disk: Path) -> None:
    arguments = ("agent", "--log-dirs", disk, "--journal", tmp_path / "j", "--listen", "127.0.0.1:0", "--name", "n1")
    with segtail(*arguments, said=tmp_path / "said") as agent:
        client = AgentClient(until("it listens", lambda: address(agent)))
        assert client.status().agent == "n1"
        agent.terminate()
        assert agent.wait() == 0
        with pytest.raises(AgentError):
            client.status()
    assert "Traceback" not in agent.said


def test_child_tells_its_address_and_ends_with_its_parent(tmp_path: Path, disk: Path) -> None:
    command = [SEGTAIL, "agent", "--child", "--log-dirs", disk, "--journal", tmp_path / "j", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        assert AgentClient(agent.stdout.readline().strip()).status().brokers == [1]
        agent.stdin.close()
        assert agent.wait(10) == 0


def test_child_that_waits_for_its_journal_ends_with_its_parent(tmp_path: Path, disk: Path) -> None:
    held = ("agent", "--log-dirs", disk, "--journal", tmp_path / "j", "--listen", "127.0.0.1:0")
    with segtail(*held, said=tmp_path / "said") as agent:
        until("it listens", lambda: address(agent))
        command = [SEGTAIL, *held, "--child"]
        assert subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout == b""


def test_journal_has_one_holder(tmp_path: Path, disk: Path) -> None:
    arguments = ("agent", "--log-dirs", disk, "--journal", tmp_path / "j", "--listen", "127.0.0.1:0")
    with segtail(*arguments, said=tmp_path / "said") as agent:
        until("it listens", lambda: address(agent))
        with segtail(*arguments, said=tmp_path / "second") as second:
            assert second.wait() == 1
            assert (
                second.said
                == f"segtail: error: the journal in {tmp_path / 'j'} is held by another agent: stop it, or name another directory\n"
            )


def test_killed_agent_leaves_its_journal_free(tmp_path: Path, disk: Path) -> None:
    arguments = ("agent", "--log-dirs", disk, "--journal", tmp_path / "j", "--listen", "127.0.0.1:0")
    for _ in range(2):
        with segtail(*arguments, said=tmp_path / "said") as agent:
            until("it listens", lambda: address(agent))
            agent.kill()
            assert agent.wait() == -signal.SIGKILL


@pytest.mark.parametrize("listen", ["nonsense", "127.0.0.1:99999", "0.0.0.0:8815"])
def test_address_that_will_not_do(tmp_path: Path, disk: Path, listen: str) -> None:
    with segtail("agent", "--log-dirs", disk, "--journal", tmp_path / "j", "--listen", listen, said=tmp_path / "said") as agent:
        assert agent.wait() == 2
        assert agent.said.startswith(f"segtail: error: --listen {listen}: ")
        assert agent.said.count("\n") == 1


def test_port_in_use(tmp_path: Path, disk: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        listen = f"127.0.0.1:{server.getsockname()[1]}"
        with segtail("agent", "--log-dirs", disk, "--journal", tmp_path / "j", "--listen", listen, said=tmp_path / "said") as agent:
            assert agent.wait() == 2
            assert f"segtail: error: cannot listen on {listen}" in agent.said
            assert "Traceback" not in agent.said
