"""The files of a journal that are deleted, replaced or truncated under a running agent."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from streaming.broker.journal.journal import Journal
from streaming.errors import JournalError
from streaming.spark.client.agent_client import AgentClient
from tests.builders import CLUSTER_ID, batch, log_dir, partition
from tests.faults.consuming import address, registered
from tests.processes import segtail, until


def _replace(directory: Path) -> None:
    other = directory.with_name("other")
    shutil.copytree(directory, other)
    (other / "journal.db").replace(directory / "journal.db")


GONE: dict[str, tuple[Callable[[Path], object], str]] = {
    "deleted": (shutil.rmtree, "journal.db of the journal was deleted"),
    "truncated": (lambda directory: os.truncate(directory / "journal.db", 0), "journal.db of the journal was truncated"),
    "replaced": (_replace, "journal.db of the journal was replaced by another file"),
    "unlocked": (lambda directory: (directory / "journal.lock").unlink(), "journal.lock of the journal was deleted"),
    "a file": (lambda directory: (shutil.rmtree(directory), directory.touch()), "journal.db of the journal was deleted"),
}


@pytest.mark.parametrize("how", GONE)
def test_files_that_are_not_the_open_ones_are_an_error_that_names_them(tmp_path: Path, how: str) -> None:
    directory = tmp_path / "journal"
    journal = Journal(directory, CLUSTER_ID, lambda: 0)
    try:
        journal.database.check_files()
        change, error = GONE[how]
        change(directory)
        with pytest.raises(JournalError, match=error):
            journal.database.check_files()
    finally:
        journal.close()


def test_a_journal_in_memory_has_no_files() -> None:
    journal = Journal(None, CLUSTER_ID, lambda: 0)
    journal.database.check_files()
    journal.close()


@pytest.mark.slow
def test_an_agent_whose_journal_is_deleted_ends_and_the_next_one_publishes_everything(tmp_path: Path) -> None:
    disk, journal = log_dir(tmp_path), tmp_path / "j"
    log = partition(disk, "t")
    log.append(batch(1))
    arguments = ("agent", "--log-dirs", disk.path, "--journal", journal, "--listen", "127.0.0.1:0")
    with segtail(*arguments, stated=tmp_path / "said") as agent:
        client = AgentClient(until("it listens", lambda: address(agent)))
        until("everything is read", lambda: registered(client).total == log.active.size)
        shutil.rmtree(journal)
        assert agent.wait() == 1
        assert "was deleted while the agent ran: start the agent again" in agent.stated
        assert "Traceback" not in agent.stated
    log.append(batch(1))
    with segtail(*arguments, stated=tmp_path / "said2") as agent:
        client = AgentClient(until("it listens", lambda: address(agent)))
        until("everything is read", lambda: registered(client).total == log.active.size)
