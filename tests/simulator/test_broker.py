"""The simulated broker: the same seed makes the same bytes, and its facts are what lies on its disk."""

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from streaming.errors import LogDirError
from streaming.simulator.broker import SimulatedBroker
from streaming.simulator.facts import Facts

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
    return [facts for facts in broker.facts() if facts.topic == topic]


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


def test_facts_are_what_lies_on_disk(busy: SimulatedBroker) -> None:
    for facts in busy.facts():
        logs = sorted(facts.directory.glob("*.log"))
        assert len(logs) == facts.segments
        assert int(logs[0].stem) <= facts.log_start_offset
        if facts.topic != "audit_log":  # preallocated
            assert sum(path.stat().st_size for path in logs) == facts.held.bytes


def test_rate_is_kept(busy: SimulatedBroker) -> None:
    written = sum(facts.appended.bytes for facts in busy.facts())
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


def test_offsets_are_committed_in_transactions(busy: SimulatedBroker) -> None:
    assert [facts.committed > 0 for facts in of_topic(busy, "__consumer_offsets")].count(True) == 1


def test_topic_that_nobody_writes_to_is_empty(busy: SimulatedBroker) -> None:
    (facts,) = of_topic(busy, "nobody.writes-here")
    assert (facts.log_end_offset, facts.appended.bytes) == (0, 0)


def test_checkpoint_of_high_watermarks_lists_every_partition_of_its_dir(busy: SimulatedBroker) -> None:
    for log_dir in busy.log_dirs:
        version, count, *lines = (log_dir / "replication-offset-checkpoint").read_text().splitlines()
        listed = {tuple(line.rsplit(" ", 2)[:2]) for line in lines}
        present = {(facts.topic, str(facts.partition)) for facts in busy.facts() if facts.directory.parent == log_dir}
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
    assert 500_000 < sum(facts.appended.bytes for facts in broker.facts()) < 2_000_000
    broker.close()
