"""The simulator is genuine: Kafka reads what it wrote, and would have written the same."""

import shutil
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.simulator.broker import HISTORY_MS, SimulatedBroker
from streaming.simulator.facts import Facts
from tests.broker.kafka import Kafka
from tests.broker.oracle import TopicPartition, end_offsets, log_totals, run_tool

SECONDS = 40
METADATA = ("__cluster_metadata", 0)
QUIET = {
    "log.retention.check.interval.ms": 600_000,
    "log.initial.task.delay.ms": 600_000,
    "log.cleaner.backoff.ms": 600_000,
    "group.consumer.max.session.timeout.ms": 600_000,
    "group.consumer.session.timeout.ms": 600_000,
}
"""Settings with which a broker leaves the logs as they are."""
REBUILT = (".index", ".timeindex", ".txnindex", ".snapshot")


class Simulated:
    """A minute of a simulated broker, with what happened before it, shut down, and a real one on a copy of its log dirs."""

    def __init__(self, directory: Path) -> None:
        start = int(time.time() * 1000) - SECONDS * 1000
        (directory / "simulated").mkdir()
        broker = SimulatedBroker(directory / "simulated", seed=3, clock=lambda: start, history_ms=HISTORY_MS)
        broker.step(start + SECONDS * 1000)
        broker.close()
        self.log_dirs = broker.log_dirs
        self.facts: dict[TopicPartition, Facts] = {(facts.topic, facts.partition): facts for facts in broker.facts()}
        self.kafka = Kafka(directory / "real", settings=QUIET)
        for source, target in zip(broker.log_dirs, self.kafka.log_dirs, strict=True):
            shutil.rmtree(target)
            shutil.copytree(source, target)
            _forget_what_can_be_rebuilt(target)


def _forget_what_can_be_rebuilt(log_dir: Path) -> None:
    (log_dir / ".kafka_cleanshutdown").unlink()
    (log_dir / "recovery-point-offset-checkpoint").write_bytes(b"")
    for path in log_dir.rglob("*"):
        if path.suffix in REBUILT:
            path.unlink()


@pytest.fixture(scope="module")
def simulated(kafka_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    directory = tmp_path_factory.mktemp("simulated")
    pair = Simulated(directory)
    try:
        pair.kafka.start()
        yield pair
    finally:
        pair.kafka.kill()
        shutil.rmtree(directory)


def test_kafkas_dump_finds_every_batch_valid_and_counts_the_same(simulated: Simulated) -> None:
    totals = log_totals(simulated.log_dirs)
    for place, facts in simulated.facts.items():
        found = totals[place]
        counts = (found.bytes, found.data_batches, found.data_records, found.next_offset)
        assert counts == (facts.held.bytes, facts.held.batches, facts.held.records, facts.log_end_offset), place


def test_real_broker_serves_the_simulated_logs(simulated: Simulated) -> None:
    expected = {place: facts.log_end_offset for place, facts in simulated.facts.items() if place != METADATA}
    assert end_offsets(simulated.kafka) == expected


def test_real_broker_knows_the_open_transaction(simulated: Simulated) -> None:
    bootstrap = ("--bootstrap-server", simulated.kafka.bootstrap)
    lines = run_tool("transactions", *bootstrap, "describe-producers", "--topic", "payments", "--partition", "2").splitlines()
    opened = {(int(line.split()[0]), int(line.split()[5])) for line in lines[1:] if line.split()[5].isdigit()}
    assert opened == set(simulated.facts["payments", 2].open_transactions)
    assert "billing-batch" in run_tool("transactions", *bootstrap, "list")


def test_kafkas_tool_finds_the_transaction_that_nobody_will_end(simulated: Simulated) -> None:
    found = run_tool("transactions", "--bootstrap-server", simulated.kafka.bootstrap, "find-hanging", "--broker-id", "1")
    ((producer, first), *_) = simulated.facts["invoices", 0].open_transactions
    rows = [line.split() for line in found.splitlines()[1:]]
    assert [(row[0], row[1], int(row[2]), int(row[5])) for row in rows] == [("invoices", "0", producer, first)]


def test_real_broker_knows_the_groups_and_their_offsets(simulated: Simulated) -> None:
    bootstrap = ("--bootstrap-server", simulated.kafka.bootstrap)
    states = {line.split()[0]: line.split()[1:] for line in run_tool("groups", *bootstrap, "--list", "--state", "--type").splitlines()[1:]}
    assert states == {
        "click-counter": ["Consumer", "Stable"],
        "log-search": ["Classic", "Stable"],
        "invoice-mailer": ["Consumer", "Stable"],
        "ledger": ["Classic", "Stable"],
        "audit-export": ["Consumer", "Stable"],
        "payment-processor": ["Classic", "Stable"],
    }
    described = run_tool("groups", *bootstrap, "--describe", "--group", "ledger", "--group", "click-counter").splitlines()
    rows = {(line[1], int(line[2])): line for line in map(str.split, described) if line and line[0] in ("ledger", "click-counter")}
    assert len(rows) == 7
    assert int(rows["payments", 2][3]) == simulated.facts["payments", 2].last_stable_offset
    assert all(row[6].startswith(f"{row[0]}-") for row in rows.values())  # each partition has its member


def test_real_broker_rebuilds_the_same_indexes_and_snapshots(simulated: Simulated) -> None:
    compared = 0
    for source, target in zip(simulated.log_dirs, simulated.kafka.log_dirs, strict=True):
        for path in (path for path in target.rglob("*") if path.suffix in REBUILT and _rebuilt_in_full(path)):
            theirs = path.read_bytes()
            assert _comparable(path, (source / path.relative_to(target)).read_bytes()) == _comparable(path, theirs), path
            compared += len(theirs)
    assert compared > 10_000


def _rebuilt_in_full(path: Path) -> bool:
    """Not of the metadata log, which has grown; not where transactions may have begun in a segment that is gone; no index in use.

    Nor an empty index of transactions, which a broker that recovers leaves where there was none.
    """
    segments = sorted(path.parent.glob("*.log"))
    in_use = path.stem == segments[-1].stem and path.suffix in (".index", ".timeindex")
    none = path.suffix == ".txnindex" and not path.stat().st_size
    return path.parent.name != "__cluster_metadata-0" and int(segments[0].stem) == 0 and not in_use and not none


def _comparable(path: Path, content: bytes) -> object:
    if path.suffix != ".snapshot":
        return content
    (count,) = struct.unpack_from(">i", content, 6)
    return {content[10 + 46 * n : 56 + 46 * n] for n in range(count)}  # the order of producers is that of a hash map
