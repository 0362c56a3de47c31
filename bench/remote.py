"""Simulated agents in a process of their own (`bench.fleet`), and what it costs a job's source to plan for them, without Spark."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.datasource import ReadAllAvailable

from bench.measuring import ROOT
from streaming.spark.source.job_options import parse_options
from streaming.spark.source.stream import EventStreamReader

ALL = ReadAllAvailable()
ROUNDS = 20


@contextmanager
def fleet(directory: Path, agents: int, partitions: int, appends: int) -> Iterator[str]:
    """So many of them, with so many partitions and appends a second each; yields their addresses."""
    directory.mkdir(parents=True)
    command = [sys.executable, "-m", "bench.fleet", str(directory), *map(str, (agents, partitions, appends))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=os.environ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


def planned(addresses: str, agents: int) -> tuple[str, str, str]:
    """Of a round `latestOffset` in ms and in CPU ms; and the bytes of an offset."""
    reader = EventStreamReader(parse_options({"agents": addresses, "consumer": "bench", "start_from": "earliest"}))
    end: dict[str, Any] = {}
    while len(end) < agents:
        time.sleep(0.2)
        end = reader.latestOffset(end, ALL)
    planning = cpu = 0.0
    for _ in range(ROUNDS):
        began, spent = time.monotonic(), time.process_time()
        following = reader.latestOffset(end, ALL)
        planning += time.monotonic() - began
        cpu += time.process_time() - spent
        for task in reader.partitions(end, following):
            for _ in reader.read(task):
                pass
        reader.commit(following)
        end = following
        time.sleep(0.5)
    return f"{1000 * planning / ROUNDS:.1f}", f"{1000 * cpu / ROUNDS:.1f}", f"{len(json.dumps(end)):,}"
