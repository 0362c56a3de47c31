"""The doctor as a command: what it prints, with which exit status, and what it leaves alone."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

from streaming import __version__
from streaming.broker.protocol.status_json import AgentState, Status
from tests.builders import batch, log_dir, partition
from tests.ports import free_ports
from tests.serving import answering

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "api.schema.json").read_text())

BLOCKED = """
import sys
from collections.abc import Iterator
for name in ("pyspark", "pandas", "py4j", "jinja2"):
    sys.modules[name] = None
from pathlib import Path
from streaming.broker.disk import broker_processes
broker_processes.PROC = Path("/nowhere")
from streaming.terminal.cli.app import main
main()
"""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    made = log_dir(tmp_path)
    partition(made, "t").append(batch(3))
    yield made.path
    made.release()


def doctor(*arguments: object, files: int = 4096, environ: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run it where no Spark can be imported, with a limit on open files."""
    return subprocess.run(
        [sys.executable, "-c", BLOCKED, "doctor", "--listen", "127.0.0.1:0", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | (environ or {}),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (min(files, 1024), files)),
    )


def test_everything_fine_and_nothing_changed(disk: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    done = doctor("--log-dirs", disk, "--checkpoint", tmp_path / "new", environ={"PATH": "", "JAVA_HOME": ""})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0].split() == ["state", "check", "what"]
    assert done.stdout.splitlines()[-1] == "0 faults, 0 warnings, 0 not known"
    assert sorted(tmp_path.rglob("*")) == before


def test_log_dirs_that_are_given_and_not_there_are_not_called_not_given(tmp_path: Path) -> None:
    done = doctor("--log-dirs", tmp_path / "nonexist", "--json")
    found = {row["check"]: row for row in json.loads(done.stdout)["rows"]}
    why = f"not checked: log dir {tmp_path}/nonexist does not exist: name a broker's log.dirs"
    assert (done.returncode, found["permissions"]["what"]) == (3, why)
    assert found["open files"]["what"] == f"{why}; an agent holds a file open for each log"


def test_a_fault_with_its_command(disk: Path, tmp_path: Path) -> None:
    done = doctor("--log-dirs", disk, "--checkpoint", tmp_path, files=300)
    assert done.returncode == 3
    assert "open files: sudo prlimit --pid $$ --nofile=2048:2048" in done.stdout.splitlines()
    page = json.loads(doctor("--log-dirs", disk, "--checkpoint", tmp_path, "--json", files=300).stdout)
    jsonschema.Draft202012Validator({"$defs": SCHEMA["$defs"], **SCHEMA["commands"]["segtail doctor"]}).validate(page)
    assert [each["check"] for each in page["rows"] if each["state"] == "fault"] == ["open files"]
    assert (page["version"], page["faults"], page["unknown"]) == (__version__, 1, len(page["doubts"]))


def test_log_dirs_that_are_none_and_a_job_that_is_away(tmp_path: Path) -> None:
    done = doctor("--log-dirs", tmp_path, "--checkpoint", tmp_path / "new", "--job", "http://127.0.0.1:1")
    assert done.returncode == 3
    assert "is not a Kafka log dir" in done.stdout
    assert "cannot be asked: " in done.stdout


def test_what_keeps_an_agent_away_is_told_once_whoever_has_asked_it(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    why = f"agent at {address}: nobody listens there: is it running?"
    doubts = [f"segtail's agent {address} does not answer: {why}", "who leads is not known"]
    agents = [AgentState(name=address, up=False, problems=["refused"], explanation=why)]
    status = Status(at_ms=0, version="9", ready=True, verdict="", freshness="", agents=agents, doubts=doubts)
    with answering(lambda _: (200, status.encode())) as url:
        asked, both = (doctor("--checkpoint", tmp_path, "--job", url, *more) for more in ((), ("--agents", f"http://{address}")))
    assert [done.stdout.count("nobody listens there") for done in (asked, both)] == [1, 1]
    assert [done.stdout.count("who leads is not known") for done in (asked, both)] == [1, 1]
