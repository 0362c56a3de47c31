"""The simulated broker: the same seed makes the same bytes, and its facts are what lies on its disk."""

import json
import shutil
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from streaming.errors import LogDirError
from streaming.kafka.formats.consumer_offsets import OffsetCommit, OffsetCommitKey
from streaming.simulator.broker import SimulatedBroker
from tests.facts import Facts, facts_of_all
from tests.formats.dumped import columns
from tests.formats.offsets_topic import read, records_of

pytestmark = pytest.mark.xdist_group("simulator/test_broker")  # one process makes the busy broker, not each

START = 1_700_000_000_000
MINUTE = 60_000
RATE = 1_500_000


def broker_at(directory: Path, seed: int = 7, rate: float = 400_000) -> SimulatedBroker:
    directory.mkdir(exist_ok=True)
    return SimulatedBroker(directory, seed=seed, clock=lambda: START, rate_bytes_per_second=rate)


def tree(broker: SimulatedBroker) -> dict[str, bytes]:
    """Every file of its log dirs."""
    files = [path for log_dir in broker.log_dirs for path in log_dir.rglob("*") if path.is_file()]
    return {str(path.relative_to(broker.log_dirs[0].parent)): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedBroker]:
    """A broker after a busy minute."""
    directory = tmp_path_factory.mktemp("busy")
    broker = broker_at(directory, rate=RATE)
    broker.step(START + MINUTE)
    yield broker
    broker.close()
    shutil.rmtree(directory)


def of_topic(broker: SimulatedBroker, topic: str) -> list[Facts]:
    return [facts for facts in facts_of_all(broker) if facts.topic == topic]


def test_bytes_follow_from_seed_and_time_alone(tmp_path: Path) -> None:
    once, often, other = broker_at(tmp_path / "a"), broker_at(tmp_path / "b"), broker_at(tmp_path / "c", seed=8)
    once.step(START + 7_000)
    other.step(START + 7_000)
    for now in range(START, START + 7_001, 7):
        often.step(now)
    for broker in (once, often, other):
        broker.close()
    assert tree(once) == tree(often)
    assert tree(once) != tree(other)


def test_history_has_the_times_of_then_and_the_traffic_begins_at_the_start(tmp_path: Path) -> None:
    broker = SimulatedBroker(tmp_path, seed=7, clock=lambda: START, history_ms=10 * MINUTE, rate_bytes_per_second=RATE)
    quiet = sum(facts.appended.bytes for facts in facts_of_all(broker))
    broker.step(START + 2_000)
    assert sum(facts.appended.bytes for facts in facts_of_all(broker)) - quiet > RATE
    assert RATE < quiet < 10 * RATE
    (metadata,) = of_topic(broker, "__cluster_metadata")
    assert metadata.log_end_offset > 2 * 600
    written = (of_topic(broker, "invoices")[0].directory / f"{0:020}.log").read_bytes()
    assert START - 10 * MINUTE <= int.from_bytes(written[27:35]) < START - 9 * MINUTE
    broker.close()


def test_facts_are_what_lies_on_disk(busy: SimulatedBroker) -> None:
    for facts in facts_of_all(busy):
        logs = sorted(facts.directory.glob("*.log"))
        assert len(logs) == facts.segments
        assert int(logs[0].stem) <= facts.log_start_offset
        if facts.topic != "audit_log":  # preallocated
            assert sum(path.stat().st_size for path in logs) == facts.held.bytes


def test_rate_is_kept(busy: SimulatedBroker) -> None:
    written = sum(facts.appended.bytes for facts in facts_of_all(busy))
    assert 0.85 * RATE < written / 60 < 1.15 * RATE


def test_retention_has_deleted_old_segments(busy: SimulatedBroker) -> None:
    for topic in ("app.logs-json", "orders-eu-1"):
        assert all(facts.log_start_offset > 0 for facts in of_topic(busy, topic)), topic


def test_transactions_commit_and_abort_and_one_stays_open(busy: SimulatedBroker) -> None:
    payments = of_topic(busy, "payments")
    assert all(facts.committed > facts.aborted > 0 for facts in payments)
    first = payments[2].open_transactions[0][1]
    assert payments[2].last_stable_offset == first
    assert payments[2].log_end_offset > first + 1000


def test_one_transaction_is_nobodys(busy: SimulatedBroker) -> None:
    invoices = of_topic(busy, "invoices")
    first = invoices[0].open_transactions[0][1]
    assert invoices[0].last_stable_offset == first
    assert first > 0  # the transaction that it belonged to was aborted before


def test_offsets_are_committed_in_transactions(busy: SimulatedBroker) -> None:
    assert [facts.committed > 0 for facts in of_topic(busy, "__consumer_offsets")].count(True) == 1


