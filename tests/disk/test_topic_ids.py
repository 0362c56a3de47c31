"""The topic ids of partition directories."""

import os
import shutil
from pathlib import Path

import pytest

from streaming.broker.disk import opening
from streaming.broker.disk.logdirs import TopicIds
from tests.builders import log_dir, partition


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return partition(log_dir(tmp_path), "t", topic_id=5).directory


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that were opened."""
    opened: list[Path] = []

    def noted(path: str | Path, flags: int) -> int:
        opened.append(Path(path))
        return os.open(path, flags)

    monkeypatch.setattr(opening, "_open", noted)
    return opened


def test_a_file_is_read_once_for_as_long_as_it_is_the_same(directory: Path, read: list[Path]) -> None:
    ids = TopicIds()
    assert [ids.read(directory) for _ in range(3)] == ["AAAAAAAAAAAAAAAAAAAABQ"] * 3
    assert read == [directory / "partition.metadata"]
    other = directory / "partition.metadata.tmp"
    other.write_text((directory / "partition.metadata").read_text().replace("BQ", "Bg"))
    other.rename(directory / "partition.metadata")
    assert ids.read(directory) == "AAAAAAAAAAAAAAAAAAAABg"


def test_no_file_and_no_directory_have_no_topic_id(directory: Path) -> None:
    ids = TopicIds()
    assert ids.read(directory)
    (directory / "partition.metadata").unlink()
    assert ids.read(directory) == ""
    shutil.rmtree(directory)
    assert ids.read(directory) == ""
    assert ids.unreadable == {}


def test_what_cannot_be_read_is_reported_once_until_it_changes(directory: Path, caplog: pytest.LogCaptureFixture) -> None:
    ids, file = TopicIds(), directory / "partition.metadata"
    good = file.read_text()
    file.write_text("version: 9\n")
    assert [ids.read(directory) for _ in range(3)] == [None] * 3
    assert [record.message for record in caplog.records] == ["partition.metadata cannot be read: the directory is left as it is"]
    assert list(ids.unreadable) == [directory]
    file.unlink()
    file.mkdir()
    assert [ids.read(directory) for _ in range(3)] == [None] * 3
    assert len(caplog.records) == 2
    file.rmdir()
    file.write_text(good)
    assert ids.read(directory) == "AAAAAAAAAAAAAAAAAAAABQ"
    assert ids.unreadable == {}
    file.write_text("nonsense")
    assert ids.read(directory) is None
    assert len(caplog.records) == 3  # for it has been readable since


def test_what_is_no_more_is_forgotten(directory: Path, read: list[Path]) -> None:
    ids = TopicIds()
    bad = partition(log_dir(directory.parent, "other"), "bad", topic_id=6).directory
    (bad / "partition.metadata").write_text("nonsense")
    assert ids.read(directory) is not None
    assert ids.read(bad) is None
    ids.keep({directory})
    assert ids.read(directory) is not None
    assert len(read) == 2
    assert list(ids.unreadable) == [bad]
    shutil.rmtree(bad)
    ids.keep(set())
    assert ids.unreadable == {}
    assert ids.read(directory) is not None
    assert len(read) == 3
