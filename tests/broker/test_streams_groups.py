"""Groups of the streams protocol (KIP-1071): what is said of them is what their coordinator and kafka-streams-groups say."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.protocol.group_json import GroupDetail
from streaming.common.settings import Settings
from streaming.terminal.offline.group_reading import read_groups
from tests import witnesses
from tests.broker.clients import create_topic
from tests.broker.install import BROKER_VERSION, KAFKA_VERSION, compiled, java_command, streams_jar
from tests.broker.kafka import Kafka
from tests.broker.kafka_tools import run_tool
from tests.broker.lab import Lab, lab
from tests.broker.rebalancing import described_epoch
from tests.broker.running import running
from tests.group_answers import detailed
from tests.limits import SECONDS

_SOURCES = Path(__file__).parent / "streams_java"
TOPIC, GROUP = "clicks", "counting"
PARTITIONS = 3


@pytest.fixture(params=[BROKER_VERSION, KAFKA_VERSION])
def versioned(kafka: Kafka, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Kafka]:
    """That of the newest version may be anybody's."""
    yield from [kafka] if request.param == kafka.version else running(Kafka(tmp_path / "kafka", version=request.param))


class Application:
    """An application of Kafka Streams in a process of its own."""

    def __init__(self, kafka: Kafka, directory: Path) -> None:
        self._log = directory / "streams.log"
        jar = streams_jar()
        command = java_command("Streaming", kafka.bootstrap, GROUP, TOPIC, classes=compiled(_SOURCES, jar), libraries=(jar,), heap_mb=128)
        with self._log.open("wb") as stderr:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True, cwd=directory
            )
        witnesses.call("the application", lambda: witnesses.tail(self._log), lambda: self._process.poll() is None)

    def do(self, request: str) -> None:
        """Returns when it is done; states that come before are passed over."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{request}\n")
        self._process.stdin.flush()
        while (line := self._process.stdout.readline().strip()) != request:
            assert line, f"the application has ended: {witnesses.tail(self._log)}"

    def end(self) -> None:
        self._process.communicate(timeout=SECONDS)


@contextmanager
def application(kafka: Kafka, directory: Path) -> Iterator[Application]:
    started = Application(kafka, directory)
    try:
        yield started
    finally:
        started.end()


def shown(kafka: Kafka) -> GroupDetail | None:
    """What the disk shows of the group now; None if it is not there."""
    settings = Settings(server_properties=(kafka.broker(1).properties,))
    found = detailed(read_groups(open_log_dirs(kafka.log_dirs), [GROUP], settings, time.time_ns() // 1_000_000)).groups
    return found[0] if found else None


def left(kafka: Kafka) -> dict[int, tuple[int, int]]:
    """By partition: committed offset and lag, as the disk shows them."""
    found = shown(kafka)
    return {} if found is None else {each.partition: (each.committed, each.lag_offsets) for each in found.partitions}


def described(kafka: Kafka, *more: str) -> list[list[str]]:
    """The rows of kafka-streams-groups about the group, by cells."""
    printed = run_tool("streams-groups", "--bootstrap-server", kafka.bootstrap, "--describe", "--group", GROUP, *more)
    return [line.split() for line in printed.splitlines() if line.startswith(GROUP)]


def agree(kafka: Kafka, clients: Lab, state: str, members: int) -> None:
    """Wait until the coordinator says so, and hold what is shown against it and against the tool."""

    def listed() -> list[list[str]]:
        return [row for row in clients.ask("groups") if row[0] == GROUP]

    kafka.until(lambda: listed() == [[GROUP, "Streams", "streams", state]], f"the group is {state}", saw=listed)
    coordinator = {each.partition: each.offset for each in clients.commits() if each.group == GROUP}
    ends = {partition: end.high_watermark for (topic, partition), end in clients.ends().items() if topic == TOPIC}
    right = {partition: (offset, ends[partition] - offset) for partition, offset in coordinator.items()}
    kafka.until(lambda: left(kafka) == right, "the disk shows what the coordinator says", saw=lambda: (left(kafka), right))
    found = shown(kafka)
    assert found is not None
    summary = found.summary
    assert (summary.type, summary.protocol, summary.state, summary.members) == ("Streams", "streams", state, members)
    assert [client.startswith(f"client-of-{GROUP}") for client in found.clients] == [True] * members
    of_tool = {int(row[2]): int(row[3]) for row in described(kafka)}
    assert of_tool == ({partition: lag for partition, (_, lag) in right.items()} if members else {}), "of an empty group it prints nothing"
    assert len(described(kafka, "--members")) == members


def test_a_streams_group_is_what_its_coordinator_and_kafkas_tool_say(versioned: Kafka, tmp_path: Path) -> None:
    kafka = versioned
    create_topic(kafka.bootstrap, TOPIC, PARTITIONS)
    with lab(kafka.bootstrap, tmp_path / "lab.log") as clients, application(kafka, tmp_path) as streams:

        def produce(count: int) -> None:
            for partition in range(PARTITIONS):
                clients.produce(TOPIC, partition, [[(None, 100, None)] for _ in range(count + partition)])

        def done(kafka: Kafka) -> bool:
            return len(offsets := left(kafka)) == PARTITIONS and all(lag == 0 for _, lag in offsets.values())

        produce(10)
        kafka.until(lambda: done(kafka), "it has read everything", saw=lambda: left(kafka))
        agree(kafka, clients, "Stable", 1)
        streams.do("pause")
        produce(5)
        agree(kafka, clients, "Stable", 1)
        assert sorted(lag for _, lag in left(kafka).values()) == [5, 6, 7]
        streams.do("close")
        agree(kafka, clients, "Empty", 0)
        found = shown(kafka)
        assert found is not None
        assert found.summary.epoch == described_epoch(kafka.bootstrap, GROUP, "streams-groups")
        changes = [(each.joined_members, each.left_members) for each in found.rebalances[::-1] if each.kind == "members"]
        assert (changes[0], changes[-1]) == ((1, 0), (0, 1)), "it has joined first, and left last"
        assert sum(map(sum, changes)) == 2, changes
