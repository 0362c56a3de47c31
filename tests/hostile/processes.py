"""A real agent under attack, and what it costs its machine."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streaming.errors import AgentError
from streaming.spark.client.address_lookup import ClientFiles
from streaming.spark.client.agent_client import AgentClient
from tests.ports import free_ports
from tests.processes import Segtail, segtail, until

TOKEN, STRANGERS_TOKEN = "t" * 32, "s" * 32


class Attacked:
    """An agent with two tokens: the job's, and one of another name that a stranger has."""

    def __init__(self, process: Segtail, address: str, directory: Path) -> None:
        self.process, self.address, self._directory = process, address, directory

    @property
    def pid(self) -> int:
        (found,) = self.process.family
        return found.pid

    def client(self, token: str = TOKEN) -> AgentClient:
        """A client with this token."""
        file = self._directory / f"{token[:4]}.token"
        file.write_text(token)
        file.chmod(0o600)
        return AgentClient(f"http://{self.address}", ClientFiles(token_file=file))

    def status(self, name: str) -> int:
        """A figure of /proc/PID/status: ``VmRSS``, ``VmHWM`` in bytes, ``Threads``."""
        line = next(line for line in Path(f"/proc/{self.pid}/status").read_text().splitlines() if line.startswith(f"{name}:"))
        words = line.split()
        return int(words[1]) * (1024 if words[2:] == ["kB"] else 1)

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def forget_peak(self) -> None:
        """From now on, ``VmHWM`` is the most that it has had since."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")


@contextmanager
def attacked_agent(log_dirs: str, directory: Path) -> Iterator[Attacked]:
    """An agent that answers."""
    (port,) = free_ports(1)
    address = f"127.0.0.1:{port}"
    tokens = directory / "tokens"
    tokens.write_text(f"job {TOKEN}\nstranger {STRANGERS_TOKEN}\n")
    tokens.chmod(0o600)
    options = ("--listen", address, "--name", "a1", "--token-file", tokens)
    with segtail("agent", "--log-dirs", log_dirs, *options, stated=directory / "agent.said") as process:
        attacked = Attacked(process, address, directory)
        client = attacked.client()

        def answers() -> bool:
            try:
                return bool(client.status())
            except AgentError:
                return False

        until("the agent answers", answers)
        client.close()
        yield attacked
