"""Logs that were cut off, also when they have grown past the place again."""

import os
from pathlib import Path

import pytest

from streaming.broker.watcher import watcher
from streaming.common.rows import Kind
from streaming.kafka.scan.sums import first_offset_above
from streaming.simulator.log import LogDir, PartitionLog, compact
from tests.builders import batch, log_dir, partition
from tests.tables import each_row
from tests.watcher.scene import result, scene, shown, size
from tests.watcher.station import RESCAN_MS, Station

STEPS = Path(__file__).parents[1] / "data" / "steps"
SEGMENTS = "2 3 roll 4 4 roll 4 4 roll 4 4 look"
READ = "at0 0-5 5-13/5 13-21/13 21-29/21"


@each_row(
    ("why", "script", "expected"),
    [
        ("a file that shrinks is a truncated log", "2 3 4 look cut5 look 1@1 look", "at0 0-9 | cut5 | 5-6"),
        *[  # shorter, longer or exactly as long as it was
            (
                "past the place again: known by the last batch that was read",
                f"2 3 4 look cut2 {again} look",
                f"at0 0-9 | cut2 2-{end}",
            )
            for again, end in (("3@1 4@1", 9), ("9@1", 11), ("1@1 1@1", 4), ("3@1", 5), ("3@1 4@1 1@1", 10))
        ],
        (
            "a hint finds it before a rescan, even at the same size",
            "2 3 look quick cut2 3@1 quick hint",
            "at0 0-5 | - | - | cut2 2-5",
        ),
        ("without a new epoch at least the batch that was read last is gone", "2 3 4 look cut5 6 1 look", "at0 0-9 | cut5 5-12"),
        ("another batch at the offsets of the last one that was read", "2 3 4 look cut5 4~7 1 look", "at0 0-9 | cut5 5-10"),
        ("what is fetched again as it was", "2 3 4 look cut2 3 4 1 look", f"at0 0-9 | 9-10; {size(3) + size(4)} missing"),
        ("several segments that were cut off", f"{SEGMENTS} cut2 look", f"{READ} | cut2"),
        (
            "and rolled anew",
            f"{SEGMENTS} cut5 9@2 roll 9@2 roll 9@2 roll 9@2 roll look",
            f"{READ} | cut5 5-14/5 14-23/14 23-32/23 32-41/32",
        ),
        ("above what was read", "2 look 3 cut2 7@1 look", f"at0 0-2 | 2-9; {size(3)} missing"),
        *[
            (f"while the agent was away: {how}", f"2 3 roll 4 look {how} cut2 {'1@1 ' * grown} look", f"at0 0-5 5-9/5 | {expected}")
            for how in ("replace",)
            for grown, expected in ((0, "cut2"), (1, "cut2 2-3"), (9, "cut2 2-11"))
        ],
        # A follower that is too far behind its leader drops all and starts at the leader's log start (`truncateFullyAndStartAt`). It never
        # held the offsets between; what it held lies there as ``.deleted`` for a minute and shows that it was read.
        *[
            ("a follower that was read and begins anew further on has lost nothing", f"{begun} anew100 2@3 look", f"{read} | {then}")
            for then in ("skip5-100(deleted) 100-102/100",)
            for begun, read in (
                ("2 3 look", "at0 0-5"),
                ("pre 2 3 look", "at0 0-5"),
                ("2 3 look replace", "at0 0-5"),
                ("pre 2 3 look replace", "at0 0-5"),
            )
        ],
        (
            "what a follower held unread when it began anew further on is skipped exactly",
            "2 look replace 3 roll 9 9 anew100 2@3 look",
            "at0 0-2 | skip2-100(deleted) 100-102/100",
        ),
        ("begun anew so that its end lies in a batch", "new1,4 look anew3 3@1 look", "at4 | cut3 3-6/3"),
        ("begun anew further back", "new1,50 9 look remove new1,20 2@3 look", "at50 50-59/50 | cut20 20-22/20"),
        (
            "it ends before what was reported once, and is read again",
            "2 3 look cut2 restart look",
            "at0 0-5 | at2 cut2",
        ),
        *[  # two unclean elections, to and fro: what the leader of epoch 5 appended gives way to epoch 4, and that is followed by epoch 6
            (
                "bytes of a lower epoch that replace higher ones are read",
                f"2 3 10@5 look {how} cut5 3@4 4@4 {look} 8@6 look look",
                f"at0 0-5 5-15 | cut5 5-12{' |' if look else ''} 12-20 | -",
            )
            for look in ("", "look")
            for how in ("", "replace")
        ],
        (
            "an epoch whose first batches were cleaned before it was read",
            "2 3@1 4@2 5@2 roll keep0,9 look 1@3 look replace keep9 look",
            f"at0 0-2 9-14 | 14-15/14 | -; {size(3) + size(4)} missing",
        ),
        (
            "segments deleted with their epochs",
            "2 roll 3@1 roll 3@2 roll 3@3 look from8 replace look",
            "at0 0-2 2-5/2 5-8/5 8-11/8 | -",
        ),
    ],
)
def test_what_is_published_of_a_log_that_was_cut_off(why: str, script: str, expected: str) -> None:
    assert result(script) == expected, why


