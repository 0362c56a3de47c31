"""Another user of the same host, and whoever can write into the directory in which somebody starts a job."""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from streaming.spark.job.jvm import spark_home
from tests.builders import batch, log_dir, partition
from tests.processes import Segtail, exported, segtail, until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("house")]

NOBODY = 65534
MODULES = ("yaml", "json", "logging", "pyarrow", "numpy", "pandas", "streaming", "pyspark", "click", "sitecustomize", "usercustomize")
LEAVE_A_MARK = "import sys\nopen({mark!r}, 'a').write(f'{{__name__}}: {{sys.orig_argv}}\\n')\nraise ImportError('hostile')\n"
GUARDED_PORTS = 6
"""Of the page; of the agent; py4j's two and Spark's two, which ask for secrets."""


@dataclass(frozen=True, slots=True)
class House:
    """A job that runs in a directory of others. ``mark``: what their code writes when it runs."""

    job: Segtail
    checkpoint: Path
    mark: Path


@pytest.fixture(scope="module")
def open_directory() -> Iterator[Path]:
    """A directory that every user may enter, which a test's own is not."""
    with tempfile.TemporaryDirectory(prefix="house-") as made:
        Path(made).chmod(0o755)
        yield Path(made)


@pytest.fixture(scope="module")
def house(open_directory: Path) -> Iterator[House]:
    disk = log_dir(open_directory)
    partition(disk, "orders").append(batch(3))
    here, mark = open_directory / "in" / "here", open_directory / "mark"
    here.mkdir(parents=True)
    for name in MODULES:
        (here / f"{name}.py").write_text(LEAVE_A_MARK.format(mark=str(mark)))
    spark_submit = here.parent / "bin" / "spark-submit"
    spark_submit.parent.mkdir()
    spark_submit.write_text(f"#!/bin/sh\necho spark-submit >> {mark}\nexit 9\n")
    spark_submit.chmod(0o755)
    (here.parent / "jars").mkdir()
    checkpoint = open_directory / "checkpoint"
    options = ("--log-dirs", disk.path, "--checkpoint", checkpoint, "--from", "earliest", "--listen", "127.0.0.1:0")
    in_there = ("sh", "-c", f'umask 022; cd {here} && exec "$@"', "sh")
    with segtail("run", *options, stated=open_directory / "said", before=in_there) as job:
        until("the records are on the page", lambda: job.url is not None and job.page())
        until("they are counted", lambda: exported(job.page()).get(("orders", 0), (0, 0, 0, 0))[2] == 3, saw=job.page)
        yield House(job, checkpoint, mark)


def test_nothing_that_a_job_starts_takes_code_from_the_current_directory(house: House) -> None:
    assert not house.mark.exists(), house.mark.read_text()


def test_such_code_would_have_run(house: House, tmp_path: Path) -> None:
    """Python takes modules from there by itself; what a job starts is kept from it."""
    mark = tmp_path / "mark"
    (tmp_path / "yaml.py").write_text(LEAVE_A_MARK.format(mark=str(mark)))
    subprocess.run([sys.executable, "-m", "streaming.terminal.cli", "doctor"], cwd=tmp_path, capture_output=True, check=False)
    assert mark.read_text().startswith("yaml: ")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user: run the tests as root")
def test_another_user_reads_nothing_of_what_a_job_keeps(house: House) -> None:
    command = ["find", str(house.checkpoint), "-mindepth", "1"]
    assert subprocess.run(command, capture_output=True, check=True, text=True).stdout.count("\n") > 20
    seen = subprocess.run(command, capture_output=True, check=False, text=True, user=NOBODY, group=NOBODY, extra_groups=[])
    assert (seen.stdout, seen.returncode) == ("", 1)


def test_what_names_groups_and_ids_is_private_wherever_it_lies(house: House) -> None:
    """A volume may be open to all: what the agent and Spark keep is not."""
    kept = [path for part in ("agent", "spark") for path in (house.checkpoint / part).rglob("*") if path.exists()]
    assert {path.name for path in kept} >= {"scans", "state", "offsets", "token"}
    assert [path for path in kept if path.stat().st_mode & 0o077 and path.name != "address"] == []  # which is no secret


def test_there_is_no_port_but_those_that_ask_for_a_secret(house: House) -> None:
    assert len(listening(house.job)) == GUARDED_PORTS


def listening(job: Segtail) -> set[str]:
    """Where its processes listen for TCP connections."""
    sockets = set()
    for process in job.family:
        for link in Path(f"/proc/{process.pid}/fd").iterdir():
            try:
                sockets.add(str(link.readlink()))
            except FileNotFoundError:
                continue
    rows = [line.split() for table in ("tcp", "tcp6") for line in Path("/proc/net", table).read_text().splitlines()[1:]]
    return {row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets}


def test_a_stranger_calls_no_function_of_the_driver(spark: "SparkSession") -> None:
    """PySpark lets the JVM call Python at a port of the driver, without a secret."""
    from pyspark.java_gateway import ensure_callback_server_started

    gateway = spark.sparkContext._gateway
    ensure_callback_server_started(gateway)  # as a query does that hands over its micro-batches
    called = []

    class Function:
        def apply(self, given: object) -> object:
            called.append(given)
            return given

        class Java:
            implements = ("java.util.function.UnaryOperator",)

    values = gateway.jvm.java.util.ArrayList()
    values.add("by the JVM")
    function = Function()
    values.replaceAll(function)
    name = next(iter(name for name, value in gateway.gateway_property.pool.dict.items() if value is function))
    with socket.create_connection(("127.0.0.1", gateway._callback_server.port), timeout=60) as stranger:
        stranger.sendall(f"c\n{name}\napply\nsby a stranger\ne\n".encode())
        with suppress(ConnectionResetError):
            stranger.recv(1024)
    assert called == ["by the JVM"]


def test_what_connects_to_spark_has_to_know_its_secret(spark: "SparkSession") -> None:
    hadoop = spark.sparkContext._gateway.jvm.org.apache.hadoop
    keys = hadoop.security.UserGroupInformation.getCurrentUser().getCredentials()
    made_by_spark = bytes(keys.getSecretKey(hadoop.io.Text("sparkCookie")))
    assert (spark.sparkContext.getConf().get("spark.authenticate"), len(made_by_spark) >= 32) == ("true", True)


def test_spark_is_sought_where_pyspark_is_and_not_beside_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "spark-submit").touch()
    (tmp_path / "jars").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert (spark_home({}) / "bin" / "spark-submit").is_relative_to(sys.prefix)
    assert spark_home({"SPARK_HOME": str(tmp_path)}) == tmp_path
