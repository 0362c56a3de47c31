"""Which directories count as logs of the cluster: every command that reads log dirs says the same of them."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from streaming.terminal.cli.app import segtail
from tests.frozen import Frozen, unpack

VIEWS = ("partitions", "transactions", "retention")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Frozen:
    """Whole log dirs with one directory more, of a topic that another cluster may know."""
    found = unpack("transactions_v2", tmp_path_factory.mktemp("foreign"))
    here = next(path for log_dir in found.log_dirs for path in log_dir.glob("ghost-0"))
    shutil.copytree(here, here.parent / "gone-0")
    metadata = here.parent / "gone-0" / "partition.metadata"
    metadata.write_text(metadata.read_text()[:-22] + "AAECAwQFBgcICQoLDA0ODw")
    return found


def gone(cluster: Frozen) -> Path:
    (path,) = (path for log_dir in cluster.log_dirs for path in log_dir.glob("gone-0"))
    return path


def printed(cluster: Frozen, *arguments: str) -> tuple[int, dict[str, object]]:
    name, *options = arguments
    at = () if name == "count" else ("--at", str(cluster.frozen_ms))
    done = CliRunner().invoke(
        segtail, [name, "--log-dirs", ",".join(map(str, cluster.log_dirs)), *at, *options, "--json"], standalone_mode=False
    )
    assert done.exception is None, done.exception
    return done.return_value, json.loads(done.stdout)


def topics(page: dict[str, object]) -> set[str]:
    rows = page["rows"]
    assert isinstance(rows, list)
    return {row["topic"] for row in rows}


@pytest.mark.parametrize("name", ["transactions", "retention", "count"])
def test_a_directory_of_a_topic_that_the_metadata_does_not_know_is_left_out_and_named(cluster: Frozen, name: str) -> None:
    status, page = printed(cluster, name)
    assert "gone" not in topics(page)
    assert page["doubts"] == [f"1 log left out, because the topic is not in the metadata: {gone(cluster)}"]
    assert status == (3 if name == "transactions" else 4)


def test_so_do_the_commands_about_groups_if_all_are_asked_for_or_one_that_reads_it(cluster: Frozen) -> None:
    left_out = f"1 log left out, because the topic is not in the metadata: {gone(cluster)}"
    _, page = printed(cluster, "groups")
    assert left_out in page["doubts"]  # type: ignore[operator]
    _, page = printed(cluster, "groups", "--filter", "nobody")
    assert (page["rows"], left_out in page["doubts"]) == ([], True)  # type: ignore[operator]


@pytest.mark.parametrize("view", VIEWS)
def test_so_is_it_in_the_terminal(cluster: Frozen, view: str) -> None:
    _, page = printed(cluster, "top", "--once", "--view", view)
    assert "gone" not in topics(page)
    assert f"1 log left out, because the topic is not in the metadata: {gone(cluster)}" in page["doubts"]  # type: ignore[operator]


def test_disk_shows_it_because_it_takes_space_and_says_what_it_is(cluster: Frozen) -> None:
    _, page = printed(cluster, "disk", "--limit", "0")
    assert "gone" in topics(page)
    leftovers = page["leftovers"]
    assert isinstance(leftovers, list)
    assert [(each["path"], each["kind"]) for each in leftovers] == [(str(gone(cluster)), "foreign")]
    dirs = ",".join(map(str, cluster.log_dirs))
    text = CliRunner().invoke(segtail, ["disk", "--log-dirs", dirs, "--at", str(cluster.frozen_ms)], standalone_mode=False)
    assert "topic not in the metadata" in text.stdout


def test_without_it_retention_and_the_terminal_list_the_same_rows(tmp_path: Path) -> None:
    cluster = unpack("transactions_v2", tmp_path)
    status, alone = printed(cluster, "retention")
    _, terminal = printed(cluster, "top", "--once", "--view", "retention", "--limit", "1000")
    _, counted = printed(cluster, "count", "--by", "partition")
    assert (status, alone["doubts"]) == (0, [])

    def places(page: dict[str, object]) -> list[tuple[str, int]]:
        rows = page["rows"]
        assert isinstance(rows, list)
        return sorted((row["topic"], row["partition"]) for row in rows)

    _, taken = printed(cluster, "disk", "--by", "partition", "--limit", "0")
    assert places(alone) == places(terminal) == places(counted) == sorted(set(places(taken)))
    assert len(places(alone)) == 20
    assert ("__cluster_metadata", 0) in places(alone)
