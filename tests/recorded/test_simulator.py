"""The simulator is genuine: Kafka read what it wrote, and would have written the same."""

import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from streaming.kafka.formats import compression
from streaming.simulator.batch_writer import Codec
from streaming.simulator.workload import CONSUMER_OFFSETS, TRAFFIC
from tests.broker.install import KAFKA_VERSION
from tests.broker.kafka_tools import TopicPartition
from tests.broker.oracle import LogTotals
from tests.facts import Facts, facts_of_all
from tests.recorded.recordings import Replayed, replay, to_make
from tests.recorded.worlds.simulator import CHECKPOINTS, REBUILT, digests, simulate, zlibs

pytestmark = pytest.mark.slow  # what is simulated has a history of half an hour

METADATA = ("__cluster_metadata", 0)
GZIPPED = {each.topic for each in TRAFFIC if each.codec is Codec.GZIP}


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """The simulated broker whose log dirs a real one was started on, and what that and Kafka's tools said.

    ``facts`` are those of the logs that can be compared, ``left_out`` the others.
    """

    log_dirs: tuple[Path, ...]
    facts: Mapping[TopicPartition, Facts]
    left_out: Collection[TopicPartition]
    replayed: Replayed

    @property
    def logs(self) -> set[str]:
        """The names of the logs that are compared."""
        return {*map(name_of, self.facts)}

    def lines(self, name: str) -> list[str]:
        """What a tool printed."""
        return self.replayed.text(name).splitlines()


@pytest.fixture(scope="module", params=[None, 9], ids=["this machine's zlib", "another zlib"])
def simulated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    """Simulated again, at the same time of day: the recording speaks of each log of which the simulator writes the same bytes.

    A zlib that is not the recording's packs a topic into other sizes, so that more or less of it is written: the rest is compared.
    """
    directory = tmp_path_factory.mktemp("simulator")
    replayed = replay("simulator", KAFKA_VERSION, directory / "recorded")
    then = replayed.json("simulated")
    with pytest.MonkeyPatch.context() as patch:
        if request.param:
            patch.setattr(compression, "_GZIP_LEVEL", request.param)
        broker, other_zlib = simulate(directory / "simulated", then["start"]), zlibs() != then["zlib"]
    facts = {(facts.topic, facts.partition): facts for facts in facts_of_all(broker)}
    left_out = {place for place in facts if other_zlib and place[0] in GZIPPED}
    may_differ = {*map(name_of, left_out), CHECKPOINTS, *(name_of(place) for place in facts if place[0] == CONSUMER_OFFSETS.name)}
    written, reported = digests(broker.log_dirs), then["digests"]
    differing = {log for log in written.keys() | reported.keys() if written.get(log) != reported.get(log)} - (
        may_differ if left_out else set()
    )
    assert not differing, f"the simulator writes other bytes than were recorded into {sorted(differing)}; {to_make('simulator')}"
    compared = {place: facts[place] for place in facts if place not in left_out}
    return Simulated(log_dirs=broker.log_dirs, facts=compared, left_out=left_out, replayed=replayed)


def name_of(place: TopicPartition) -> str:
    """The directory of a log."""
    topic, partition = place
    return f"{topic}-{partition}"


def test_kafkas_dump_finds_every_batch_valid_and_counts_the_same(simulated: Simulated) -> None:
    totals = {(topic, partition): LogTotals(**found) for topic, partition, found in simulated.replayed.json("totals")}
    for place, facts in simulated.facts.items():
        found = totals[place]
        counts = (found.bytes, found.data_batches, found.data_records, found.next_offset)
        assert counts == (facts.held.bytes, facts.held.batches, facts.held.records, facts.log_end_offset), place


def test_real_broker_serves_the_simulated_logs(simulated: Simulated) -> None:
    expected = {place: facts.log_end_offset for place, facts in simulated.facts.items() if place != METADATA}
    served = {(topic, partition): offset for topic, partition, offset in simulated.replayed.json("ends")}
    assert {place: offset for place, offset in served.items() if place not in simulated.left_out} == expected


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
        for path in (path for path in target.rglob("*") if path.suffix in REBUILT and path.parent.name in simulated.logs):
            if not _rebuilt_in_full(path, source / path.parent.name):
                continue
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
