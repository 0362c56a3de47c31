"""A job with many agents: what planning costs, how large an offset gets, what the job takes; and rows over TLS against plain.

Left out: what agents spend on watching logs, as they are simulated; a network between them and the job, and its failures.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.datasource import ReadAllAvailable

from streaming.broker.protocol.consumer_messages import Range, Register
from streaming.spark.client.agent_client import AgentClient
from streaming.spark.client.client_files import ClientFiles
from streaming.spark.source.source_options import parse_options
from streaming.spark.source.stream import EventStreamReader
from tests.bench.bounds import Bounds
from tests.bench.processes import PARTS
from tests.bench.running import RunningJob, nothing
from tests.bench.table import show
from tests.certificates import Authority

ALL = ReadAllAvailable()
ROUNDS = 20
APPENDS_A_SECOND = 20
READS = 5


def run(bounds: Bounds) -> None:
    """Print three tables."""
    with tempfile.TemporaryDirectory(prefix="segtail-bench-") as scratch:
        _plans(Path(scratch, "plans"), bounds)
        _tls(Path(scratch, "tls"), bounds)
        _job(Path(scratch, "job"), bounds)


@contextmanager
def fleet(directory: Path, agents: int, partitions: int, appends: int, **environ: str) -> Iterator[str]:
    """Simulated agents in a process of their own; yields their addresses."""
    directory.mkdir(parents=True)
    command = [sys.executable, "-m", "tests.bench.fleet", str(directory), *map(str, (agents, partitions, appends))]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root, env=os.environ | environ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


# --- planning, without Spark


def _plans(directory: Path, bounds: Bounds) -> None:
    rows = []
    for agents in sorted({1, 10, bounds.agents // 2, bounds.agents}):
        with fleet(directory / str(agents), agents, bounds.partitions, APPENDS_A_SECOND) as addresses:
            rows.append((f"{agents}", *planned(addresses, agents)))
    title = (
        f"planning for agents with {bounds.partitions:,} partitions each, {APPENDS_A_SECOND} appends a second at each: latestOffset with "
        "commit, and reading the rows of a micro-batch in one process; ms of wall time and of this process's CPU"
    )
    show(title, ("agents", "latestOffset ms", "CPU ms", "plan tasks ms", "read ms", "rows", "offset bytes"), rows)


def planned(addresses: str, agents: int) -> Sequence[str]:
    """Of a round: `latestOffset` in ms and in CPU ms, the planning of tasks and the reading in ms, the rows; and the bytes of an offset."""
    reader = EventStreamReader(parse_options({"agents": addresses, "consumer": "bench", "start_from": "earliest"}))
    end: dict[str, Any] = {}
    while len(end) < agents:
        time.sleep(0.2)
        end = reader.latestOffset(end, ALL)
    _read(reader, {}, end)
    planning = cpu = tasks = reading = 0.0
    rows = 0
    for _ in range(ROUNDS):
        began, spent = time.monotonic(), _cpu()
        following = reader.latestOffset(end, ALL)
        planning += time.monotonic() - began
        cpu += _cpu() - spent
        began = time.monotonic()
        reader.partitions(end, following)
        tasks += time.monotonic() - began
        began = time.monotonic()
        rows += _read(reader, end, following)
        reading += time.monotonic() - began
        reader.commit(following)
        end = following
        time.sleep(0.5)
    reported = (f"{1000 * each / ROUNDS:.1f}" for each in (planning, cpu, tasks, reading))
    return (*reported, f"{rows / ROUNDS:.0f}", f"{len(json.dumps(end)):,}")


def _read(reader: EventStreamReader, start: dict[str, Any], end: dict[str, Any]) -> int:
    return sum(batch.num_rows for task in reader.partitions(start, end) for batch in reader.read(task))


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


# --- TLS


def _tls(directory: Path, bounds: Bounds) -> None:
    authority = Authority(directory / "ca")
    pair = authority.issue("fleet")
    partitions = bounds.partitions * 25
    rows = []
    with (
        fleet(directory / "plain", 1, partitions, 0) as plain,
        fleet(directory / "secure", 1, partitions, 0, FLEET_CERT=str(pair.cert), FLEET_KEY=str(pair.key)) as secure,
    ):
        clients = {"plain": AgentClient(plain), "TLS": AgentClient(secure, ClientFiles(ca=authority.ca))}
        for name, client in clients.items():
            status = client.register(Register("bench", "earliest", resumed=False))
            rows.append((name, *_throughput(client, Range("bench", "run", status.journal, -1, 0, status.seq))))
    show(
        f"the rows of one range, {partitions:,} logs, read {READS} times",
        ("", "rows", "MB", "seconds", "rows a second", "calls a second"),
        rows,
    )


def _throughput(client: AgentClient, asked: Range) -> Sequence[str]:
    table = client.read(asked)
    began = time.monotonic()
    for _ in range(READS):
        client.read(asked)
    seconds = (time.monotonic() - began) / READS
    began = time.monotonic()
    for _ in range(200):
        client.status()
    calls = 200 / (time.monotonic() - began)
    return f"{table.num_rows:,}", f"{table.nbytes / 1e6:.1f}", f"{seconds:.2f}", f"{table.num_rows / seconds:,.0f}", f"{calls:,.0f}"


# --- the whole job


def _job(directory: Path, bounds: Bounds) -> None:
    rows = []
    for agents in sorted({bounds.agents // 10 or 1, bounds.agents}):
        with (
            fleet(directory / str(agents), agents, bounds.partitions, APPENDS_A_SECOND) as addresses,
            RunningJob(
                ["--agents", addresses], directory / f"{agents}-checkpoint", "--spark", "spark.driver.memory=3g", "--trigger", "1s"
            ) as job,
        ):
            nothing(time.monotonic() + bounds.seconds)
            cost = job.cost(bounds.seconds, nothing)
            mean = cost.batch_seconds / max(1, cost.batches)
            memory = "/".join(f"{cost.resident_bytes[part] / 1e6:.0f}" for part in PARTS[:3])
            rows.append(
                (f"{agents}", f"{agents * bounds.partitions:,}", f"{cost.batches}", f"{mean:.2f}", f"{100 * cost.cores:.0f}", memory)
            )
    title = f"the job, trigger 1 s, {APPENDS_A_SECOND} appends a second at each agent, {bounds.seconds:.0f} s"
    show(title, ("agents", "logs", "micro-batches", "mean s", "% of a core", "/".join(PARTS[:3]) + " MB"), rows)
