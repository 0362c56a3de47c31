"""Logs that leave: what can still be read of them is counted, the rest is skipped, and only then are they gone."""

import pytest

from streaming.broker.watcher import watcher
from streaming.broker.watcher.departures import HOLD_MS
from streaming.common.rows import Kind
from streaming.simulator.log import PartitionLog
from tests.facts import facts_of
from tests.tables import each_row
from tests.watcher.scene import Scene, result, size

SIZE = size(3)


@each_row(
    ("why", "script", "expected"),
    [
        *[
            (f"what was appended last, {state}", f"3 look 4 roll 5 exists{exists} {state} root", f"at0 0-3 | 3-7 7-12/7 gone({reason})")
            for state in ("delete", "stray")
            for exists, reason in ((0, "deleted,"), (1, "moved,d0"))
        ],
        (  # seventy bytes that are of no whole batch
            "a batch that was never finished is skipped with its log",
            "3 look part70,3 delete root",
            "at0 0-3 | skip3-4(deleted) gone(deleted,d0); -70 missing",
        ),
        ("of a preallocated log nothing is skipped", "pre 3 look 2 delete root", "at0 0-3 | 3-5 gone(deleted,d0)"),
        (
            "what grew behind a flaw is skipped before the log is gone",
            "3 x100 look wait1000 look x50 delete root",
            "at0 0-3 | flaw3 skip3-3(corrupt) | skip3-3(corrupt) gone(deleted,d0)",
        ),
    ],
)
def test_what_is_published_of_a_log_that_leaves(why: str, script: str, expected: str) -> None:
    assert result(script) == expected, why


def reported(world: Scene) -> tuple[int, int]:
    """Bytes that were reported as appended and as skipped."""
    appended, skipped = (sum(event.bytes for event in world.station.events if event.kind is kind) for kind in (Kind.APPENDED, Kind.SKIPPED))
    return appended, skipped


def size_of(log: PartitionLog) -> int:
    return facts_of(log).held.bytes


def big(world: Scene, monkeypatch: pytest.MonkeyPatch) -> PartitionLog:
    """A log of three segments of which one window is read."""
    monkeypatch.setattr(watcher, "POLL_BYTES", 1)
    log = world.make("t", segment_bytes=1 << 30)
    world.play("1*3~1048576 roll " * 3 + "turn")
    assert 0 < reported(world)[0] < size_of(log)
    return log


def leave(world: Scene, script: str = "delete") -> None:
    """One turn sees that it leaves, and reads on within its budget."""
    world.play(f"{script} wait1000")
    world.turn({world.disk.path})


def test_a_backlog_is_read_within_the_budget_while_its_files_are_there(world: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    log = big(world, monkeypatch)
    before = reported(world)[0]
    leave(world)
    assert before < reported(world)[0] < size_of(log)
    assert world.names() == {"t-0"}
    assert world.result("look").endswith(" gone(deleted,d0)")
    assert reported(world) == (size_of(log), 0)


@pytest.mark.parametrize("ended", ["replace"])
def test_an_agent_that_is_started_meanwhile_goes_on_with_it(world: Scene, monkeypatch: pytest.MonkeyPatch, ended: str) -> None:
    log = big(world, monkeypatch)
    leave(world)
    assert world.result(f"{ended} look look").endswith(" gone(deleted,d0) | -")
    assert reported(world) == (size_of(log), 0)


def test_what_vanishes_before_it_is_read_is_skipped(world: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    log = big(world, monkeypatch)
    assert world.result("delete rm look").endswith("skip3-10(deleted) gone(deleted,d0)")
    assert reported(world) == (log.segments[0].size, size_of(log) - log.segments[0].size)  # the first segment was open


def test_what_a_broker_removes_while_it_is_read_is_skipped(world: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    log = big(world, monkeypatch)
    leave(world)
    assert world.result("rm look").endswith("(deleted) gone(deleted,d0)")
    assert reported(world)[0] >= log.segments[0].size


def test_an_open_file_of_a_log_that_left_is_not_held_for_ever(world: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    size = size_of(big(world, monkeypatch))
    world.play("delete rm")
    monkeypatch.setattr(watcher, "POLL_BYTES", 0)
    leave(world, "")
    assert world.held("(deleted)") == 1
    assert world.play(f"wait{HOLD_MS} turn").endswith("(deleted) gone(deleted,d0)")
    assert (world.held(), sum(reported(world))) == (0, size)


def test_another_topic_of_its_name_comes_when_it_has_left(world: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    log = big(world, monkeypatch)
    leave(world, "delete new2 7")
    assert {tail.cursor.log.topic_id for tail in world.station.watcher.tails()} == {"AAAAAAAAAAAAAAAAAAAAAQ"}
    world.play("root")
    assert reported(world) == (size_of(log) + size_of(world.log()), 0)
    assert world.station.fold_of("t").records == 7


def test_a_directory_that_gets_its_name_back_was_not_gone(world: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    log = big(world, monkeypatch)
    leave(world, "stray")
    log.rename("t-0")
    assert "gone" not in world.result("2 look")
    assert reported(world) == (size_of(log), 0)


def test_a_log_that_leaves_waits_for_a_log_dir_that_is_away(worlds: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    log = big(worlds, monkeypatch)
    leave(worlds)
    worlds.play("away look")
    assert worlds.names() == {"t-0"}
    assert worlds.result("home look").endswith(" gone(deleted,d0,d1)")
    assert reported(worlds) == (size_of(log), 0)
