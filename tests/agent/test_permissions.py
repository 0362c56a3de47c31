"""What an agent may not read, and what it says of that."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.agent.permissions import TOLD_AT_ONCE, Rights, survey
from streaming.disk.logdirs import open_log_dirs
from tests.builders import batch, log_dir, partition


@pytest.fixture
def disk() -> Iterator[Path]:
    """A log dir that another user can reach, which a folder of pytest's is not."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        made = log_dir(Path(directory))
        for topic in ("orders", "closed", "hidden"):
            partition(made, topic).append(batch(1))
        (made.path / "replication-offset-checkpoint").write_text("0\n0\n")
        yield made.path


def test_where_everything_may_be_read_nothing_is_said(disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    rights = Rights(open_log_dirs([disk]))
    rights.look()
    assert (rights.count, caplog.text) == (0, "")


CODE = """
import os, sys
from pathlib import Path
from streaming.agent.permissions import survey
from streaming.disk.logdirs import open_log_dirs
if os.geteuid() == 0:
    os.setgid(65534); os.setuid(65534)
for found in survey(open_log_dirs([Path(sys.argv[1])])):
    print(found.path.name, found.cost, sep="|")
"""


def test_each_thing_that_may_not_be_read_is_named_with_what_it_costs(disk: Path) -> None:
    """In a process that is not root's, to which every file is open."""
    (disk / "closed-0").chmod(0)
    log = next((disk / "hidden-0").glob("*.log"))
    log.chmod(0)
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


def test_each_is_told_once_and_many_by_their_number(disk: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    rights = Rights(open_log_dirs([disk]))
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).suffix != ".log" or mode != os.R_OK)
    for number in range(TOLD_AT_ONCE):
        (disk / "orders-0" / f"{number:020}.log").touch()
    rights.look()
    assert rights.count == TOLD_AT_ONCE + 2 == len(survey(open_log_dirs([disk])))
    assert sum(record.message == "may not be read" for record in caplog.records) == TOLD_AT_ONCE
    assert any(getattr(record, "files", 0) == 2 for record in caplog.records)
    caplog.clear()
    rights.look()
    assert caplog.text == ""
