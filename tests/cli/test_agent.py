"""`segtail agent` as a process of its own."""

import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path

import pytest

from streaming.broker.protocol.consumer_messages import Register
from streaming.common.definitions.agent_metrics import BUILD
from streaming.common.definitions.sections import SECTIONS, Section
from streaming.errors import AgentError
from streaming.spark.client.address_lookup import ClientFiles
from streaming.spark.client.agent_client import AgentClient
from tests.builders import batch, log_dir, partition
from tests.certificates import TOKEN, Authority, token_file
from tests.commands import run_command
from tests.limits import SECONDS
from tests.processes import SEGTAIL, Sample, Segtail, read_page, segtail, until
from tests.scrub.real import flip
from tests.tables import each_row


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    made = log_dir(tmp_path)
    partition(made, "orders").append(batch(3))
    return made.path


def address(agent: Segtail) -> str | None:
    found = re.search(r"message=\"agent listens\" address=(\S+)", agent.stated)
    return found[1] if found else None


def test_listens_until_it_is_reported_to_end(tmp_path: Path, disk: Path) -> None:
    arguments = ("agent", "--log-dirs", disk, "--listen", "127.0.0.1:0", "--name", "n1")
    with segtail(*arguments, stated=tmp_path / "said") as agent:
        client = AgentClient(until("it listens", lambda: address(agent)))
        assert client.status().agent == "n1"
        assert client.status().scrubs == []  # it was given no rate for that
        agent.terminate()
        assert agent.wait() == 0
        with pytest.raises(AgentError):
            client.status()
    assert "Traceback" not in agent.stated


@pytest.mark.slow
def test_a_log_dir_that_fails_does_not_keep_an_agent_from_starting_and_is_taken_in_when_it_comes(tmp_path: Path, disk: Path) -> None:
    empty = tmp_path / "d1"
    empty.mkdir()
    dirs = f"{disk},{empty}"
    arguments = ("agent", "--log-dirs", dirs, "--listen", "127.0.0.1:0", "--name", "n1")
    with segtail(*arguments, stated=tmp_path / "said") as agent:
        client = AgentClient(until("it listens", lambda: address(agent)))
        client.register(Register("job", "earliest", resumed=False))

        def up() -> list[tuple[int, bool]]:
            return [(each.broker, each.up) for each in client.status().log_dirs]

        until("it tells of both", lambda: up() == [(1, True), (1, False)])
        assert re.search(rf"log dir cannot be read\S* log_dir={empty} error=.*meta.properties", agent.stated)
        empty.rmdir()
        partition(log_dir(tmp_path, "d1"), "payments").append(batch(2))
        until("both are up", lambda: up() == [(1, True), (1, True)])
        until("its log is watched", lambda: client.status().logs == 2)