def commits(broker: SimulatedBroker, group: str) -> dict[int, list[int]]:
    """The offsets that a group has committed, by partition of its topic."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    for facts in of_topic(broker, "__consumer_offsets"):
        (data,) = (path.read_bytes() for path in facts.directory.glob("*.log"))
        for key, value in map(read, records_of(data, columns(data))):
            if isinstance(key, OffsetCommitKey) and isinstance(value, OffsetCommit) and key.group == group:
                found[key.partition].append(value.offset)
    return found


def test_groups_commit_as_they_read(busy: SimulatedBroker) -> None:
    healthy, slow = commits(busy, "click-counter"), commits(busy, "log-search")
    held, stopped = commits(busy, "ledger"), commits(busy, "audit-export")
    processor, behind = commits(busy, "payment-processor"), commits(busy, "invoice-mailer")
    assert [len(found) for found in (healthy, slow, held, stopped, processor, behind)] == [4, 2, 3, 1, 2, 2]
    for facts in of_topic(busy, "web.clicks"):
        assert facts.log_end_offset - healthy[facts.partition][-1] < 0.2 * facts.log_end_offset  # what came since its last commit
    for facts in of_topic(busy, "app.logs-json"):
        assert 0.5 * facts.log_end_offset < slow[facts.partition][-1] < 0.85 * facts.log_end_offset
    payments = of_topic(busy, "payments")
    assert held[2][-3:] == [payments[2].last_stable_offset] * 3
    assert held[0][-1] > held[0][-3]
    assert behind[0][-3:] == [of_topic(busy, "invoices")[0].last_stable_offset] * 3
    assert len(set(stopped[0][3:])) == 1 < len(set(stopped[0]))
    assert len(stopped[0]) >= 10
    for facts in of_topic(busy, "orders-eu-1"):
        assert facts.log_start_offset < processor[facts.partition][-1] <= facts.log_end_offset
        assert processor[facts.partition] == sorted(processor[facts.partition])


def test_topic_that_nobody_writes_to_is_empty(busy: SimulatedBroker) -> None:
    (facts,) = of_topic(busy, "nobody.writes-here")
    assert (facts.log_end_offset, facts.appended.bytes) == (0, 0)


def test_checkpoint_of_high_watermarks_lists_every_partition_of_its_dir(busy: SimulatedBroker) -> None:
    for log_dir in busy.log_dirs:
        version, count, *lines = (log_dir / "replication-offset-checkpoint").read_text().splitlines()
        listed = {tuple(line.rsplit(" ", 2)[:2]) for line in lines}
        present = {(facts.topic, str(facts.partition)) for facts in facts_of_all(busy) if facts.directory.parent == log_dir}
        assert (version, int(count)) == ("0", len(lines))
        assert listed == present - {("__cluster_metadata", "0")}


def test_clean_end(tmp_path: Path) -> None:
    broker = broker_at(tmp_path)
    broker.step(START + 1_000)
    broker.close()
    for log_dir in broker.log_dirs:
        assert json.loads((log_dir / ".kafka_cleanshutdown").read_text()) == {"version": 0, "brokerEpoch": 11}
        assert not [path for path in log_dir.rglob("*.index") if path.stat().st_size == 10_485_760]


def test_lock_is_held_while_it_lives(tmp_path: Path) -> None:
    broker = broker_at(tmp_path)
    lock = tmp_path / "d0" / ".lock"
    try_lock = f"import fcntl; fcntl.lockf(open({str(lock)!r}, 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    # Locks of this kind belong to a process, so another one has to try.
    assert b"BlockingIOError" in subprocess.run([sys.executable, "-c", try_lock], capture_output=True, check=False).stderr
    broker.close()
    assert subprocess.run([sys.executable, "-c", try_lock], capture_output=True, check=False).returncode == 0


def test_log_dir_in_use_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "d0").mkdir()
    (tmp_path / "d0" / "precious").touch()
    with pytest.raises(LogDirError, match="d0 is not empty"):
        broker_at(tmp_path)


class Time(threading.Event):
    """A clock that moves when somebody waits, and ends a run; a pause may come in between."""

    def __init__(self, pauses: Iterable[int] = ()) -> None:
        super().__init__()
        self.now = START
        self._pauses = iter(pauses)
        self._end = START + 5_000

    def clock(self) -> int:
        return self.now

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        assert timeout > 0
        pause = next(self._pauses, 0)
        self._end += pause
        self.now += round(timeout * 1000) + pause
        if self.now >= self._end:
            self.set()
        return self.is_set()


@pytest.mark.parametrize(("pauses", "seconds"), [((), 5), ((0, 0, 3_600_000), 3_605)])
def test_run_keeps_pace_with_the_clock_but_not_with_a_machine_asleep(tmp_path: Path, pauses: tuple[int, ...], seconds: int) -> None:
    time = Time(pauses)
    broker = SimulatedBroker(tmp_path, seed=1, clock=time.clock, rate_bytes_per_second=200_000)
    broker.run(time)
    assert time.now >= START + seconds * 1000
    assert broker.next_due_ms > time.now - 1_000
    assert 500_000 < sum(facts.appended.bytes for facts in facts_of_all(broker)) < 2_000_000
    broker.close()
