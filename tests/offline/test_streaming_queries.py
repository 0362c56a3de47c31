"""Streaming queries from log dirs and a checkpoint in a directory: without a job, and without a JVM."""

import shutil
from pathlib import Path

import pytest

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.common.query_checkpoints import QueryCheckpoint
from streaming.common.settings import Settings
from streaming.terminal.offline.group_reading import read_groups
from tests.builders import NOW
from tests.commands import run_command
from tests.group_answers import Groups, detailed
from tests.offline.group_cluster import Cluster, old
from tests.queries.written import Written

HOUR_S = 3600
NOW_S = NOW / 1000


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    found = Cluster(tmp_path / "disk")
    found.append(old(), old(), old(), old(), old())
    found.commit(1, "spark:other")
    found.disk.write_high_watermarks()
    found.disk.write_log_starts()
    return found


@pytest.fixture
def written(tmp_path: Path) -> Written:
    found = Written(tmp_path / "orders-to-lake")
    found.both(7, {"orders": {0: 2}}, at=NOW_S - 2 * HOUR_S)
    return found


def read(cluster: Cluster, *checkpoints: QueryCheckpoint, names: tuple[str, ...] = ()) -> Groups:
    settings = Settings(spark_checkpoints=checkpoints, broker_config={"log.retention.ms": "604800000"})
    return detailed(read_groups(open_log_dirs([cluster.disk.path]), names, settings, NOW))


def test_a_query_stands_since_its_last_commit_or_since_its_next_record_is_there(cluster: Cluster, written: Written) -> None:
    (found,) = read(cluster, QueryCheckpoint("lake", str(written.directory)), names=("spark:lake",)).groups
    (of,) = found.partitions
    assert (of.committed, of.records_left, of.verdict) == (2, 3, "stopped")
    assert of.stopped_since_ms == NOW - HOUR_S * 1000
    assert of.loss_ms > NOW
    assert found.summary.last_commit_ms == NOW - 2 * HOUR_S * 1000


def test_all_groups_and_all_queries_are_listed(cluster: Cluster, written: Written) -> None:
    answer = read(cluster, QueryCheckpoint("lake", str(written.directory)), QueryCheckpoint("gone", "/nowhere"))
    assert {each.summary.group: each.summary.verdict for each in answer.groups} == {
        "spark:other": "stopped",
        "spark:lake": "stopped",
        "spark:gone": "unknown",
    }
    assert "spark:gone: /nowhere is no checkpoint of a streaming query: it has no file metadata" in answer.reading.doubts


def test_both_are_there_if_a_group_of_kafka_s_has_the_name(cluster: Cluster, written: Written) -> None:
    checkpoint = QueryCheckpoint("other", str(written.directory))
    for names in ((), ("spark:other", "spark:other (query)")):
        found = {
            each.summary.group: (each.summary.type, each.partitions[0].committed) for each in read(cluster, checkpoint, names=names).groups
        }
        assert found == {"spark:other": ("Classic", 1), "spark:other (query)": ("Spark", 2)}
    alone = read(cluster, checkpoint, names=("spark:other (query)",))
    assert not alone.missing


def test_the_commands_take_a_directory(cluster: Cluster, written: Written, tmp_path: Path) -> None:
    where = ("--log-dirs", str(cluster.disk.path), "--at", str(NOW))
    listed = run_command("groups", *where, "--spark-checkpoint", str(written.directory))
    assert "spark:orders-to-lake  stopped" in listed.stdout
    why = run_command("why", "spark:lake", *where, "--spark-checkpoint", f"lake={written.directory}")
    assert why.returncode == 3
    lines = why.stdout.splitlines()
    assert lines[0] == "spark:lake: Spark Committed; 3 records left in 1 partition"
    assert lines[1] == f"    its checkpoint is {written.directory}; micro-batch 7 is the last one committed."
    written.tear("offsets/7")
    torn = run_command("why", "spark:lake", *where, "--spark-checkpoint", f"lake={written.directory}")
    assert torn.returncode == 4
    assert "segtail: spark:lake: offsets/7 cannot be read" in torn.stderr
    shutil.rmtree(written.directory)
    gone = run_command("groups", *where, "--spark-checkpoint", f"lake={written.directory}")
    assert gone.returncode == 3
    assert "spark:lake: " in gone.stderr


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (("lake=s3a://b/c",), "only Spark's JVM reads, which no command starts"),
        (("a=/x", "b=/x/"), "a and b are two names of one checkpoint"),
        (("/x/c", "/y/c"), "two checkpoints are named c"),
        (("/",), "gives the query no name"),
    ],
)
def test_what_cannot_be_read_here_is_an_error(cluster: Cluster, given: tuple[str, ...], expected: str) -> None:
    options = [part for each in given for part in ("--spark-checkpoint", each)]
    done = run_command("groups", "--log-dirs", str(cluster.disk.path), *options)
    assert done.returncode == 2
    assert expected in done.stderr


def test_a_job_has_its_own(written: Written) -> None:
    done = run_command("groups", "--job", "http://127.0.0.1:1", "--spark-checkpoint", str(written.directory))
    assert done.returncode == 2
    assert "--spark-checkpoint cannot be given with --job" in done.stderr
