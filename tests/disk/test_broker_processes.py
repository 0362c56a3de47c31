"""The settings of brokers that run on this machine, out of a directory like /proc."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from streaming.broker.disk.broker_processes import LOOKED_SECONDS, RunningBrokers
from streaming.broker.disk.logdirs import open_log_dirs
from streaming.rules.config_levels import topic_configs
from streaming.rules.config_values import ValueSource
from streaming.rules.limits import effective_limits
from tests.builders import log_dir

HOUR = 3_600_000


@dataclass
class Machine:
    """A directory like /proc, and a log dir of broker 1."""

    path: Path
    now: float = 0.0

    def __post_init__(self) -> None:
        self.proc = self.path / "proc"
        self.proc.mkdir()
        (self.proc / "self").mkdir()
        self.log_dirs = open_log_dirs([log_dir(self.path).path])
        self.brokers = RunningBrokers(self.proc, lambda: self.now)

    def properties(self, name: str = "server.properties", *, node: int = 1, dirs: str = "", hours: int = 2) -> Path:
        file = self.path / name
        file.write_text(f"node.id={node}\nlog.dirs={dirs or self.path / 'd0'}\nlog.retention.hours={hours}\n")
        return file

    def run(self, *arguments: object, number: int = 77, main: str = "kafka.Kafka") -> None:
        directory = self.proc / str(number)
        directory.mkdir()
        (directory / "cmdline").write_bytes(b"\0".join(str(each).encode() for each in ("java", "-Xmx1g", main, *arguments)) + b"\0")
        (directory / "root").symlink_to("/")
        (directory / "cwd").symlink_to(self.path)

    def retention_ms(self) -> int:
        """What is found of the broker, -1 for nothing."""
        found = self.brokers.configs(1, self.log_dirs.of(1))
        if found is None:
            return -1
        limits = effective_limits("t", topic_configs([]).over(found))
        assert limits.source is ValueSource.STATIC
        return limits.retention_ms


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_the_settings_of_a_broker_that_runs_are_those_of_its_file(machine: Machine) -> None:
    machine.run(machine.properties())
    assert machine.retention_ms() == 2 * HOUR


def test_a_path_from_where_it_was_started_and_what_overrides_the_file_count(machine: Machine) -> None:
    machine.properties()
    machine.run("server.properties", "--override", "log.retention.ms=5000")
    assert machine.retention_ms() == 5000


def test_what_is_of_another_broker_or_no_broker_does_not_count(machine: Machine) -> None:
    other = machine.path / "other"
    other.mkdir()
    machine.run(machine.properties("a", node=2), number=1)
    machine.run(machine.properties("b", dirs=str(other)), number=2)
    machine.run(machine.properties("c"), number=3, main="kafka.Kafkaesque")
    machine.run(number=4)
    machine.run(machine.path / "none", number=5)
    assert machine.retention_ms() == -1


def test_a_process_of_a_stranger_is_not_asked(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.run(machine.properties())
    directory, usual = machine.proc / "77", Path.stat

    def of_stranger(path: Path, **options: bool) -> object:
        found = usual(path, **options)
        return found if path != directory else type("Stat", (), {"st_uid": found.st_uid + 1})

    monkeypatch.setattr(Path, "stat", of_stranger)
    assert machine.retention_ms() == -1


def test_a_file_that_cannot_be_read_is_logged_once(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    machine.run(machine.path)  # no regular file
    for machine.now in (0.0, LOOKED_SECONDS):
        assert machine.retention_ms() == -1
    (line,) = [record for record in caplog.records if "server.properties" in record.message]
    assert str(machine.path) in line.__dict__["error"]


def test_processes_are_looked_at_again_and_what_was_found_outlives_them(machine: Machine) -> None:
    assert machine.retention_ms() == -1
    file = machine.properties()
    machine.run(file)
    assert machine.retention_ms() == -1
    machine.now = LOOKED_SECONDS
    assert machine.retention_ms() == 2 * HOUR
    (machine.proc / "77" / "cmdline").write_bytes(b"")
    machine.now = 2 * LOOKED_SECONDS
    assert machine.retention_ms() == 2 * HOUR
