"""Limits of the system against the logs that are there."""

import resource
from pathlib import Path

import pytest

from streaming.broker.watcher.structure import Limit
from streaming.terminal.doctor import log_dir_checks
from tests.builders import log_dir, partition
from tests.doctor.examined import FAULT, FINE, UNKNOWN, WARNING, examined


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    made = log_dir(tmp_path)
    for number in range(3):
        partition(made, "t", number)
    return made.path


def test_too_few_open_files(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 514))
    found = examined(log_dir_checks.check_limits, disk)[0]
    assert (found.check, found.state, found.command) == ("open files", FAULT, "sudo prlimit --pid $$ --nofile=2048:2048")
    assert found.what.startswith("514 files may be open (the hard limit), and an agent holds one for each of 3 logs")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 515))
    assert examined(log_dir_checks.check_limits, disk)[0].state is FINE
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, resource.RLIM_INFINITY))
    assert examined(log_dir_checks.check_limits, disk)[0].what.startswith("any number of files")


@pytest.mark.parametrize(
    ("have", "state", "command"),
    [(3, WARNING, "sudo sysctl -w fs.inotify.max_user_watches=128"), (4, FINE, ""), (None, UNKNOWN, "")],
)
def test_too_few_watches(disk: Path, have: int | None, state: str, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bound = None if have is None else Limit("fs.inotify.max_user_watches", have)
    monkeypatch.setattr(log_dir_checks, "limit", lambda _: bound)
    found = examined(log_dir_checks.check_limits, disk)[1]
    assert (found.check, found.state, found.command) == ("inotify watches", state, command)
