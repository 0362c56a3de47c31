"""The settings of brokers that run on this machine, out of a directory like /proc."""

from pathlib import Path

import pytest

from streaming.broker.disk.broker_processes import LOOKED_SECONDS
from tests.disk.machine import Machine

HOUR = 3_600_000


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


def complaints(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    """Of which broker nothing was used, and what not."""
    lines = [record for record in caplog.records if "--server-properties" in record.message]
    return [(line.__dict__["broker"], line.__dict__["not_used"]) for line in lines]


def test_a_file_that_cannot_be_read_is_logged_once(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    machine.run(machine.path)  # no regular file
    for machine.now in (0.0, LOOKED_SECONDS):
        assert machine.retention_ms() == -1
    ((broker, file),) = complaints(caplog)
    assert (broker, file.partition(": ")[0]) == (1, str(machine.path))


def test_nobody_is_told_to_give_what_was_given(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    machine.run(machine.path)
    machine.given.add(1)
    assert (machine.retention_ms(1), complaints(caplog)) == (-1, [])
    machine.retention_ms(2)
    assert [broker for broker, _ in complaints(caplog)] == [2]


def test_each_of_three_brokers_has_its_own_file_and_none_is_blamed_for_another_ones(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    """That of the second cannot be read: only of it something is not known, and the other files are not its own."""
    machine.run(machine.path, number=2)
    for node, directory in ((1, "d0"), (3, "d3")):
        machine.run(machine.properties(f"{node}.properties", node=node, dirs=str(machine.path / directory), hours=node), number=10 - node)
    assert [machine.retention_ms(node) for node in (1, 2, 3)] == [HOUR, -1, 3 * HOUR]
    ((broker, file),) = complaints(caplog)
    assert (broker, file.partition(": ")[0]) == (2, str(machine.path))


def test_a_file_counts_by_its_node_id_and_its_log_dirs_together(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    """Two clusters on one machine both have a node 1; and a broker does not start on log dirs of another node."""
    elsewhere = machine.path / "elsewhere"
    elsewhere.mkdir()
    other, wrong = machine.properties("other", dirs=str(elsewhere)), machine.properties("wrong", node=7)
    machine.run(other, number=1)
    machine.run(wrong, number=2)
    machine.run(machine.properties("third", node=3, dirs=str(machine.path / "d3")), number=3)
    assert machine.retention_ms() == -1
    (complaint,) = complaints(caplog)
    files = complaint[1].split("; ")
    assert (complaint[0], sorted(files)) == (1, [f"{other}: node 1, other log dirs", f"{wrong}: node 7, these log dirs"])


def test_the_same_path_in_a_container_is_another_log_dir(machine: Machine) -> None:
    """Its file has the node id and the path of the log dir here, which is a directory of its own there."""
    file = machine.properties()
    inside = machine.path / "container"
    (inside / str(machine.path / "d0")[1:]).mkdir(parents=True)
    (inside / str(file)[1:]).write_text(file.read_text())
    machine.run(file)
    root = machine.proc / "77" / "root"
    root.unlink()
    root.symlink_to(inside)
    assert machine.retention_ms() == -1


def test_a_log_dir_that_is_gone_is_no_matter_of_a_file(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    machine.run(machine.properties())
    (machine.path / "d0").rename(machine.path / "away")
    assert (machine.retention_ms(), complaints(caplog)) == (-1, [])


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
