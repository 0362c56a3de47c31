"""The line about limits that are assumed, and the server.properties that it offers."""

from pathlib import Path

import pytest

from streaming.common.settings import Settings
from streaming.terminal.cli.assumed_limits import assumed_line
from tests.builders import log_dir


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    return log_dir(tmp_path, "data/d0").path


def offered(*log_dirs: Path, **given: object) -> str:
    line = assumed_line(["a", "b", "c", "d"], Settings(log_dirs=log_dirs, **given))
    assert line.startswith("assumed: a, b, c and 1 more: the broker's server.properties or the topics' settings are not known here, ")
    return line.partition("Give --server-properties")[2].partition("; without a metadata log")[0].strip()


@pytest.mark.parametrize("place", ["config/server.properties", "data/server.properties", "config/kraft/server.properties"])
def test_the_file_of_the_same_installation_is_offered(tmp_path: Path, disk: Path, place: str) -> None:
    file = tmp_path / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("node.id=1\n")
    assert offered(disk) == str(file)
    assert offered(disk, broker_config={"log.retention.hours": "1"}) == ""
    assert offered(disk, server_properties=(file,)) == ""
    file.write_text("node.id=2\n")
    assert offered(disk) == "", "it is of another node"
    file.write_text("log.dirs=/d\n")
    assert offered(disk) == ""


def test_the_nearest_of_each_node_is_offered(tmp_path: Path, disk: Path) -> None:
    for where in (tmp_path, tmp_path / "data"):
        (where / "config").mkdir()
        (where / "config" / "server.properties").write_text("node.id=1\n")
    assert offered(disk) == str(tmp_path / "data/config/server.properties")
    other = log_dir(tmp_path, "e0", broker=2).path
    (tmp_path / "server.properties").write_text("node.id=2\n")
    assert offered(disk, other) == f"{tmp_path / 'data/config/server.properties'},{tmp_path / 'server.properties'}"


def test_nothing_is_offered_where_there_is_none_and_of_a_job(disk: Path) -> None:
    assert offered(disk) == ""
    assert "Give --server-properties; without a metadata log, set topic_config." in assumed_line(["a"])
