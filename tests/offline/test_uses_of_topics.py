"""The list of topics from log dirs: what nobody uses is said only where a use would have been seen."""

from collections.abc import Callable
from pathlib import Path
from shutil import rmtree

import pytest

from streaming.common.settings import Settings
from tests.builders import NOW
from tests.tables import each_row
from tests.worlds.topics import DAY, LONG_AGO, World


def played(*steps: Callable[[World], object], partitions: int = 1, committed: bool = True) -> Callable[[Path], World]:
    def play(path: Path) -> World:
        world = World(path, partitions, committed=committed)
        for step in steps:
            step(world)
        return world

    return play


CASES = {
    "nobody": (played(), "no", ""),
    "nobody has ever committed": (played(committed=False), "no", ""),
    "appended lately": (played(lambda world: world.append(NOW - DAY)), "yes", ""),
    "committed lately": (played(lambda world: world.commit(NOW - DAY)), "yes", ""),
    "made lately": (played(lambda world: world.make(NOW - DAY)), "not_yet", ""),
    "made lately, and committed in": (played(lambda world: world.make(NOW - DAY), lambda world: world.commit(NOW - DAY)), "yes", ""),
    "made lately, where commits of before are not known": (
        played(
            lambda world: world.commit(NOW - 20 * DAY),
            World.compact,
            lambda world: world.commit(NOW - 9 * DAY, gone=True),
            lambda world: world.make(NOW - DAY),
        ),
        "not_yet",
        "",
    ),
    "made lately, and commits since are not known": (
        played(lambda world: world.make(NOW - DAY), lambda world: world.coordinator.remove()),
        "unknown",
        "commits are not known",
    ),
    "made lately, and a partition is not here": (
        played(lambda world: world.make(NOW - DAY), partitions=2),
        "unknown",
        "not all of its partitions are seen",
    ),
    "made long ago": (played(lambda world: world.make(LONG_AGO)), "no", ""),
    "emptied lately": (
        played(lambda world: world.make(NOW - DAY, base_offset=40)),
        "unknown",
        "nothing shows when it was last appended to",
    ),
    "emptied long ago": (played(lambda world: world.make(LONG_AGO, base_offset=40)), "no", ""),
    "committed long ago": (played(lambda world: world.commit(LONG_AGO)), "no", ""),
    "a commit that has expired since": (
        played(lambda world: world.commit(NOW - 20 * DAY), lambda world: world.commit(NOW - 9 * DAY, gone=True)),
        "yes",
        "",
    ),
    "the coordinator's log is compacted": (
        played(lambda world: world.commit(NOW - 20 * DAY), World.compact, lambda world: world.commit(NOW - 9 * DAY, gone=True)),
        "unknown",
        "a commit from before 2023-11-05",
    ),
    "it was compacted before": (
        played(lambda world: world.commit(NOW - 50 * DAY), World.compact, lambda world: world.commit(LONG_AGO, gone=True)),
        "no",
        "",
    ),
    "nothing is left of the coordinator's log": (
        played(lambda world: world.commit(NOW - 50 * DAY), World.compact),
        "unknown",
        "for how long commits are kept is not known",
    ),
    "nothing at all is left of it": (
        played(lambda world: world.commit(NOW - 50 * DAY), World.compact, World.empty),
        "unknown",
        "for how long commits are kept is not known",
    ),
    "a copy of 35 days ago": (played(World.copied), "unknown", "the files of its broker are as of 2023-10-10"),
    "a broker that has written nothing for 35 days": (
        played(lambda world: world.copied(held=True)),
        "unknown",
        "the files of its broker are as of 2023-10-10",
    ),
    "a partition is not here": (played(partitions=2), "unknown", "not all of its partitions are seen"),
    "no coordinator's log": (played(lambda world: world.coordinator.remove()), "unknown", "commits are not known"),
    "no metadata log": (played(lambda world: rmtree(world.metadata.log.directory)), "unknown", "no metadata log can be read"),
}


@each_row("made, used, why", [pytest.param(*row, id=name) for name, row in CASES.items()])
def test_a_topic_is_unused_only_where_a_use_would_have_been_seen(
    made: Callable[[Path], World], used: str, why: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    row = made(tmp_path_factory.mktemp("world")).row()
    assert (row.used, why in row.used_why, bool(row.used_why)) == (used, True, bool(why)), row.used_why


def test_commits_are_known_for_as_long_as_they_are_kept_where_the_broker_says_how_long(tmp_path: Path) -> None:
    world = World(tmp_path / "dir")
    world.commit(NOW - 50 * DAY)
    world.compact()
    properties = tmp_path / "server.properties"
    properties.write_text(f"broker.id=1\nlog.dirs={world.disk.path}\noffsets.retention.minutes={35 * 24 * 60}\n")
    settings = Settings(server_properties=(properties,))
    assert (world.row("", settings).used, world.page("", settings).commits_from_ms) == ("no", NOW - 35 * DAY)
    assert world.row(f"unused_ms={36 * DAY}", settings).used == "unknown"
    assert world.row(f"unused_ms={50 * DAY}", settings).used == "yes"


def test_what_a_topic_costs_counts_on_all_replicas_and_by_the_batches_of_its_active_segments(tmp_path: Path) -> None:
    world = World(tmp_path)
    (row,) = world.page("used=no,unknown&tiny=no").rows
    size = world.orders.active.size
    assert (row.size_bytes, row.replica_bytes, row.replica_more, row.partition_bytes) == (size, size, False, size)
    assert (row.batch_bytes, row.codecs, row.last_append_ms, row.quiet_ms, row.last_commit_ms) == (size, ["none"], LONG_AGO, LONG_AGO, -1)
    assert (row.readers, row.tiny, row.topics) == ([], "no", -1)
    assert not world.page("used=yes").rows
    assert {row.topic for row in world.page("internal=true").rows} >= {"orders", "__consumer_offsets"}
