"""Limits of the system against the logs that are there."""

import resource
from pathlib import Path

import pytest

from streaming.terminal.doctor import log_dir_checks
from tests.builders import log_dir, partition
from tests.doctor.examined import FAULT, FINE, examined


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
