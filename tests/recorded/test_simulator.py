"""The simulator is genuine: Kafka read what it wrote, and would have written the same."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from streaming.simulator.facts import Facts
from tests.broker.install import KAFKA_VERSION
from tests.broker.kafka_tools import TopicPartition
from tests.broker.oracle import LogTotals
from tests.recorded.recordings import Replayed, replay, to_make
from tests.recorded.worlds.simulator import REBUILT, digest, simulate, zlibs
from tests.tools import missing

pytestmark = pytest.mark.slow  # what is simulated has a history of half an hour

METADATA = ("__cluster_metadata", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """The simulated broker whose log dirs a real one was started on, and what that and Kafka's tools said."""

    log_dirs: tuple[Path, ...]
    facts: Mapping[TopicPartition, Facts]
    replayed: Replayed

    def lines(self, name: str) -> list[str]:
        """What a tool printed."""
        return self.replayed.text(name).splitlines()


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    """Simulated again, at the same time of day: the recording speaks of it if it writes the same bytes."""
    directory = tmp_path_factory.mktemp("simulator")
    replayed = replay("simulator", KAFKA_VERSION, directory / "recorded")
    then = replayed.json("simulated")
    if zlibs() != then["zlib"]:
        missing("the zlib of this machine writes other bytes than that of the recording, so the simulator does as well")
    broker = simulate(directory / "simulated", then["start"])
    assert digest(broker.log_dirs) == then["digest"], f"the simulator writes other bytes than were recorded; {to_make('simulator')}"
    return Simulated(log_dirs=broker.log_dirs, facts={(facts.topic, facts.partition): facts for facts in broker.facts()}, replayed=replayed)


def test_kafkas_dump_finds_every_batch_valid_and_counts_the_same(simulated: Simulated) -> None:
    totals = {(topic, partition): LogTotals(**found) for topic, partition, found in simulated.replayed.json("totals")}
    for place, facts in simulated.facts.items():
        found = totals[place]
        counts = (found.bytes, found.data_batches, found.data_records, found.next_offset)
        assert counts == (facts.held.bytes, facts.held.batches, facts.held.records, facts.log_end_offset), place


def test_real_broker_serves_the_simulated_logs(simulated: Simulated) -> None:
    expected = {place: facts.log_end_offset for place, facts in simulated.facts.items() if place != METADATA}
    assert {(topic, partition): offset for topic, partition, offset in simulated.replayed.json("ends")} == expected


def test_real_broker_knows_the_open_transaction(simulated: Simulated) -> None:
    lines = simulated.lines("producers")
    opened = {(int(line.split()[0]), int(line.split()[5])) for line in lines[1:] if line.split()[5].isdigit()}
    assert opened == set(simulated.facts["payments", 2].open_transactions)
    assert "billing-batch" in simulated.replayed.text("transactions")


def test_kafkas_tool_finds_the_transaction_that_nobody_will_end(simulated: Simulated) -> None:
    ((producer, first), *_) = simulated.facts["invoices", 0].open_transactions
    rows = [line.split() for line in simulated.lines("hanging")[1:]]
    assert [(row[0], row[1], int(row[2]), int(row[5])) for row in rows] == [("invoices", "0", producer, first)]


def test_real_broker_knows_the_groups_and_their_offsets(simulated: Simulated) -> None:
    states = {line.split()[0]: line.split()[1:] for line in simulated.lines("states")[1:]}
    assert states == {
        "click-counter": ["Consumer", "Stable"],
        "log-search": ["Classic", "Stable"],
        "invoice-mailer": ["Consumer", "Stable"],
        "ledger": ["Classic", "Stable"],
        "audit-export": ["Consumer", "Stable"],
        "payment-processor": ["Classic", "Stable"],
    }
    rows = {
        (line[1], int(line[2])): line
        for line in map(str.split, simulated.lines("described"))
        if line and line[0] in ("ledger", "click-counter")
    }
    assert len(rows) == 7
    assert int(rows["payments", 2][3]) == simulated.facts["payments", 2].last_stable_offset
    assert all(row[6].startswith(f"{row[0]}-") for row in rows.values())  # each partition has its member


def test_real_broker_rebuilds_the_same_indexes_and_snapshots(simulated: Simulated) -> None:
    compared = 0
    for source, target in zip(simulated.log_dirs, simulated.replayed.disk().log_dirs, strict=True):
        for path in (path for path in target.rglob("*") if path.suffix in REBUILT and _rebuilt_in_full(path, source / path.parent.name)):
            theirs = path.read_bytes()
            assert _comparable(path, (source / path.relative_to(target)).read_bytes()) == _comparable(path, theirs), path
            compared += len(theirs)
    assert compared > 10_000


def _rebuilt_in_full(path: Path, logs: Path) -> bool:
    """Not of the metadata log, which has grown; not where transactions may have begun in a segment that is gone; no index in use.

    Nor an empty index of transactions, which a broker that recovers leaves where there was none.
    """
    segments = sorted(logs.glob("*.log"))
    in_use = path.stem == segments[-1].stem and path.suffix in (".index", ".timeindex")
    none = path.suffix == ".txnindex" and not path.stat().st_size
    return path.parent.name != "__cluster_metadata-0" and int(segments[0].stem) == 0 and not in_use and not none


def _comparable(path: Path, content: bytes) -> object:
    if path.suffix != ".snapshot":
        return content
    (count,) = struct.unpack_from(">i", content, 6)
    return {content[10 + 46 * n : 56 + 46 * n] for n in range(count)}  # the order of producers is that of a hash map
