"""What is not understood stops that one log, visibly; the others go on."""

import logging
import struct

import pytest

from streaming.broker.watcher.stopped_logs import SUSPECT_MS
from streaming.common.rows import Kind
from streaming.simulator.batch_writer import encode
from streaming.simulator.log import LogDir, PartitionLog
from tests.builders import batch, partition
from tests.tables import each_row
from tests.watcher.scene import FLAW, Scene, result, scene, size
from tests.watcher.station import RESCAN_MS, Station

GOOD = encode(batch(2), 2)
FLAWED = {
    "bad magic byte": GOOD[:16] + b"\x09" + GOOD[17:],
    "bad batch length -5": struct.pack(">qi", 2, -5) + GOOD[12:],
    "bad batch length 3": struct.pack(">qi", 2, 3) + GOOD[12:],
    "bad batch length 2147483647": struct.pack(">qi", 2, 2_147_483_647) + GOOD[12:],
    "bad codec": GOOD[:22] + b"\x07" + GOOD[23:],
    "bad records count": GOOD[:57] + b"\x00\x00\x00\x09" + GOOD[61:],
    "bad base offset": encode(batch(2), 1),
}


STOP = f"look wait{SUSPECT_MS} look"
"""The look that finds the flaw, and the one that believes it."""
STOPPED = "at0 0-2 | flaw2 skip2-2(corrupt)"


@each_row(
    ("why", "script", "expected"),
    [
        ("what grows behind it is skipped", f"2 flaw {STOP} x100 look look", f"{STOPPED} | skip2-2(corrupt) | -; stopped at [2]"),
        *[
            (
                f"{how} counts nothing again",
                f"2 flaw {STOP} {how} x100 look {how} look",
                f"{STOPPED} | skip2-2(corrupt) | -; stopped at [2]",
            )
            for how in ("replace",)
        ],
        (
            "a journal made anew shows the flaw again and it is counted once",
            f"2 flaw {STOP} restart x100 {STOP}",
            f"{STOPPED} | at2 | {STOPPED.partition(' | ')[2]}; stopped at [2]",
        ),
        (
            "a flaw that a recovery cuts off lets the log be read on",
            f"2 3 flaw {STOP} cut2 look 4@1 look",
            "at0 0-5 | flaw5 skip5-5(corrupt) | cut2 | 2-6; stopped at [5]",
        ),
        *[
            (
                f"what comes and goes behind it between two looks is skipped with it, {how}",
                f"1*7 flaw {STOP} roll 1*50 look {script} look",
                f"at0 0-7 | flaw7 skip7-7(corrupt) | skip7-7(corrupt) | skip7-{end}(corrupt); stopped at [7]",
            )
            for how, script, end in (
                ("unseen", "1*50 roll 1*50 roll 1*9 from157 unlink", 166),
                ("and is not unlinked yet", "1*50 roll 2*50 roll 1*9 from207", 216),
                ("or did not grow", "roll 1*9 from57 unlink", 66),
            )
        ],
        (
            "it does not hold up the full picture",
            f"flaw {STOP} wait{RESCAN_MS}",
            "at0 | flaw0 skip0-0(corrupt); stopped at [0]",
        ),
    ],
)
def test_what_is_published_of_a_log_that_has_stopped(why: str, script: str, expected: str) -> None:
    assert result(script) == expected, why


