"""What a user may not read, asked by that user: a child of root that has become nobody."""

import ast
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.simulator.log import LogDir
from streaming.terminal.doctor import log_dir_checks
from tests.builders import batch, log_dir, partition
from tests.doctor.examined import FAULT, FINE, WARNING, examined
from tests.scratch import scratch
from tests.tools import NOBODY, needs_root


@pytest.fixture
def disk() -> Iterator[LogDir]:
    """A log dir that everybody may read, with a log of two segments and a metadata log with a snapshot."""
    with scratch() as name:
        Path(name).chmod(0o755)
        made = log_dir(Path(name))
        log = partition(made, "orders")
        log.append(batch(3, producer=7))
        log.roll()
        metadata = partition(made, "__cluster_metadata")
        (metadata.directory / "00000000000000000012-0000000001.checkpoint").write_bytes(b"")
        yield made


def as_nobody(disk: LogDir) -> list[tuple[str, str, str]]:
    """State, sentence and command of each finding, in the eyes of another user."""
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            found = examined(log_dir_checks.check_permissions, disk.path)
            os.write(writes, repr([(str(each.state), each.what, each.command) for each in found]).encode())
        finally:
            os._exit(0)
    os.close(writes)
    with os.fdopen(reads, "rb") as answer:
        text = answer.read()
    os.waitpid(child, 0)
    parsed: list[tuple[str, str, str]] = ast.literal_eval(text.decode())
    return parsed


@needs_root
def test_everything_can_be_read(disk: LogDir) -> None:
    assert as_nobody(disk) == [(FINE, f"everything in {disk.path} can be read", "")]


@needs_root
def test_snapshots_of_the_metadata_for_the_broker_alone_cost_verdicts(disk: LogDir) -> None:
    (snapshot,) = disk.path.glob("__cluster_metadata-0/*.checkpoint")
    snapshot.chmod(0o400)
    ((state, what, command),) = as_nobody(disk)
    assert (state, command) == (WARNING, f"sudo segtail doctor {disk.path}")
    assert what.startswith(f"{snapshot} may not be read by user nobody: leaders, replicas and the limits of topics are not known")
    assert "`unknown` instead of hanging" in what


@needs_root
def test_producer_snapshots_for_the_broker_alone_cost_open_transactions(disk: LogDir) -> None:
    (snapshot,) = disk.path.glob("orders-0/*.snapshot")
    snapshot.chmod(0o400)
    ((state, what, command),) = as_nobody(disk)
    assert (state, command) == (WARNING, f"sudo segtail doctor {disk.path}")
    assert "transactions that were open before the first segment that is read may be missed" in what


@needs_root
def test_a_directory_for_a_group_is_mended_by_the_group(disk: LogDir) -> None:
    (disk.path / "orders-0").chmod(0o750)
    ((state, what, command),) = as_nobody(disk)
    assert (state, command) == (FAULT, "sudo usermod -aG root nobody")
    assert what.endswith("orders-0 may not be read by user nobody: it is not watched: nothing of it is counted")


@needs_root
def test_many_files_of_one_cost_are_one_finding(disk: LogDir) -> None:
    for path in disk.path.glob("orders-0/*.log"):
        path.chmod(0o600)
    ((state, what, _),) = as_nobody(disk)
    assert state == FAULT
    assert " and 1 other may not be read" in what


def test_a_log_dir_that_is_none_is_a_fault(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    (tmp_path / "empty").mkdir()
    fault, fine = examined(log_dir_checks.check_permissions, disk.path, tmp_path / "empty")
    assert (fault.state, fine.state) == (FAULT, FINE)
    assert f"{tmp_path / 'empty'} is not a Kafka log dir" in fault.what
