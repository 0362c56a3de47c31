"""What a micro-batch of the public stream costs beside one of our own packed rows: the same agent, the same appends, no sink.

Left out: sinks, agents on other hosts, transactions in what is appended.
"""

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.bounds import Bounds
from tests.bench.partitions import Partitions
from tests.bench.processes import Meter
from tests.bench.table import show
from tests.ports import free_ports
from tests.processes import SEGTAIL, until

ROUNDS = 3
BATCH_BYTES = 4_096
KINDS = ("packed", "ranges", "batches", "transactions")


def run(bounds: Bounds) -> None:
    """Print one table."""
    with tempfile.TemporaryDirectory(prefix="segtail-bench-") as scratch:
        where = Path(scratch)
        with (
            Partitions(where / "log", bounds.active, BATCH_BYTES) as logs,
            logs.alive(),
            _agent(logs.path, where / "journal") as address,
            _session() as spark,
        ):
            costs: dict[str, list[float]] = {kind: [] for kind in KINDS}
            for _ in range(ROUNDS):
                for kind in KINDS:
                    costs[kind].append(_cost(spark, kind, address, logs, bounds.seconds))
    packed = median(costs["packed"])
    rows = [(kind, f"{1000 * median(each):.0f}", f"{median(each) / packed:.2f}") for kind, each in costs.items()]
    title = (
        f"a micro-batch of {bounds.active:,} partitions, each appended to once a second; CPU of agent, JVM and Python, medians of {ROUNDS}"
    )
    show(title, ("rows", "CPU ms", "of packed"), rows)


def _cost(spark: Any, kind: str, address: str, logs: Partitions, seconds: float) -> float:
    """CPU seconds of a micro-batch, without what passes where nothing is appended."""
    if kind == "packed":
        reader = spark.readStream.format("segtail-job").options(
            agents=address, consumer=f"bench {time.time_ns()}", start_from="latest", shards="4"
        )
    else:
        reader = spark.readStream.format("segtail").options(agents=address, relation=kind, consumer=f"bench {time.time_ns()}")
    with tempfile.TemporaryDirectory(prefix="segtail-bench-") as checkpoint:
        written = reader.load().writeStream.format("noop").trigger(processingTime="1 second").option("checkpointLocation", checkpoint)
        query = written.start()
        try:
            over = threading.Event()
            appends = threading.Thread(target=_append, args=(logs, over))
            appends.start()
            until("there are micro-batches", lambda: query.lastProgress is not None and query.lastProgress["batchId"] >= 3)
            meter = Meter(os.getpid())
            before, first = meter.check(), query.lastProgress["batchId"]
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                time.sleep(0.5)
                meter.check()
            spent, last = meter.check() - before, query.lastProgress["batchId"]
            over.set()
            appends.join()
        finally:
            query.stop()
    return spent / max(1, last - first)


def _append(logs: Partitions, over: threading.Event) -> None:
    while not over.wait(1.0):
        for item in range(len(logs)):
            logs.append(item)


@contextmanager
def _agent(log_dir: Path, journal: Path) -> Iterator[str]:
    (port,) = free_ports(1)
    words = [str(SEGTAIL), "agent", "--log-dirs", str(log_dir), "--journal", str(journal), "--listen", f"127.0.0.1:{port}"]
    agent = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    try:
        yield f"grpc://127.0.0.1:{port}"
    finally:
        agent.terminate()
        agent.wait()


@contextmanager
def _session() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    from streaming.spark.source.job_data_source import JobDataSource

    root = Path(__file__).parents[2]
    os.environ["PYTHONPATH"] = os.pathsep.join([str(root / "streaming/spark/lookup"), str(root)])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.driver.memory", "1g")
    spark = builder.config("spark.python.authenticate.socketTimeout", "600s").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(JobDataSource)
    try:
        yield spark
    finally:
        spark.stop()