@each_row("flaw", FLAWED)
def test_a_flaw_stops_its_log_and_no_other(flaw: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.clear()
    with scene() as one:
        one.play("2 u:new2")
        one.write("t", FLAWED[flaw] + b"more")
        one.play(STOP)
        log, events = one.log(), one.station.events
        corrupt, skipped = [event for event in events if event.kind in (Kind.CORRUPT, Kind.SKIPPED)]
        assert (corrupt.topic, corrupt.segment, corrupt.start_position, corrupt.next_offset) == ("t", 0, log.active.size, 2)
        assert flaw in corrupt.reason
        assert (skipped.reason, skipped.bytes, skipped.next_offset) == ("corrupt", len(FLAWED[flaw]) + 4, 2)
        (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
        assert (record.log, record.path, record.position) == ("t-0", str(log.active.path("log")), log.active.size)  # type: ignore[attr-defined]
        assert one.play("u:5 look") == "u:0-5"
        counted = one.station.fold_of("t")
        assert (counted.records, counted.corrupt_at, counted.settled) == (2, [2], True)


def patch(log: PartitionLog, position: int, data: bytes) -> None:
    with log.active.path("log").open("r+b") as file:
        file.seek(position)
        file.write(data)


def losses(station: Station) -> list[tuple[Kind, str, int]]:
    return [(event.kind, event.reason, event.bytes) for event in station.events if event.kind in (Kind.CORRUPT, Kind.SKIPPED)]


def test_what_may_only_be_half_written_is_looked_at_again_before_it_is_called_corrupt(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t", preallocate=True)
    log.append(batch(2))
    data = encode(batch(3), 2)
    patch(log, log.active.size, data[:22] + b"\x07" + data[23:40])  # a codec that does not exist
    station.look()
    assert losses(station) == []
    station.clock.now += SUSPECT_MS - 1
    station.turn()
    log.append(batch(3))
    station.clock.now += SUSPECT_MS
    station.turn()
    assert losses(station) == []
    assert station.fold_of("t").records == 5


def test_what_is_half_written_behind_what_was_half_written_is_given_its_own_time(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t", preallocate=True)
    log.append(batch(2))
    for records in (3, 4):
        data = encode(batch(records), log.log_end_offset)
        patch(log, log.active.size, data[:22] + b"\x07" + data[23:40])
        station.turn(station.everything())
        assert losses(station) == []
        station.clock.now += SUSPECT_MS
        log.append(batch(records))
    station.look(set())
    assert losses(station) == []
    assert station.fold_of("t").records == 9


def test_a_second_reader_learns_of_the_flaw_and_the_first_one_counts_nothing_twice(world: Scene) -> None:
    world.play(f"2 flaw {STOP}")
    world.station.begin("earliest", "second")
    world.play(STOP)
    for name in ("first", "second"):
        counted = world.station.fold_of("t", name=name)
        assert (counted.records, counted.corrupt_at, counted.skipped["corrupt"]) == (2, [2], len(GOOD))
    world.station.begin("latest", "third")
    world.look()
    third = world.station.fold_of("t", name="third")
    assert (third.records, third.corrupt_at, third.settled) == (0, [2], True)
    assert world.station.fold_of("t").corrupt_at == [2]


def test_a_segment_that_ends_inside_a_batch_although_the_log_goes_on_stops_it(world: Scene) -> None:
    world.play("2 look roll")
    with world.log().segments[0].path("log").open("ab") as file:
        file.write(GOOD[:100])
    world.play(f"7 {STOP}")
    assert losses(world.station) == [
        (Kind.CORRUPT, "the segment ends inside a batch although the log goes on after it", 0),
        (Kind.SKIPPED, "corrupt", 100 + world.log().active.size),
    ]


def test_an_old_epoch_behind_a_newer_one_is_no_reason_to_look_for_a_truncation_for_ever(world: Scene) -> None:
    world.play("2@5")
    world.write("t", FLAWED["bad base offset"])
    (world.log().directory / "leader-epoch-checkpoint").write_text("0\n2\n5 0\n6 1\n")
    assert world.play(STOP) == STOPPED


def test_a_flaw_that_goes_away_lets_the_log_be_read_on(world: Scene, caplog: pytest.LogCaptureFixture) -> None:
    world.play(f"2 flaw {STOP}")
    patch(world.log(), world.log().active.size, GOOD)
    assert world.play("look") == "2-4"
    assert "read on again" in caplog.text
    counted = world.station.fold_of("t")
    assert counted.records == 4
    assert (counted.bytes, counted.skipped["corrupt"]) == (2 * len(GOOD), len(GOOD)), "a counter of what was skipped cannot fall"


def test_a_flaw_that_retention_deletes_lets_the_log_be_read_on_at_its_end(world: Scene) -> None:
    """What lies between is counted as skipped already, and nothing is both."""
    world.play("2 look flaw 1")
    log = world.log()
    patch(log, log.segments[0].positions[1], FLAW)
    flawed_bytes = log.active.path("log").stat().st_size - log.segments[0].positions[1]
    assert world.play(f"roll 3 {STOP} 4 from3 look 5 look").endswith(" | skip2-10(corrupt) | 10-15/3")
    counted = world.station.fold_of("t")
    assert counted.skipped["corrupt"] == flawed_bytes + log.active.size - size(5)
    assert (counted.records, counted.next_offset) == (2 + 5, 15)
