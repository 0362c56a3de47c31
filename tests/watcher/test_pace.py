"""When the watcher looks, how much it reads at once, and when it says nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streaming.broker.agent.polling_thread import BacklogPace
from streaming.broker.watcher import grown_logs, watcher
from streaming.broker.watcher.reading import LEAST_WINDOW_BYTES
from streaming.common.rows import Kind
from streaming.simulator.log import LogDir, PartitionLog
from tests.builders import batch, partition
from tests.watcher.scene import Scene
from tests.watcher.station import RESCAN_MS, Station

MEGABYTE = 1 << 20


def ends(station: Station) -> list[int]:
    """The end of the journal after each of many turns in which nothing happens."""
    found = []
    for _ in range(50):
        station.clock.now += 7_000
        station.turn()
        found.append(station.journal.end().seq)
    return found


def test_the_first_scan_shows_what_there_is_its_facts_and_nothing_more(station: Station, disk: LogDir) -> None:
    partition(disk, "t").append(batch(3))
    assert not station.watcher.caught_up
    station.look()
    assert station.watcher.caught_up
    assert [event.kind for event in station.events] == [Kind.APPEARED, Kind.CENSUS, Kind.APPENDED, Kind.FOUND]


def test_nothing_is_published_while_nothing_happens(world: Scene) -> None:
    world.play("3 u:3 v:3 look")
    end = world.station.journal.end().seq
    assert set(ends(world.station)) == {end}
    world.play("replace")  # the facts of each log and a census: a process knows not what was published before it
    assert set(ends(world.station)[1:]) == {end + 4}


def test_a_clock_that_is_set_back_does_not_stop_the_rescans(world: Scene) -> None:
    world.play("look")
    world.station.clock.now -= 24 * 3_600_000
    assert world.play("3 turn") == "at0 0-3"


def test_what_is_to_be_checked_waits_for_a_look_and_brings_no_event(station: Station, disk: LogDir) -> None:
    partition(disk, "t").append(batch(3))
    station.look()
    end = station.journal.end()
    station.watcher.check_all()
    assert not station.watcher.caught_up
    station.turn()
    assert station.watcher.caught_up
    assert station.journal.end() == end


def published_by(station: Station, monkeypatch: pytest.MonkeyPatch, noted: Callable[..., object]) -> None:
    """Let what is published be noted first."""
    publish = station.journal.publish

    def watched(*what: Any, **how: Any) -> None:
        noted(*what)
        publish(*what, **how)

    monkeypatch.setattr(station.journal, "publish", watched)


def test_a_check_that_is_asked_for_while_a_turn_publishes_waits_for_the_next_one(station: Station, monkeypatch: pytest.MonkeyPatch) -> None:
    def registered_meanwhile(*_: object) -> None:
        station.watcher.check_all()
        monkeypatch.undo()

    published_by(station, monkeypatch, registered_meanwhile)
    station.turn()
    assert not station.watcher.caught_up
    station.turn()
    assert station.watcher.caught_up


def test_caught_up_is_stated_only_once_everything_is_in_the_journal(world: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []
    published_by(world.station, monkeypatch, lambda *_: seen.append(world.station.watcher.caught_up))
    world.play("3 look")
    assert seen
    assert not any(seen)
    assert world.station.watcher.caught_up


def test_every_log_is_looked_at_in_every_turn(world: Scene) -> None:
    logs = [f"t{number}:1" for number in range(10)]
    world.play(f"{' '.join(logs)} look {'turn ' * 100}")
    assert len(world.play(f"{' '.join(logs)} turn").split()) == 10


def test_a_backlog_is_fair_over_logs(station: Station, disk: LogDir) -> None:
    """However much there is of one, the others are not behind it."""
    big = [partition(disk, "big", number, segment_bytes=1 << 30) for number in range(2)]
    for log in big:
        log.append(*[batch(1, value_bytes=MEGABYTE)] * 40)
    small = [partition(disk, "small", number, topic_id=2) for number in range(3)]
    for log in small:
        log.append(batch(2))
    station.look()
    order = [f"{event.topic}-{event.partition}" for event in station.events if event.kind is Kind.APPENDED]
    first = order[:5]
    assert set(first) == {"big-0", "big-1", "small-0", "small-1", "small-2"}
    rest = order[5:]
    assert max(rest.count("big-0"), rest.count("big-1")) - min(rest.count("big-0"), rest.count("big-1")) <= 1
    assert all(len(set(pair)) == 2 for pair in zip(rest[::2], rest[1::2], strict=False))


def test_a_backlog_is_read_in_bounded_pieces_and_the_watcher_looks_around_between(
    station: Station, disk: LogDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "POLL_BYTES", 8 * MEGABYTE)
    big = partition(disk, "big", segment_bytes=1 << 30)
    big.append(*[batch(1, value_bytes=MEGABYTE)] * 40)
    assert station.turn()
    assert not station.watcher.caught_up
    new = partition(disk, "new", topic_id=2)
    new.append(batch(3))
    assert station.turn({disk.path})
    assert station.fold_of("new").records == 3
    new.append(batch(2))
    assert station.turn()
    assert station.fold_of("new").records == 5, "what grows under our eyes is not behind a backlog"
    assert station.fold_of("big").records < 40
    station.look()
    assert station.fold_of("big").records == 40


def test_a_log_that_leaves_in_the_middle_of_its_backlog(world: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "POLL_BYTES", 8 * MEGABYTE)
    world.make("t", segment_bytes=1 << 30)
    world.play(f"1*40~{MEGABYTE}")
    assert world.turn()
    assert world.result("delete look").endswith("gone(deleted,d0)")
    assert world.station.folds["first"].logs == {}


def of_segments(disk: LogDir, topic: str, count: int, megabytes: int, *, topic_id: int = 1) -> PartitionLog:
    """A log of so many segments, of so many batches of a megabyte each."""
    log = partition(disk, topic, segment_bytes=1 << 30, topic_id=topic_id)
    for number in range(count):
        if number:
            log.roll()
        log.append(*[batch(1, value_bytes=MEGABYTE)] * megabytes)
    return log


def published(station: Station) -> int:
    return station.journal.end().total


def test_a_backlog_of_many_segments_keeps_to_the_budget_of_a_turn(station: Station, disk: LogDir) -> None:
    of_segments(disk, "t", 16, 2)
    budget, before = 4 * MEGABYTE, 0
    while station.turn(budget=budget):
        assert 0 < published(station) - before <= budget + LEAST_WINDOW_BYTES
        assert station.watcher.backlog_bytes <= budget + LEAST_WINDOW_BYTES + 64 * 1024
        before = published(station)
    assert station.fold_of("t").records == 32


def test_a_budget_of_one_byte_reads_one_piece_a_turn(station: Station, disk: LogDir) -> None:
    of_segments(disk, "big", 3, 3)
    for number in range(20):
        log = partition(disk, "small", number, topic_id=2)
        for _ in range(3):
            log.append(batch(2))
            log.roll()
    breaks = 0
    while station.turn(budget=1):
        breaks += 1
        assert station.watcher.backlog_bytes <= LEAST_WINDOW_BYTES + 64 * 1024
    assert station.fold_of("big").records == 9
    assert breaks >= 9 + 20 * 3


def test_a_rate_is_kept_over_many_segments(station: Station, disk: LogDir) -> None:
    of_segments(disk, "t", 31, 1)
    rate, now = 2 * MEGABYTE, 0.0
    pace = BacklogPace(rate, watcher.POLL_BYTES)
    more = True
    while more:
        budget = pace.budget(now)
        more = station.turn(budget=budget)
        if station.watcher.backlog_bytes:
            pace.read(station.watcher.backlog_bytes, now, now + 0.001)
        now += 0.001 + pace.rest(now + 0.001)
    assert station.fold_of("t").records == 31
    assert published(station) / rate <= now <= 2 * published(station) / rate


def test_what_is_appended_behind_a_backlog_of_many_segments_is_published_in_the_next_turn(world: Scene) -> None:
    world.play("2 look")
    of_segments(world.disk, "big", 8, 3, topic_id=2)
    world.play(f"wait{RESCAN_MS} turn{MEGABYTE}")
    for records in range(3, 8):
        world.play("1")
        assert world.turn(budget=MEGABYTE)
        assert world.station.fold_of("t").records == records
    assert world.station.fold_of("big").records < 12


def test_a_log_that_rolls_is_read_on_at_once_however_much_others_have_to_read(world: Scene) -> None:
    world.play("2 look")
    for number in range(3):
        of_segments(world.disk, f"big-{number}", 2, 4, topic_id=2 + number)
    world.play(f"wait{RESCAN_MS} turn{MEGABYTE} 1 roll 1 roll 1")
    assert world.turn({world.log().directory}, MEGABYTE)
    assert world.station.fold_of("t").records == 5
    assert world.turn(budget=0)
    world.play("1")
    assert world.turn(budget=0), "also while the backlog rests"
    assert world.station.fold_of("t").records == 6


def test_a_live_log_that_fell_far_behind_is_a_backlog_like_the_others(
    station: Station, disk: LogDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grown_logs, "LIVE_BYTES", 4 * MEGABYTE)
    live = partition(disk, "live", segment_bytes=1 << 30)
    live.append(batch(2))
    station.look()
    live.append(*[batch(1, value_bytes=MEGABYTE)] * 8)
    assert station.turn(budget=MEGABYTE)
    assert station.fold_of("live").records < 4
    station.look()
    assert station.fold_of("live").records == 10


def test_facts_go_on_during_a_backlog(station: Station, disk: LogDir) -> None:
    live = partition(disk, "live")
    live.append(batch(2))
    station.look()
    of_segments(disk, "big", 16, 1, topic_id=2)
    station.clock.now += RESCAN_MS
    breaks = 0
    facts = sum(event.kind is Kind.FOUND for event in station.events)
    while station.turn(budget=MEGABYTE):
        station.clock.now += 30_000
        breaks += 1
        if breaks == 4:
            live.roll()
    assert breaks >= 16
    assert sum(event.kind is Kind.FOUND and event.topic == "live" for event in station.events) > facts


def test_the_watcher_asks_between_the_slices_of_a_backlog_whether_to_stop(
    station: Station, disk: LogDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grown_logs, "SLICE_BYTES", MEGABYTE)
    of_segments(disk, "t", 8, 2)
    station.stop_at = 5
    assert station.turn()
    assert station.asked == 5
    records = station.fold_of("t").records
    assert 0 < records < 16
    station.replace_watcher()
    station.look()
    assert station.fold_of("t").records == 16


def test_another_watcher_goes_on_where_logs_stand(world: Scene) -> None:
    world.play("2 look")
    before = world.station.journal.cursors()
    assert [cursor.next_offset for cursor in before] == [2]
    world.play("replace")
    assert world.station.journal.cursors() == before
    assert world.play("look") == "-"


def test_hints_at_nothing_that_is_there_change_nothing(world: Scene) -> None:
    world.play("1 look")
    path = world.disk.path
    assert world.look({path / "gone-0", path / f"x-0.{1:032x}-delete", Path("/somewhere/else-0"), path / "t-0"}) == []


def test_what_is_known_of_a_log_is_reported_while_others_are_still_in_backlog(
    station: Station, disk: LogDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "POLL_BYTES", 8 * MEGABYTE)
    partition(disk, "big", segment_bytes=1 << 30).append(*[batch(1, value_bytes=MEGABYTE)] * 40)
    partition(disk, "small", topic_id=2).append(batch(3))
    for _ in range(3):
        station.clock.now += 1000
        assert station.turn()
    assert not station.watcher.caught_up
    assert [event.topic for event in station.events if event.kind is Kind.FOUND] == ["small"]
