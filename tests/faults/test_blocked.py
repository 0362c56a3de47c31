"""A log dir whose file system does not answer, in a real agent: the others go on, the file is named, and SIGTERM still ends it.

`tests.unanswering` stands for the file: to open it waits, as a call into a dead disk waits for ever.
"""

import re
import sys
import urllib.request
from pathlib import Path

import pytest

from streaming.spark.client.agent_client import AgentClient
from tests.builders import batch, log_dir, partition
from tests.faults.consuming import address, registered
from tests.limits import SECONDS
from tests.processes import Segtail, segtail, until
from tests.unanswering import Unanswering

LITTLE_TIME = "from streaming.broker.agent import process; process.END_SECONDS = 0.1"
"""An agent has little time to end, though nothing that waits in a call comes back."""


def running(*first: str) -> tuple[str, ...]:
    """How segtail is run after some lines of code."""
    return (sys.executable, "-c", f"import sys; del sys.argv[0]; {'; '.join(first)}; from streaming.terminal.cli.app import main; main()")


def health(agent: Segtail) -> str:
    found = re.search(r"message=\"agent metrics are served\" url=(\S+)", agent.stated)
    assert found is not None
    with urllib.request.urlopen(f"{found[1]}/-/healthy", timeout=SECONDS) as answer:
        return str(answer.read().decode())


@pytest.mark.slow
def test_a_file_that_does_not_answer_holds_up_its_log_dir_alone(tmp_path: Path) -> None:
    good, bad = log_dir(tmp_path / "good"), log_dir(tmp_path / "bad")
    first, second = partition(good, "t", 0), partition(bad, "t", 1)
    first.append(batch(1))
    second.append(batch(1))
    file = second.active.path("log")
    unanswering = Unanswering(file, tmp_path / "gate")
    arguments = ("agent", "--log-dirs", f"{good.path},{bad.path}", "--listen", "127.0.0.1:0")
    with segtail(*arguments, "--metrics-listen", "127.0.0.1:0", stated=tmp_path / "said", before=running(unanswering.code)) as agent:
        client = AgentClient(until("it listens", lambda: address(agent)))
        until("the file is named", lambda: [each.path for each in registered(client).blocked] == [str(file)])
        until("the other log dir is read", lambda: registered(client).total == first.active.size)
        first.append(batch(1))
        until("it goes on being read", lambda: registered(client).total == first.active.size)
        up = {each.log_dir: each.up for each in registered(client).log_dirs}
        assert up == {str(good.path): True, str(bad.path): False}
        assert str(file) in health(agent)
        unanswering.answer()
        both = first.active.size + second.active.size
        until("the log dir is watched again", lambda: registered(client).total == both)
        assert registered(client).blocked == []
        agent.terminate()
        assert agent.wait() == 0
    assert "Traceback" not in agent.stated


@pytest.mark.slow
def test_an_agent_that_waits_in_a_call_ends_when_it_is_asked_to(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, "t")
    log.append(batch(1))
    unanswering = Unanswering(log.active.path("log"), tmp_path / "gate")
    arguments = ("agent", "--log-dirs", disk.path, "--listen", "127.0.0.1:0")
    with segtail(*arguments, stated=tmp_path / "said", before=running(unanswering.code, LITTLE_TIME)) as agent:
        client = AgentClient(until("it listens", lambda: address(agent)))
        until("the file is named", lambda: registered(client).blocked)
        agent.terminate()
        assert agent.wait() == 0