def test_child_shows_its_address_and_ends_with_its_parent(tmp_path: Path, disk: Path) -> None:
    command = [SEGTAIL, "agent", "--child", "--log-dirs", disk, "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        assert AgentClient(agent.stdout.readline().strip()).status().brokers == [1]
        agent.stdin.close()
        assert agent.wait(SECONDS) == 0


def test_a_cache_has_one_holder_which_may_be_killed_and_another_agent_goes_without(tmp_path: Path, disk: Path) -> None:
    arguments = ("agent", "--log-dirs", disk, "--listen", "127.0.0.1:0", "--cache", tmp_path / "cache")
    with segtail(*arguments, stated=tmp_path / "first") as first:
        until("it listens", lambda: address(first))
        with segtail(*arguments, stated=tmp_path / "second") as second:
            until("it listens", lambda: address(second))
            assert "scans are not kept" in second.stated
        first.kill()
        assert first.wait() == -signal.SIGKILL
    with segtail(*arguments, stated=tmp_path / "third") as third:
        until("it listens", lambda: address(third))
        assert "scans are not kept" not in third.stated


@pytest.mark.parametrize("listen", ["nonsense", "127.0.0.1:99999", "0.0.0.0:8815"])
def test_address_that_will_not_do(tmp_path: Path, disk: Path, listen: str) -> None:
    done = run_command("agent", "--log-dirs", disk, "--listen", listen)
    assert done.returncode == 2
    assert done.stderr.startswith(f"segtail: error: --listen {listen}: ")
    assert done.stderr.count("\n") == 1


@each_row("word", ["off", "0s"])
def test_an_agent_that_does_not_end_by_itself_can_be_asked_for(tmp_path: Path, disk: Path, word: str) -> None:
    """Taken, so that the next option is what is refused: as it is without the option."""
    options = ("agent", "--log-dirs", disk, "--listen", "nonsense")
    done = run_command(*options, "--let-go-after", word)
    assert (done.returncode, done.stderr) == (2, run_command(*options).stderr)


@each_row("word", ["30", "no", ""])
def test_a_time_to_let_go_after_that_is_none_is_refused(tmp_path: Path, disk: Path, word: str) -> None:
    done = run_command("agent", "--log-dirs", disk, "--listen", "127.0.0.1:0", "--let-go-after", word)
    assert done.returncode == 2
    assert done.stderr.startswith("segtail: error: --let-go-after ")
    assert done.stderr.endswith("or off for an agent that does not end by itself\n")


@each_row("name", ["", "a" * 1001, "kafka\n1", "\x1b[31mred", "bidi\u202e", "not UTF-8: \udcff"])
def test_a_name_that_jobs_refuse_is_refused_at_once(tmp_path: Path, disk: Path, name: str) -> None:
    done = run_command("agent", "--log-dirs", disk, "--listen", "127.0.0.1:0", "--name", name)
    assert done.returncode == 2
    assert done.stderr.startswith("segtail: error: --name ")
    assert "1 to 1000 characters" in done.stderr
    assert done.stderr[:-1].isprintable()


def test_port_in_use(tmp_path: Path, disk: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        listen = f"127.0.0.1:{server.getsockname()[1]}"
        done = run_command("agent", "--log-dirs", disk, "--listen", listen)
    assert done.returncode == 2
    why = "Address already in use; stop the process that uses it, or choose another address with --listen HOST:PORT"
    assert done.stderr == f"segtail: error: cannot listen on {listen}: {why}\n"


def test_a_port_that_is_taken_at_the_last_moment(tmp_path: Path, disk: Path) -> None:
    """Its threads are told to end before they are waited for, here for ever."""
    patient = (
        "from streaming.broker.agent import process; process.END_SECONDS = 1e6; process.refuse_taken = lambda _: None; "
        "from streaming.terminal.cli.app import main; main()"
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        listen = f"127.0.0.1:{server.getsockname()[1]}"
        asked = [sys.executable, "-c", patient, "agent", "--log-dirs", str(disk), "--listen", listen]
        done = subprocess.run(asked, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 2
    assert f"segtail: error: cannot listen on {listen}" in done.stderr
    assert "Traceback" not in done.stderr


# --- its own page, its security, its end


def get(url: str, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"{url}{path}", timeout=SECONDS) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def url(agent: Segtail) -> str | None:
    found = re.search(r"message=\"agent metrics are served\" url=(\S+)", agent.stated)
    return found[1] if found else None


def families(text: str) -> set[tuple[str, ...]]:
    """The agent's own families with their help texts and types; for a counter the client also adds when it was made."""
    found = set(re.findall(r"^# HELP (segtail_\S+) (.*)\n# TYPE \S+ (\S+)$", text, re.MULTILINE))
    return {each for each in found if not each[0].endswith("_created")}


def written(disk: Path) -> dict[Path, tuple[int, int]]:
    """When each file and directory was written, and how large it is."""
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in [disk, *disk.rglob("*")]}


def test_shows_how_it_is_and_how_far_it_came_and_writes_nothing_into_a_log_dir(tmp_path: Path, disk: Path) -> None:
    before = written(disk)
    secrets = Authority(tmp_path / "tls").server(token_file=token_file(tmp_path / "token"))
    arguments = (
        *("agent", "--log-dirs", disk, "--listen", "127.0.0.1:0", "--name", "n1"),
        *(
            "--metrics-listen",
            "127.0.0.1:0",
            "--tls-cert",
            secrets.tls_cert,
            "--tls-key",
            secrets.tls_key,
            "--token-file",
            secrets.token_file,
        ),
    )
    with segtail(*arguments, stated=tmp_path / "said") as agent:
        page = until("it tells of itself", lambda: url(agent))
        until("it is ready", lambda: get(page, "/-/ready") == (200, "ready\n"))
        assert get(page, "/-/healthy") == (200, "healthy\n")
        where = until("it listens", lambda: address(agent))
        with pytest.raises(AgentError, match="it asks for a token: name one with"):
            AgentClient(f"https://{where}", ClientFiles(ca=tmp_path / "tls" / "ca.pem")).status()
        client = AgentClient(f"https://{where}", ClientFiles(ca=tmp_path / "tls" / "ca.pem", token_file=secrets.token_file))
        client.register(Register("job", "earliest", resumed=False))
        until("it has read everything", lambda: client.status().caught_up)
        text = get(page, "/metrics")[1]
        assert families(text) == {(metric.name, metric.help, metric.type) for metric in SECTIONS[Section.AGENT]}
        reported = read_page(text)
        labels = {each.name: {label for label, _ in each.labels} for each in reported}
        assert labels["segtail_agent_build_info"] == set(BUILD.labels)
        assert reported[Sample("segtail_agent_unauthorized_total", frozenset())] == 1
        assert reported[Sample("segtail_agent_calls_total", frozenset({("call", "register"), ("result", "ok")}))] == 1
        assert reported[Sample("segtail_agent_published_bytes_total", frozenset())] == sum(
            each.stat().st_size for each in disk.rglob("*.log")
        )
        assert reported[Sample("segtail_agent_certificate_end_timestamp_seconds", frozenset())] > time.time()
        assert reported[Sample("segtail_agent_unreadable_files", frozenset())] == 0
        assert TOKEN not in "".join(process.command for process in agent.family)
        agent.terminate()
        assert agent.wait() == 0
    assert written(disk) == before
    assert 'message="agent stops" agent=n1 seq=' in agent.stated.splitlines()[-1]
    assert TOKEN not in agent.stated


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--listen", "0.0.0.0:0"), "without a certificate serves loopback addresses only"),
        (("--tls-cert", "gone.pem", "--tls-key", "gone.key"), "--tls-cert, --tls-key gone.pem cannot be read"),
        (("--token-file", "gone"), "--token-file gone cannot be read"),
        (("--metrics-listen", "nonsense"), "metrics_listen takes HOST:PORT"),
        (("--metrics-listen", "192.0.2.1:1"), "cannot listen on 192.0.2.1:1"),
        (("--metrics-listen", "127.0.0.1:0", "--web-config", "gone"), "--web-config gone cannot be read"),
    ],
)
def test_what_would_leave_it_open_or_cannot_be_used_is_refused(tmp_path: Path, disk: Path, options: tuple[str, ...], words: str) -> None:
    listen = () if "--listen" in options else ("--listen", "127.0.0.1:0")
    done = run_command("agent", "--log-dirs", disk, *listen, *options)
    assert done.returncode == 2
    assert done.stderr.startswith("segtail: error: ")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_names_are_not_hashed_without_the_cluster_that_is_the_key(tmp_path: Path, disk: Path) -> None:
    (disk / "meta.properties").write_text("version=0\nbroker.id=1\n")
    done = run_command("agent", "--log-dirs", disk, "--listen", "127.0.0.1:0", "--set", "redact_ids=true")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "redact_ids needs the cluster's id as its key" in done.stderr


def _damaged(client: AgentClient) -> bool:
    return any(each.ended_ms >= 0 and each.corrupt for each in client.status().scrubs)


def test_the_scrub_runs_where_it_has_a_rate_and_goes_on_after_a_restart(tmp_path: Path) -> None:
    made = log_dir(tmp_path)
    log = partition(made, "orders")
    for _ in range(3):
        log.append(batch(3))
        log.roll()
    flip(log.segments[1].path("log"), 8 * 70)
    arguments = ("agent", "--log-dirs", made.path, "--listen", "127.0.0.1:0", "--name", "n1")
    ended = []
    for attempt in ("first", "second"):
        with segtail(*arguments, "--cache", tmp_path / "cache", "--scrub-rate", "100MiB", stated=tmp_path / attempt) as agent:
            client = AgentClient(until("it listens", lambda: address(agent)))
            until("it tells of the damage", partial(_damaged, client))
            (scrub,) = client.status().scrubs
            assert [(each.topic, each.offset, each.fault) for each in scrub.corrupt_batches] == [("orders", 3, "crc")]
            ended.append((scrub.ended_ms, scrub.checked))
            agent.terminate()
            assert agent.wait() == 0
    assert ended[0] == ended[1]
    assert "a closed segment is damaged" in (tmp_path / "first").read_text()
    assert "a closed segment is damaged" not in (tmp_path / "second").read_text()