def test_the_bytes_that_were_cut_off_are_reported() -> None:
    for records, at, segment in (("2 3 4", 5, 0), (SEGMENTS, 2, 0), (SEGMENTS, 13, 13)):
        with scene() as one:
            one.play(f"{records} look")
            cut = one.log().truncate(at)
            (event,) = one.look()
            assert (event.next_offset, event.bytes, event.end_position, event.segment) == (at, cut, one.log().active.size, segment)


def test_into_the_middle_of_a_batch_it_waits_for_the_rest() -> None:
    with scene() as one:
        one.play("2 3 look")
        os.truncate(one.log().active.path("log"), one.log().active.size - 10)
        assert one.play("look look") == "cut2 | -"


def test_everything_dropped_and_begun_anew_further_on_is_a_skip() -> None:
    with scene() as one:
        assert one.play("2 3 look remove new1,100 2@3 look") == "at0 0-5 | skip5-100(deleted) 100-102/100"


def log_of(disk: LogDir, *batches: int) -> PartitionLog:
    log = partition(disk, "t")
    for records in batches:
        log.append(batch(records))
    return log


def test_a_truncation_between_a_restart_from_further_back_and_its_end(
    station: Station, disk: LogDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second reader has set the log back; what the first one has counted is cut off before the reading gets there again."""
    log = log_of(disk, 2)
    log.roll()
    log.append(batch(3), batch(4))
    station.look()
    monkeypatch.setattr(watcher, "POLL_BYTES", 1)
    station.begin("earliest", "second")
    station.clock.now += RESCAN_MS
    assert station.turn()
    log.truncate(5)
    log.append(batch(1), leader_epoch=1)
    station.look()
    first, second = station.fold_of("t"), station.fold_of("t", name="second")
    assert (first.records, first.next_offset, first.truncations) == (10, 6, 1)
    assert (second.records, second.next_offset) == (6, 6)


def test_a_range_reported_again_shows_where_the_log_parts_from_what_was_counted(station: Station, disk: LogDir) -> None:
    log = log_of(disk, 2, 3, 4)
    station.look()
    log.truncate(2)
    log.append(*[batch(5)] * 3, leader_epoch=1)
    station.restart()
    replaced, _ = [event for event in station.look() if event.kind is Kind.APPENDED]
    assert replaced.detail is not None
    assert (replaced.base_offset, first_offset_above(replaced.detail, 0)) == (2, 2)
    assert station.fold_of("t").records == 9 + 15


def test_an_epoch_that_was_read_still_counts_when_its_last_batches_are_cleaned(station: Station, disk: LogDir) -> None:
    log = log_of(disk, 2)
    log.append(batch(3), leader_epoch=5)
    station.look()
    log.append(batch(4), leader_epoch=5)
    log.roll()
    compact(log, 0, {0})
    station.replace_watcher()
    station.turn(budget=0)
    (tail,) = station.watcher.tails()
    assert (tail.cursor.log_epoch, tail.cursor.next_offset) == (5, 5)


def put(step: Path, directory: Path) -> None:
    """What a broker left at that moment, in place: the same files, other contents."""
    for source in step.iterdir():
        with (directory / source.name).open("r+b" if (directory / source.name).exists() else "wb") as file:
            file.write(source.read_bytes())
            file.truncate()


@pytest.fixture
def steps(tmp_path: Path) -> Station:
    made = Station(log_dir(tmp_path).path)
    made.begin("earliest")
    return made


def test_a_real_replica_after_an_unclean_election(steps: Station) -> None:
    directory = steps.paths[0] / "tr-0"
    directory.mkdir()
    put(STEPS / "unclean_election" / "1_ahead", directory)
    steps.look()
    counted = steps.fold_of("tr")
    assert (counted.next_offset, counted.bytes) == (86, 22_885)
    put(STEPS / "unclean_election" / "2_truncated", directory)
    truncated, appended = steps.look()
    assert (truncated.kind, truncated.next_offset, truncated.bytes) == (Kind.TRUNCATED, 32, 22_885 - 6_960)
    assert (appended.base_offset, appended.next_offset, appended.bytes, appended.log_epoch) == (32, 40, 756, 1)
    assert steps.fold_of("tr").next_offset == 40
    steps.close()


def test_a_real_log_before_a_crash_torn_by_it_and_recovered(steps: Station) -> None:
    directory = steps.paths[0] / "cr-A-1"
    directory.mkdir()
    put(STEPS / "crash" / "1_before_kill", directory)
    steps.look()
    assert (steps.fold_of("cr-A", 1).next_offset, steps.fold_of("cr-A", 1).bytes) == (452, 525)
    put(STEPS / "crash" / "2_torn", directory)
    assert shown(steps.look()) == "cr-A1:cut448"
    put(STEPS / "crash" / "3_recovered", directory)
    assert steps.look() == []
    assert not steps.watcher.tails()[0].cursor.stopped
    steps.close()


@pytest.mark.parametrize(("leader", "level"), [(1, "WARNING"), (2, "INFO"), (-1, "WARNING"), (None, "WARNING")])
def test_a_follower_that_cuts_off_its_end_as_it_starts_is_no_warning(
    station: Station, disk: LogDir, leader: int | None, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    log = partition(disk, "t")
    log.append(batch(2), batch(3))
    station.look()
    if leader is not None:
        station.cluster.leaders[station.watcher.tails()[0].cursor.log] = (leader, 1)
    log.truncate(2)
    (cut,) = station.look()
    assert cut.kind is Kind.TRUNCATED
    assert [record.levelname for record in caplog.records if record.message == "log truncated"] == [level]
