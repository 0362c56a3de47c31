"""What an agent may not read, and what it says of that."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.broker.agent.permissions import LOGGED_AT_ONCE, Rights, find_unreadable
from streaming.broker.disk.logdirs import open_log_dirs
from tests.builders import batch, log_dir, partition
from tests.scratch import scratch


@pytest.fixture
def disk() -> Iterator[Path]:
    """A log dir that another user can reach, which a folder of pytest's is not."""
    with scratch() as directory:
        Path(directory).chmod(0o755)
        made = log_dir(Path(directory))
        for topic in ("orders", "closed", "hidden"):
            partition(made, topic).append(batch(1))
        (made.path / "replication-offset-checkpoint").write_text("0\n0\n")
        yield made.path


def test_where_everything_may_be_read_nothing_is_stated(disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    rights = Rights(open_log_dirs([disk]))
    rights.check()
    assert (rights.count, caplog.text) == (0, "")


CODE = """
import os, sys
from pathlib import Path
from streaming.broker.agent.permissions import find_unreadable
from streaming.broker.disk.logdirs import open_log_dirs
if os.geteuid() == 0:
    os.setgid(65534); os.setuid(65534)
for found in find_unreadable(open_log_dirs([Path(sys.argv[1])])):
    print(found.path.name, found.cost, sep="|")
"""


def test_each_thing_that_may_not_be_read_is_named_with_what_it_costs(disk: Path) -> None:
    """In a process that is not root's, to which every file is open."""
    (disk / "closed-0").chmod(0)
    log = next((disk / "hidden-0").glob("*.log"))
    log.chmod(0)
    index = log.with_suffix(".index")
    index.touch()
    index.chmod(0)  # which segtail does not read
    (disk / "replication-offset-checkpoint").chmod(0)
    try:
        done = subprocess.run([sys.executable, "-c", CODE, str(disk)], capture_output=True, text=True, check=True)
    finally:
        (disk / "closed-0").chmod(0o755)
    assert sorted(done.stdout.splitlines()) == [
        f"{log.name}|it is not watched: nothing of it is counted",
        "closed-0|it is not watched: nothing of it is counted",
        "replication-offset-checkpoint|high watermarks are not known",
    ]


def test_a_snapshot_of_the_metadata_that_only_the_broker_may_read_is_named(disk: Path) -> None:
    metadata = disk / "__cluster_metadata-0"
    metadata.mkdir(mode=0o755)
    snapshot = metadata / "00000000000000000100-0000000001.checkpoint"
    snapshot.touch()
    snapshot.chmod(0)  # the broker makes it 0400: this user may be the owner
    done = subprocess.run([sys.executable, "-c", CODE, str(disk)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"{snapshot.name}|leaders, topics and their settings are not known from this broker"]


def test_the_snapshot_that_a_node_is_formatted_with_costs_nothing(disk: Path) -> None:
    metadata = disk / "__cluster_metadata-0"
    metadata.mkdir(mode=0o755)
    snapshot = metadata / "00000000000000000000-0000000000.checkpoint"
    snapshot.touch()
    snapshot.chmod(0)
    done = subprocess.run([sys.executable, "-c", CODE, str(disk)], capture_output=True, text=True, check=True)
    assert done.stdout == ""


def test_each_is_reported_once_and_many_by_their_number(
    disk: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    rights = Rights(open_log_dirs([disk]))
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).suffix != ".log" or mode != os.R_OK)
    for number in range(LOGGED_AT_ONCE):
        (disk / "orders-0" / f"{number:020}.log").touch()
    rights.check()
    assert rights.count == LOGGED_AT_ONCE + 2 == len(find_unreadable(open_log_dirs([disk])))
    assert sum(record.message == "may not be read" for record in caplog.records) == LOGGED_AT_ONCE
    assert any(getattr(record, "files", 0) == 2 for record in caplog.records)
    assert "as the broker's own user, or with CAP_DAC_READ_SEARCH" in caplog.text, "no group may read what has mode 0400"
    caplog.clear()
    rights.check()
    assert caplog.text == ""


LOOKED_INTO = """
import logging, os, sys
from pathlib import Path
from streaming.broker.agent.host_status import CHECK_EVERY_MS
from tests.agents import Agent
if os.geteuid() == 0:
    os.setgid(65534); os.setuid(65534)
logging.basicConfig(format="%(message)s %(path)s")
agent = Agent(Path(sys.argv[1]))
for _ in range(2):
    agent.host_status.refresh()
    agent.now += CHECK_EVERY_MS
(status,) = agent.service.status().log_dirs
print(status.up, status.free > 0, status.delete >= 1000, status.stray)
"""


def test_a_directory_that_may_not_be_listed_does_not_make_its_log_dir_unreadable(disk: Path) -> None:
    for name in (f"gone-0.{1:032x}-delete", f"gone-1.{2:032x}-delete", f"lost-0.{3:032x}-stray"):
        (disk / name).mkdir()
        (disk / name / "00000000000000000000.log").write_bytes(bytes(range(250)) * 4)
    closed = [disk / f"gone-1.{2:032x}-delete", disk / f"lost-0.{3:032x}-stray"]
    for path in closed:
        path.chmod(0)
    (disk.parent / "journal").mkdir()
    (disk.parent / "journal").chmod(0o777)
    try:
        command = [sys.executable, "-c", LOOKED_INTO, str(disk), str(disk.parent / "journal" / "j")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    finally:
        for path in closed:
            path.chmod(0o755)
    assert done.stdout.split() == ["True", "True", "True", "0"]
    reported = [line for line in done.stderr.splitlines() if line.startswith("directory cannot be listed")]
    assert sorted(line.split()[-1] for line in reported) == [str(path) for path in closed]
