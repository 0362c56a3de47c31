"""The same on brokers of each version that segtail is tried with: its commands say what Kafka answered, and every file is known."""

import json
import subprocess
from dataclasses import dataclass
from typing import Any

import pytest

from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.disk.logdirs import open_log_dirs
from streaming.kafka.formats.segment_indexes import ABORTED
from tests.broker.install import BROKER_VERSION, KAFKA_VERSION, OLDER_VERSION
from tests.commands import run_command
from tests.recorded.recordings import Replayed, replay
from tests.recorded.worlds.versions import COUNTED, GROUPS, QUEUE, READ

KNOWN_KINDS = {"segment", "index", "snapshot", "checkpoint", "metadata", "directory", "delete", "deleted"}
FORMATTED = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"


@dataclass(frozen=True, slots=True)
class Release:
    """A version, its level of `share.version`, and the file that a node is formatted with."""

    version: str
    share_version: int | None
    formatted: str
    dead_letters: bool = False


RELEASES = (
    Release(BROKER_VERSION, 2, FORMATTED, dead_letters=True),
    Release(KAFKA_VERSION, 1, "bootstrap.checkpoint"),
    Release(OLDER_VERSION, None, "bootstrap.checkpoint"),
)


@dataclass(frozen=True, slots=True)
class World:
    """A broker at work, as it was."""

    release: Release
    replayed: Replayed

    def answers(self, name: str) -> dict[tuple[str, int], Any]:
        """By topic and partition."""
        return {(topic, number): rest[0] if len(rest) == 1 else tuple(rest) for topic, number, *rest in self.replayed.json(name)}

    def reported(self, command: str, *arguments: str) -> Any:
        """What a command says of the log dirs, as JSON."""
        done = self.run(command, "--format", "json", *arguments)
        assert done.returncode in ((0, 3, 4) if command == "disk" else (0, 3)), done.stderr  # how fast a disk fills is not known at once
        return json.loads(done.stdout)

    def run(self, command: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        disk = self.replayed.disk()
        given = ("--server-properties", ",".join(map(str, disk.properties)), "--at", str(disk.now_ms))
        return run_command(command, "--log-dirs", ",".join(map(str, disk.log_dirs)), *given, *arguments)


@pytest.fixture(scope="module", params=RELEASES, ids=lambda release: release.version)
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> World:
    release: Release = request.param
    return World(release, replay("versions", release.version, tmp_path_factory.mktemp("versions")))


def test_counts_and_ends_are_those_of_consumers_and_of_the_broker(world: World) -> None:
    rows = {(row["topic"], row["partition"]): row for row in world.reported("count", "--by", "partition")["rows"]}
    ends, stable = world.answers("ends"), world.answers("stable")
    assert {pair: row["next_offset"] for pair, row in rows.items() if pair in ends} == ends
    assert {pair: row["last_stable_offset"] for pair, row in rows.items() if pair in stable} == stable
    assert {pair: (rows[pair]["data"], rows[pair]["readable"]) for pair in COUNTED} == world.answers("consumed")
    assert rows["codecs", 0]["first_offset"] == 15
    assert rows[QUEUE, 0]["data"] >= READ // 4 if world.release.dead_letters else not rows[QUEUE, 0]["data"]


def test_transactions_are_those_of_the_coordinator(world: World) -> None:
    (row,) = world.reported("transactions")["rows"]
    assert (row["transactional_id"], row["topic"], row["partition"], row["verdict"]) == ("open", "ledger", 1, "open")
    indexes = [path.read_bytes() for log_dir in world.replayed.disk().log_dirs for path in log_dir.glob("ledger-1/*.txnindex")]
    assert [len(index) for index in indexes] == [2 * ABORTED.itemsize]


def test_groups_of_every_kind_are_as_the_coordinators_say(world: World) -> None:
    ends, shared = world.answers("ends"), world.answers("shared")
    committed = {(name, *at): (offset, ends[tuple(at)] - offset) for name, *at, offset in world.replayed.json("committed")}
    assert len(committed) == 3
    found = world.reported("groups", *GROUPS, *(["sharing"] if shared else []))["rows"]
    partitions = {(group["summary"]["group"], each["topic"], each["partition"]): each for group in found for each in group["partitions"]}
    assert {key: (of["committed"], of["lag_offsets"]) for key, of in partitions.items() if key[0] != "sharing"} == committed
    reported = {key[1:]: (of["committed"], of["lag_records_read_uncommitted"]) for key, of in partitions.items() if key[0] == "sharing"}
    assert {pair: numbers for pair, numbers in reported.items() if pair in shared} == shared
    assert bool(shared) == bool(world.release.share_version)


def test_what_is_on_its_way_to_a_dead_letter_queue_is_marked_where_there_is_one(world: World) -> None:
    states = set[int]()
    for directory in (path for log_dir in world.replayed.disk().log_dirs for path in log_dir.glob("__share_group_state-0")):
        dumped = run_command("dump", "--records", "--format", "json", str(directory))
        values = [json.loads(line)["value"] or {} for line in dumped.stdout.splitlines()]
        states |= {batch["delivery_state"] for value in values for batch in value.get("state_batches", ())}
    assert states - {0} == ({2, 3, 4} if world.release.dead_letters else {2, 4} if world.release.share_version else set())


def test_the_metadata_is_read_with_the_levels_of_the_release(world: World) -> None:
    log_dirs = world.replayed.disk().log_dirs
    cluster = ClusterView(open_log_dirs(log_dirs))
    cluster.refresh()
    assert cluster.known
    assert (cluster.partition_count("codecs"), cluster.partition_count("gone")) == (2, 0)
    assert sum((path / world.release.formatted).exists() for path in log_dirs) >= 1
    others = {release.formatted for release in RELEASES} - {world.release.formatted}
    assert not [path / other for path in log_dirs for other in others if (path / other).exists()]
    (metadata,) = (path for log_dir in log_dirs if (path := log_dir / "__cluster_metadata-0").exists())
    dumped = run_command("dump", "--records", str(metadata))
    assert dumped.returncode == 0, dumped.stderr
    levels = [line for line in dumped.stdout.splitlines() if '"share.version"' in line and "FEATURE_LEVEL" in line]
    assert all(f'"level": {world.release.share_version}' in line for line in levels)
    assert bool(levels) == bool(world.release.share_version)


def test_everything_on_disk_is_known_and_sound(world: World) -> None:
    log_dirs = world.replayed.disk().log_dirs
    verified = run_command("dump", "--verify", *(str(path) for log_dir in log_dirs for path in sorted(log_dir.glob("*-[0-9]"))))
    assert (verified.returncode, verified.stderr) == (0, "")
    disk = world.reported("disk")
    assert {kind["kind"] for each in disk["log_dirs"] for kind in each["kinds"]} <= KNOWN_KINDS
    assert disk["leftovers"] == []
