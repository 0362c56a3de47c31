"""A log that lies in two log dirs of its broker: the live copy counts, whichever was found first, and it stays the one."""

import shutil
from pathlib import Path

import pytest

from streaming.simulator.segment_writer import uuid_text
from tests.watcher.scene import Scene


def live_and_stale(world: Scene) -> tuple[Path, Path]:
    """The log goes on in the first log dir; what is watched is the copy in the second, which stays as it is."""
    world.play("3")
    live = world.log().directory
    hidden = shutil.move(live, world.root / "hidden")
    stale = Path(shutil.copytree(hidden, world.disks[1].path / "t-0"))
    world.play("look")
    shutil.move(hidden, live)
    return live, stale


def name(world: Scene, number: int) -> None:
    """The metadata says in which log dir the log lies."""
    (tail,) = world.station.watcher.tails()
    world.station.cluster.leaders[tail.cursor.log] = (1, 0)
    world.station.cluster.directories[tail.cursor.log] = (uuid_text(world.disks[number].directory_id),)


def test_the_copy_that_goes_further_counts_when_both_have_been_there_for_a_rescan(worlds: Scene, caplog: pytest.LogCaptureFixture) -> None:
    live, stale = live_and_stale(worlds)
    assert worlds.play("4 look") == "-"
    assert worlds.watched() == stale  # a move between log dirs may be ending
    assert worlds.play("look") == "3-7"
    assert worlds.watched() == live
    assert worlds.result("1 look 1 look 1 look") == "7-8 | 8-9 | 9-10"
    assert worlds.watched() == live
    (record,) = [record for record in caplog.records if record.message == "a log lies in several log dirs"]
    assert (record.__dict__["paths"], record.__dict__["watched"]) == (sorted([str(live), str(stale)]), str(live))


def test_of_two_alike_the_one_that_is_watched_stays(worlds: Scene) -> None:
    _, stale = live_and_stale(worlds)
    for _ in range(4):
        assert worlds.play("look") == "-"
        assert worlds.watched() == stale


@pytest.mark.parametrize("named", [0, 1])
def test_the_copy_that_the_metadata_names_counts_at_once(worlds: Scene, named: int) -> None:
    copies = live_and_stale(worlds)
    worlds.play("4")
    name(worlds, named)
    for expected in (["-", "3-7"][1 - named], "-", "-", "-"):
        assert worlds.play("look") == expected
        assert worlds.watched() == copies[named]


def test_a_process_that_starts_takes_the_one_that_goes_further(worlds: Scene) -> None:
    live, _ = live_and_stale(worlds)
    assert worlds.result("4 replace look") == "3-7"
    assert worlds.watched() == live


@pytest.mark.parametrize("restarted", ["", "replace"])
def test_an_old_copy_does_not_stand_in_for_one_in_a_log_dir_that_is_away(worlds: Scene, restarted: str) -> None:
    live, stale = live_and_stale(worlds)
    assert worlds.play(f"4 look look unmount {restarted} look look") == "- | 3-7 | - | -"
    assert worlds.names() == {"t-0"}
    assert worlds.result("home 2 look look") == "7-9 | -"
    assert worlds.watched() == live
    shutil.rmtree(stale)
    assert worlds.result("look") == "-"


@pytest.mark.parametrize("named", [0, 1])
def test_of_a_log_whose_log_dir_is_away_an_old_copy_counts_if_the_metadata_names_it(worlds: Scene, named: int) -> None:
    copies = live_and_stale(worlds)
    worlds.play("4 look look unmount")
    name(worlds, named)
    worlds.play("look")
    assert worlds.watched() == copies[named]


def test_a_copy_that_is_as_far_stands_in_for_one_in_a_log_dir_that_is_away(worlds: Scene) -> None:
    live, _ = live_and_stale(worlds)
    assert worlds.result("unmount1 4 look") == "3-7"
    assert worlds.watched() == live
