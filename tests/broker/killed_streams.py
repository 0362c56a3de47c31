"""Kill -9 of driver, JVM, Python processes and agent of somebody's queries, whose sinks then have to hold every row once."""

import json
import os
import random
import signal
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow.parquet as pq

from tests.broker.kafka import Kafka
from tests.broker.kafka_tools import TopicPartition
from tests.broker.load import TOPICS, Load
from tests.broker.oracle import LogTotals, log_totals
from tests.broker.stream_query import RELATIONS
from tests.broker.transactions import owners, reported_by
from tests.ports import free_ports
from tests.processes import until
from tests.worlds.services import AGENT, DRIVER, JVM, SOURCE, WORKER, Service, service

SHARES: Mapping[str, int] = {AGENT: 40, SOURCE: 26, WORKER: 24, DRIVER: 6, JVM: 4}
"""Of a hundred kills. A JVM takes many seconds to start."""

_COMMANDS = {JVM: "org.apache.spark.deploy.SparkSubmit", SOURCE: "python_streaming_source_runner", WORKER: "pyspark.daemon"}
Row: TypeAlias = dict[str, Any]
Ends: TypeAlias = Mapping[TopicPartition, int]
Dumped: TypeAlias = Mapping[TopicPartition, LogTotals]

_PATIENT = {"broker.session.timeout.ms": 60_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a run was. ``problems`` are empty if every row came once."""

    seed: int
    kills: Mapping[str, int]
    seconds: float
    records: int
    rows: Mapping[str, int]
    problems: tuple[str, ...]


def run_streams(directory: Path, kills: int, seed: int) -> Report:
    """Run a broker, its load, an agent and a query of each relation, kill, and compare what their sinks hold."""
    began, chance = time.monotonic(), random.Random(seed)
    plan = [*SHARES, *(part for part, share in SHARES.items() for _ in range(kills * share // 100 - 1))][:kills]
    plan += [AGENT] * (kills - len(plan))
    chance.shuffle(plan)
    directory.mkdir(parents=True, exist_ok=True)
    kafka = Kafka(directory / "kafka", settings=_PATIENT)
    (port,) = free_ports(1)
    address, dirs = f"http://127.0.0.1:{port}", ",".join(map(str, kafka.log_dirs))
    words = ("agent", "--log-dirs", dirs, "--listen", f"127.0.0.1:{port}", "--name", "streamed")
    program = (sys.executable, "-m", "tests.broker.stream_query")
    try:
        kafka.start()
        load = Load(kafka, seed)
        with service(AGENT, *words, directory=directory / "messages") as agent:
            with load.running(), service("query", address, directory, directory=directory / "messages", before=program) as query:
                for part in plan:
                    _await_progress(query, agent, directory, chance)
                    _kill(agent if part == AGENT else query, part, chance)
            reported, owned = reported_by(kafka.nodes[0].port, TOPICS), owners(kafka)
            kafka.freeze()
            agent.tend()
            with service("rest", address, directory, "once", directory=directory / "messages", before=program) as rest:
                assert rest.running.wait() == 0, "\n".join(rest.messages())
        ends = {key: each.high_watermark for key, each in reported.items()}
        rows = {relation: list(sink(directory / relation)) for relation in RELATIONS}
        dumped = log_totals(kafka.log_dirs, TOPICS)
        problems = [*_compare_ranges(rows["ranges"], load, ends, dumped), *_compare_batches(rows["batches"], load, ends, dumped)]
        problems += [*_compare_transactions(rows["transactions"], rows["batches"], dumped, owned)]
    finally:
        kafka.kill()
    return Report(
        seed=seed,
        kills=Counter(plan),
        seconds=time.monotonic() - began,
        records=load.records.total(),
        rows={relation: len(found) for relation, found in rows.items()},
        problems=tuple(problems),
    )


def _await_progress(query: Service, agent: Service, directory: Path, chance: random.Random) -> None:
    """One more micro-batch than there was of each query, or any moment at all; then a part of a second."""
    before = _batches(directory)

    def goes_on() -> bool:
        query.tend()
        agent.tend()
        return all(now > earlier for now, earlier in zip(_batches(directory), before, strict=True))

    if chance.random() < 0.7:
        until("all queries go on", goes_on, seconds=240, saw=lambda: _batches(directory))
    deadline = time.monotonic() + 1.5 * chance.random()
    while time.monotonic() < deadline:
        query.tend()
        agent.tend()
        threading.Event().wait(0.05)


def _batches(directory: Path) -> list[int]:
    """The last micro-batch of each query; Spark keeps a hundred of them."""
    commits = [(directory / f"{relation}.checkpoint" / "commits").glob("[0-9]*") for relation in RELATIONS]
    return [max((int(each.name) for each in found if each.name.isdigit()), default=-1) for found in commits]


def _kill(killed: Service, part: str, chance: random.Random) -> None:
    pick = chance.randrange(1 << 16)

    def is_killed() -> bool:
        killed.tend()
        if part in (AGENT, DRIVER):
            killed.running.kill()
            killed.running.reap()
            if part == DRIVER:
                killed.running.kill_family()  # a JVM whose driver was killed ends by itself, and may write until then
            return True
        found = [each for each in killed.running.family if _COMMANDS[part] in each.command]
        if not found:
            return False
        try:
            os.kill(found[pick % len(found)].pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    until(f"there is a process to kill: {part}", is_killed, saw=lambda: killed.running.family)


def sink(directory: Path) -> Iterator[Row]:
    """The rows of a file sink, of the files that its own log has: those of attempts that failed are in none of it."""
    files: set[str] = set()
    for log in (directory / "_spark_metadata").iterdir():
        if not log.name.startswith("."):
            files |= {json.loads(line)["path"] for line in log.read_text().splitlines()[1:]}
    for file in sorted(files):
        yield from pq.read_table(file.removeprefix("file://")).to_pylist()


def _by_log(rows: list[Row], *kinds: str) -> dict[TopicPartition, list[Row]]:
    found: defaultdict[TopicPartition, list[Row]] = defaultdict(list)
    for row in rows:
        if row["kind"] in kinds and row["topic"] in TOPICS:
            found[row["topic"], row["partition"]].append(row)
    return found


def _compare_ranges(rows: list[Row], load: Load, ends: Ends, dumped: Dumped) -> Iterator[str]:
    found = _by_log(rows, "appended")
    for key, end in ends.items():
        own = sorted(found[key], key=lambda row: row["base_offset"])
        yield from _gaps("ranges", key, [(row["base_offset"], row["next_offset"]) for row in own], end)
        codecs = Counter[str]()
        for row in own:
            codecs.update(dict(row["codec_bytes"]))
        markers = sum(len(row["markers"] or ()) for row in own)
        sums = [sum(row[name] for row in own) for name in ("records", "batches", "bytes")]
        yield from _other("ranges", key, [load.records[key], dumped[key].data_batches, dumped[key].bytes], sums)
        yield from _other("markers of ranges", key, dumped[key].control_batches, markers)
        yield from _other("codecs of ranges", key, dumped[key].codec_bytes, {codec: size for codec, size in codecs.items() if size})
    yield from (f"{row['kind']}: {row}" for row in rows if row["kind"] in ("skipped", "truncated", "corrupt"))


def _compare_batches(rows: list[Row], load: Load, ends: Ends, dumped: Dumped) -> Iterator[str]:
    found = _by_log(rows, "batch")
    for key, end in ends.items():
        own = sorted(found[key], key=lambda row: row["base_offset"])
        yield from _gaps("batches", key, [(row["base_offset"], row["last_offset"] + 1) for row in own], end)
        data = [row for row in own if not row["control"]]
        sums = [sum(row["records"] for row in data), len(data), sum(row["size"] for row in own)]
        yield from _other("batches", key, [load.records[key], dumped[key].data_batches, dumped[key].bytes], sums)
    yield from (f"{row['kind']}: {row}" for row in rows if row["kind"] == "skipped")


def _compare_transactions(rows: list[Row], batches: list[Row], dumped: Dumped, owned: Mapping[int, str]) -> Iterator[str]:
    """All of them have ended, so that they have the bytes of all transactional batches; and each has the id that Kafka lists."""
    found, written = _by_log(rows, "committed", "aborted"), _by_log(batches, "batch")
    for key, totals in dumped.items():
        markers = [row["marker_offset"] for row in found[key]]
        yield from _other("markers", key, totals.control_batches, len(markers))
        yield from _other("each marker", key, sorted(set(markers)), sorted(markers))
        size = sum(row["size"] for row in written[key] if row["transactional"] and not row["control"])
        yield from _other("bytes of transactions", key, size, sum(row["bytes"] or 0 for row in found[key]))
        of = {row["producer_id"]: row["transactional_id"] for row in found[key]}
        yield from _other("transactional ids", key, {each: owned.get(each, "not listed") for each in of}, of)
    yield from (f"{row['kind']}: {row}" for row in rows if row["kind"] == "skipped")


def _other(what: str, key: TopicPartition, expected: object, got: object) -> Iterator[str]:
    if got != expected:
        yield f"{what} of {key}: {got}, Kafka has {expected}"


def _gaps(what: str, key: tuple[str, int], ranges: list[tuple[int, int]], end: int) -> Iterator[str]:
    reached = 0
    for begin, upto in ranges:
        if begin != reached:
            yield f"{what} of {key}: {'twice' if begin < reached else 'missing'} between {min(begin, reached)} and {max(begin, reached)}"
        reached = upto
    if reached != end:
        yield f"{what} of {key} end at {reached}, the broker's log at {end}"
