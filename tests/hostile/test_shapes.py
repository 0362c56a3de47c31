"""Something else in place of one of Kafka's files: each command that needs the file says so, and its status is not 0."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from streaming.simulator.log import LogDir
from tests.builders import batch, log_dir, partition
from tests.commands import run_command
from tests.limits import SECONDS
from tests.tables import each_row

SHAPES: Mapping[str, Callable[[Path], object]] = {
    "is no file, but a pipe": os.mkfifo,
    "is a directory": Path.mkdir,
    "cannot be read (Too many levels": lambda path: path.symlink_to(path.name),
    "leads nowhere": lambda path: path.symlink_to("nowhere"),
    "is no file, but a pipe, a socket or a device": lambda path: path.symlink_to("/dev/zero"),
}
FILES = (
    "orders-0/00000000000000000000.log",
    "orders-0/leader-epoch-checkpoint",
    "orders-0/partition.metadata",
    "orders-0/00000000000000000003.snapshot",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
)


@pytest.fixture
def disk(tmp_path: Path) -> LogDir:
    made = log_dir(tmp_path)
    log = partition(made, "orders", topic_id=7)
    log.append(batch(3, producer=7))
    log.roll()
    log.append(batch(1))
    made.write_high_watermarks()
    made.write_log_starts()
    log.close()
    return made


def put(path: Path, shape: str) -> bytes:
    """Put something else there; returns what the file was."""
    before = path.read_bytes()
    path.unlink()
    SHAPES[shape](path)
    return before


def restore(path: Path, before: bytes) -> None:
    path.rmdir() if path.is_dir() else path.unlink()
    path.write_bytes(before)


@each_row("shape", SHAPES)
def test_doctor_names_what_is_no_file(disk: LogDir, shape: str) -> None:
    for name in FILES:
        path = disk.path / name
        before = put(path, shape)
        ended = run_command("doctor", "--log-dirs", disk.path)
        assert (ended.returncode, shape in ended.stdout, str(path) in ended.stdout) == (3, True, True), (name, ended.stdout)
        restore(path, before)


def test_transactions_whose_beginning_cannot_be_read_are_not_none(tmp_path: Path) -> None:
    """The active segment can: so the log is watched, and its open transactions are not known."""
    disk = log_dir(tmp_path)
    log = partition(disk, "orders", topic_id=7)
    log.append(batch(3, producer=7, transactional=True))
    log.roll()
    log.append(batch(1))
    log.close()
    disk.write_high_watermarks()
    disk.write_log_starts()
    segment = disk.path / "orders-0" / f"{0:020}.log"
    code = "from streaming.terminal.cli import app; app.run()"
    segment.chmod(0)
    without = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search", "--inh-caps", "-dac_override,-dac_read_search")
    asked = (*(without if os.geteuid() == 0 else ()), sys.executable, "-c", code, "transactions", "--log-dirs", str(disk.path))
    ended = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert ended.returncode == 4, ended.stdout + ended.stderr
    assert f"{segment.parent}: some of what is needed to know what is open there" in ended.stdout


@each_row("number, shape", enumerate(SHAPES))
def test_groups_names_the_coordinator_whose_only_segment_is_no_file(tmp_path: Path, number: int, shape: str) -> None:
    made = log_dir(tmp_path, f"d{number}")
    partition(made, "__consumer_offsets", topic_id=9).close()
    put(made.path / "__consumer_offsets-0" / f"{0:020}.log", shape)
    ended = run_command("groups", "--log-dirs", made.path)
    stated = f"groups of {made.path}/__consumer_offsets-0 are not known" in ended.stdout + ended.stderr
    assert (ended.returncode, stated) == (4, True), ended.stdout + ended.stderr


@pytest.mark.parametrize("name", ["replication-offset-checkpoint", "log-start-offset-checkpoint"])
def test_an_answer_without_a_checkpoint_is_not_the_whole_truth(disk: LogDir, name: str) -> None:
    assert run_command("transactions", "--log-dirs", disk.path).returncode == 0
    put(disk.path / name, "is no file, but a pipe")
    for command in ("transactions", "retention"):
        ended = run_command(command, "--log-dirs", disk.path)
        assert ended.returncode == 4, ended.stdout
        assert f"{disk.path / name} cannot be read or is damaged: the offsets in it are not known" in ended.stdout
