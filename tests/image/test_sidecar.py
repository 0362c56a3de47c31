"""A container in a broker's pod goes on whatever becomes of the agent in it, and ends when it is told to."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from helm.sidecar import LONGEST_PAUSE_SECONDS, STEADY_SECONDS, pause_after
from tests.builders import batch, log_dir, partition
from tests.processes import reap, until

ROOT = Path(__file__).resolve().parents[2]
SEGTAIL = Path(sys.executable).parent / "segtail"


class Container:
    """A sidecar with what it has reported."""

    def __init__(self, process: subprocess.Popen[bytes], stated: Path) -> None:
        self.process, self._stated = process, stated

    @property
    def stated(self) -> str:
        return self._stated.read_text()

    def count(self, words: str) -> int:
        return self.stated.count(words)

    def started(self) -> list[int]:
        """The processes that it runs."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(each) for each in children.split()]


@contextmanager
def sidecar(folder: Path, *words: object) -> Iterator[Container]:
    with (folder / "stated").open("wb") as stderr:
        command = [sys.executable, ROOT / "helm" / "sidecar.py", *map(str, words)]
        process = subprocess.Popen(command, stderr=stderr, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        yield Container(process, folder / "stated")
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        reap(process)


def agent(folder: Path) -> tuple[object, ...]:
    disk = log_dir(folder)
    partition(disk, "orders").append(batch(3))
    return (SEGTAIL, "agent", "--log-dirs", disk.path, "--listen", "127.0.0.1:0")


@pytest.mark.parametrize("whole_group", [True, False])
def test_an_agent_that_is_killed_is_started_again_and_ends_with_its_container(tmp_path: Path, whole_group: bool) -> None:
    with sidecar(tmp_path, *agent(tmp_path)) as container:
        until("the agent listens", lambda: container.count("agent listens") == 1, saw=lambda: container.stated)
        (first,) = container.started()
        os.kill(first, signal.SIGKILL)
        until("the next one listens", lambda: container.count("agent listens") == 2, saw=lambda: container.stated)
        assert "sidecar: it was killed by signal 9" in container.stated
        assert container.process.poll() is None

        (os.killpg if whole_group else os.kill)(container.process.pid, signal.SIGTERM)

        reap(container.process)
        assert container.process.returncode == 0
        assert container.count("agent stops") == 1, container.stated


def test_an_agent_that_refuses_its_configuration_leaves_the_container_running(tmp_path: Path) -> None:
    with sidecar(tmp_path, *agent(tmp_path), "--token-file", tmp_path / "missing") as container:
        until("it was started again", lambda: container.count("sidecar: it ended with status 2") >= 2, saw=lambda: container.stated)
        assert "missing" in container.stated
        assert "goes on and starts it again in 1 s" in container.stated
        assert container.process.poll() is None

        container.process.terminate()  # in a pause

        reap(container.process)
        assert container.process.returncode == 0


def test_a_command_that_cannot_be_started_leaves_it_running_too(tmp_path: Path) -> None:
    with sidecar(tmp_path, tmp_path / "no-such-program") as container:
        until("it is reported", lambda: "sidecar: it cannot be started" in container.stated, saw=lambda: container.stated)
        container.process.terminate()
        reap(container.process)
        assert container.process.returncode == 0


def test_a_command_that_does_not_end_is_killed(tmp_path: Path) -> None:
    deaf = "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', file=sys.stderr, flush=True); signal.pause()"
    short = f"import helm.sidecar as s; s.END_SECONDS = 0.1; s.keep([{sys.executable!r}, '-c', {deaf!r}])"
    with (tmp_path / "stated").open("wb") as stderr:
        process = subprocess.Popen([sys.executable, "-c", short], stderr=stderr, cwd=ROOT)
    container = Container(process, tmp_path / "stated")
    until("it runs", lambda: "deaf" in container.stated)
    (running,) = container.started()
    process.terminate()
    reap(process)
    assert process.returncode == 0
    assert not Path(f"/proc/{running}").exists()


def test_pauses_grow_and_a_steady_run_begins_anew() -> None:
    pauses = [0.0]
    for _ in range(11):
        pauses.append(pause_after(pauses[-1], ran=1.0))
    assert pauses[1:5] == [1, 2, 4, 8]
    assert pauses[-1] == LONGEST_PAUSE_SECONDS
    assert pause_after(LONGEST_PAUSE_SECONDS, ran=STEADY_SECONDS) == 1
