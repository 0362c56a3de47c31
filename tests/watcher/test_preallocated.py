"""A log with ``preallocate=true``: what is written of its file counts, not how large the file is."""

from collections.abc import Sequence

import pytest

from streaming.broker.journal.blocks import AppendedRanges
from streaming.broker.watcher import grown_logs
from streaming.broker.watcher.stopped_logs import SUSPECT_MS
from streaming.broker.watcher.tail import Tail
from streaming.common.event_row import Event
from streaming.simulator.log import LogDir, PartitionLog
from tests.builders import batch, partition
from tests.tables import each_row
from tests.watcher.scene import FLAW, Scene, scene
from tests.watcher.station import RESCAN_MS, Station

MEGABYTE = 1 << 20
STOP = f"look wait{SUSPECT_MS} look"
"""The look that finds a flaw, and the one that believes it."""


def patch(log: PartitionLog, position: int) -> None:
    with log.active.path("log").open("r+b") as file:
        file.seek(position)
        file.write(FLAW)


def written(log: PartitionLog) -> int:
    return len(log.active.path("log").read_bytes().rstrip(b"\0"))


def stored(log: PartitionLog) -> None:
    """Let the file system store the zeros too, as in a copy."""
    path = log.active.path("log")
    data = path.read_bytes()
    with path.open("r+b") as file:
        file.write(data)


def publications(station: Station, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many events each publication has from here on."""
    found: list[int] = []
    publish = station.journal.publish

    def counted(events: Sequence[Event], *rest: object, ranges: AppendedRanges | None = None) -> None:
        found.append(len(events) + (0 if ranges is None else len(ranges.logs)))
        publish(events, *rest, ranges=ranges)  # type: ignore[arg-type]

    monkeypatch.setattr(station.journal, "publish", counted)
    return found


@pytest.mark.parametrize("copied", [False, True])
def test_many_logs_that_grow_by_a_batch_are_one_publication(
    station: Station, disk: LogDir, monkeypatch: pytest.MonkeyPatch, copied: bool
) -> None:
    logs = [partition(disk, "t", number, preallocate=True, segment_bytes=16 * MEGABYTE) for number in range(3 if copied else 40)]
    for log in logs:
        log.append(batch(1))
        if copied:
            stored(log)
    station.look()
    found = publications(station, monkeypatch)
    for log in logs:
        log.append(batch(1))
    station.turn()
    assert [count for count in found if count] == [len(logs)]


def test_new_logs_are_one_publication(station: Station, disk: LogDir, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(40):
        partition(disk, "t", number, preallocate=True, segment_bytes=16 * MEGABYTE).append(batch(1))
    station.begin("earliest")
    found = publications(station, monkeypatch)
    station.turn()
    assert 40 in found


@each_row(
    ("why", "script", "measured"),
    [
        ("once it appeared, its size shows what is written of a plain file", "3 look 3*9 quick", 1),
        ("of a preallocated one it does not", "pre 3 look 3*9 quick", 2),
        ("a live log that goes on in another file may be far behind there", "3 look 3*9 roll 3 hint", 3),
        ("one that waits with the backlogs does so whatever it is", "3*9 roll 3*9 roll 3 wait60000 turn1 turn1 turn1", 1),
    ],
)
def test_a_file_is_read_for_what_is_written_of_it_only_where_that_decides(
    why: str, script: str, measured: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Tail] = []
    with monkeypatch.context() as patched, scene() as world:
        for limit in ("LIVE_BYTES", "NEW_BYTES", "SEEDED_BYTES"):
            patched.setattr(grown_logs, limit, 0)
        measure = Tail.measure
        patched.setattr(Tail, "measure", lambda tail: (found.append(tail), measure(tail)))
        world.play(script)
    assert len(found) == measured, why


def beside_a_backlog(world: Scene) -> None:
    """A preallocated log whose end was reached, beside one with much to read."""
    world.play(f"pre{512 * MEGABYTE} 2 look")
    world.make("big", segment_bytes=1 << 30)
    world.play(f"big:1*20~{MEGABYTE} wait{RESCAN_MS} turn{MEGABYTE}")


def test_an_append_is_published_at_once_however_much_others_have_to_read(world: Scene) -> None:
    beside_a_backlog(world)
    for records in (3, 4):
        world.play("1")
        assert world.turn(budget=0)
        assert world.station.fold_of("t").records == records


def test_a_roll_is_followed_at_once_however_much_others_have_to_read(world: Scene) -> None:
    beside_a_backlog(world)
    world.play("1 roll 1")
    assert world.turn({world.log().directory}, budget=0)
    assert world.station.fold_of("t").records == 4
    assert all(tail.live for tail in world.station.watcher.tails() if tail.cursor.log.topic == "t")


def test_a_new_log_is_read_at_once_however_much_others_have_to_read(world: Scene) -> None:
    beside_a_backlog(world)
    world.play(f"new:pre{512 * MEGABYTE} new:3 wait{RESCAN_MS}")
    assert world.turn({world.disk.path}, budget=0)
    assert world.station.fold_of("new").records == 3


def test_much_that_is_written_is_a_backlog_still(world: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streaming.broker.watcher.grown_logs.LIVE_BYTES", 4 * MEGABYTE)
    world.play(f"pre{512 * MEGABYTE} 2 look 1*8~{MEGABYTE}")
    assert world.turn(budget=MEGABYTE)
    assert world.station.fold_of("t").records < 4


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("ended", ["", "replace"])
def test_behind_a_flaw_what_is_written_is_skipped_and_no_zeros(world: Scene, ended: str, copied: bool) -> None:
    world.play(f"pre{MEGABYTE} 2 2 2")
    log, counted = world.log(), lambda: world.station.fold_of("t")
    begins = log.active.positions[1]
    patch(log, begins)
    if copied:
        stored(log)
    world.play(f"look {STOP}")
    for _ in range(3):
        assert counted().skipped["corrupt"] == written(log) - begins
        world.play(f"5 {ended} look")
    assert counted().records == 2


def test_a_roll_behind_a_flaw_makes_the_sum_exact(world: Scene) -> None:
    """A closed segment is cut to what is written of it."""
    world.play(f"pre{MEGABYTE} 2 2")
    log = world.log()
    begins = log.active.positions[1]
    patch(log, begins)
    world.play(f"{STOP} 3 roll look")
    assert world.station.fold_of("t").skipped["corrupt"] == log.segments[0].size - begins
    world.play("4 look")
    assert world.station.fold_of("t").skipped["corrupt"] == log.segments[0].size - begins + written(log)


def test_a_flaw_that_retention_deletes_leaves_what_was_written_behind_it(world: Scene) -> None:
    world.play(f"pre{MEGABYTE} 2 1")
    log = world.log()
    begins = log.active.positions[1]
    patch(log, begins)
    world.play(f"roll 3 {STOP}")
    before = log.segments[0].size - begins + log.active.size
    world.play("4 from3 look")
    assert world.station.fold_of("t").skipped["corrupt"] - before in range(log.active.size - before, log.active.size)
    world.play("5 look")
    assert world.station.fold_of("t").records == 2 + 5


def test_what_left_unread_of_an_open_file_is_skipped(world: Scene) -> None:
    world.play(f"pre{MEGABYTE} 2 look")
    position = world.log().active.size
    world.play("4")
    assert world.station.watcher.tails()[0].bytes_left_unread() == written(world.log()) - position
