"""What the locks in a real broker's log dirs show: it runs, hangs, is killed, is stopped, starts, gives one up; and those of a copy."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.broker.agent.process_watch import ProcessWatch
from streaming.broker.disk.broker_processes import ask_lock
from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.protocol.status_messages import ProcessStatus
from streaming.kafka.formats.metadata_records import Phase
from streaming.rules.broker_process import QUIET_MS, LockState, ProcessState
from tests.broker.clients import create_topic
from tests.broker.kafka import Kafka
from tests.broker.observed import Observed, now_ms

_ASKS = (
    "import sys; from pathlib import Path; from streaming.broker.disk.broker_processes import ask_lock\n"
    "print(1, flush=True)\n"
    "while True:\n  [ask_lock(Path(each)) for each in sys.argv[1:]]"
)
LOCKED, FREE = LockState.LOCKED, LockState.FREE


def locks(kafka: Kafka) -> list[LockState]:
    return [ask_lock(each).state for each in kafka.log_dirs]


@pytest.fixture(scope="module")
def observed(kafka_alone: Kafka) -> Observed:
    create_topic(kafka_alone.bootstrap, "locks.live", partitions=4)  # a broker without a replica counts as stopped, however it ended
    return Observed(kafka_alone.brokers[0])


@pytest.fixture(scope="module", autouse=True)
def asking(kafka_alone: Kafka) -> Iterator[None]:
    """A process that asks without a pause, over all that happens to the broker: it is in nobody's way."""
    process = subprocess.Popen([sys.executable, "-c", _ASKS, *map(str, kafka_alone.log_dirs)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline()
    yield
    assert process.poll() is None, "it asks to the end"
    process.kill()
    process.communicate()


def process_of(observed: Observed) -> ProcessStatus:
    found = observed.look()[0].process
    assert found is not None
    return found


def test_a_broker_that_runs_holds_the_lock_of_each_log_dir(kafka_alone: Kafka, observed: Observed) -> None:
    assert locks(kafka_alone) == [LOCKED, LOCKED]
    assert process_of(observed).state == ProcessState.UP


def test_one_that_hangs_is_there(kafka_alone: Kafka, observed: Observed) -> None:
    (pid,) = kafka_alone.pids
    kafka_alone.freeze()
    try:
        assert process_of(observed).state == ProcessState.UP
        assert locks(kafka_alone) == [LOCKED, LOCKED]
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_kill_is_seen_at_the_next_look_with_its_moment(kafka_alone: Kafka, observed: Observed) -> None:
    """Nobody fences a broker that is the only controller: without the locks it would be running for ever."""
    before_ms = now_ms()
    process_of(observed)
    kafka_alone.kill()
    killed_ms = now_ms()
    found = process_of(observed)
    looked_ms = now_ms()
    assert found.state == ProcessState.ENDED
    assert before_ms <= found.last_ms <= killed_ms
    assert found.last_ms <= found.since_ms <= looked_ms
    assert observed.phases() == {1: (Phase.DOWN, found.since_ms / 1000)}
    assert process_of(observed).since_ms == found.since_ms, "also at later looks"


def test_an_observer_that_starts_later_says_that_nobody_is_there_once_nothing_is_written_for_a_minute(kafka_alone: Kafka) -> None:
    later = ProcessWatch(open_log_dirs(kafka_alone.log_dirs), now_ms)
    later.refresh()
    found = later.status_of(1)
    assert found is not None
    assert found.state == ProcessState.UNKNOWN
    assert "within the last minute" in found.why
    later = ProcessWatch(open_log_dirs(kafka_alone.log_dirs), lambda: now_ms() + QUIET_MS)
    later.refresh()
    found = later.status_of(1)
    assert found is not None
    assert (found.state, found.since_ms) == (ProcessState.FREE, -1)
    assert now_ms() - found.last_ms >= 0


def test_it_starts_beside_one_that_asks_without_a_pause(kafka_alone: Kafka, observed: Observed) -> None:
    began_ms = now_ms()
    kafka_alone.start()
    found = process_of(observed)
    assert found.state == ProcessState.UP
    assert began_ms <= found.since_ms <= now_ms()
    kafka_alone.until(lambda: observed.phases()[1][0] is Phase.RUNNING, "it runs", observed.phases)


def test_a_copy_of_a_broker_that_runs_is_nobodys(kafka_alone: Kafka, tmp_path: Path) -> None:
    written = shutil.ignore_patterns("*.tmp")  # they are renamed at any moment
    copies = [Path(shutil.copytree(each, tmp_path / each.name, ignore=written)) for each in kafka_alone.log_dirs]
    watch = ProcessWatch(open_log_dirs(copies), lambda: now_ms() + QUIET_MS)
    watch.refresh()
    found = watch.status_of(1)
    assert found is not None
    assert found.state == ProcessState.FREE
    assert locks(kafka_alone) == [LOCKED, LOCKED]


def test_a_log_dir_that_it_gives_up_is_free_beside_one_that_it_holds(kafka_alone: Kafka, observed: Observed) -> None:
    metadata = next(each for each in kafka_alone.log_dirs if (each / "__cluster_metadata-0").exists())
    (other,) = (each for each in kafka_alone.log_dirs if each != metadata)
    away = other.with_name("away")
    other.rename(away)  # what it writes there every five seconds fails
    kafka_alone.until(lambda: ask_lock(away).state is FREE, "it gives the log dir up", lambda: locks(kafka_alone))
    away.rename(other)
    status, log_dirs = observed.look()
    assert status.process is not None
    assert status.process.state == ProcessState.UP
    assert {Path(each.log_dir): each.lock for each in log_dirs} == {metadata: LOCKED, other: FREE}
    assert observed.offline() == [str(other)]


def test_an_orderly_stop_is_no_kill(kafka_alone: Kafka, observed: Observed) -> None:
    process_of(observed)
    kafka_alone.stop()
    found = process_of(observed)
    assert found.state == ProcessState.ENDED
    assert [phase for phase, _ in observed.phases().values()] == [Phase.STOPPING]
