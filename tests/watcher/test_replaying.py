"""What is open at a place in the middle of a log is found out in pieces, and nothing else waits for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streaming.broker.disk.opening import bytes_read
from streaming.broker.journal.cursor import Replays
from streaming.broker.journal.range_values import decode_steps
from streaming.broker.watcher import open_at
from streaming.broker.watcher.open_at import REPLAY_BYTES
from streaming.common.event_row import Event
from streaming.common.rows import Kind
from streaming.simulator.batch_writer import Batch
from streaming.simulator.log import LogDir, PartitionLog
from tests.builders import batch, commit, partition
from tests.tables import each_row
from tests.watcher.scene import Scene, scene
from tests.watcher.station import Station

MEGABYTE = 1 << 20
P, Q = 4000, 4001


def data(producer: int, *, sequence: int = 0) -> Batch:
    return batch(1, producer=producer, transactional=True, sequence=sequence)


@pytest.fixture
def bare(disk: LogDir, tmp_path: Path) -> Iterator[Station]:
    """A station that nobody reads yet."""
    made = Station(disk.path)
    yield made
    made.close()


def half_full(disk: LogDir, topic: str = "t", *, megabytes: int = 6, topic_id: int = 1) -> PartitionLog:
    """A log whose active segment is some megabytes long; one transaction began before it, one ended in it, one began in it."""
    log = partition(disk, topic, segment_bytes=1 << 30, topic_id=topic_id)
    log.append(data(P), data(Q))
    log.roll()
    log.append(*[batch(1, value_bytes=MEGABYTE)] * (megabytes // 2))
    log.append(commit(Q), data(Q, sequence=1))
    log.append(*[batch(1, value_bytes=MEGABYTE)] * (megabytes // 2))
    return log


def opened(event: Event) -> list[tuple[int, int]] | None:
    if event.transactions is None:
        return None
    return [(int(row["producer_id"]), int(row["first_offset"])) for row in decode_steps(event.transactions)]


def appearances(station: Station) -> list[tuple[int, list[tuple[int, int]] | None]]:
    return [(event.next_offset, opened(event)) for event in station.events if event.kind is Kind.APPEARED]


def rest(station: Station, *, budget: int) -> int:
    """Turn until there is no more to do; returns in how many turns."""
    for breaks in range(1, 1000):
        began = bytes_read()
        if not station.turn(budget=budget):
            return breaks
        assert bytes_read() - began <= budget + 2 * REPLAY_BYTES + 64 * 1024
    raise AssertionError("the watcher never rests")


@pytest.mark.parametrize("budget", [1, MEGABYTE, 4 * MEGABYTE])
def test_a_latest_beginning_is_paced_and_the_log_appears_once_it_is_known_what_is_open(bare: Station, disk: LogDir, budget: int) -> None:
    log = half_full(disk)
    end = log.log_end_offset
    bare.begin("latest")
    began = bytes_read()
    assert bare.turn(budget=budget)
    log.append(batch(3))
    assert not bare.watcher.caught_up
    assert [event.kind for event in bare.events] == [Kind.CENSUS]
    breaks = rest(bare, budget=budget)
    assert breaks >= 5 * MEGABYTE // max(budget, MEGABYTE)
    assert bytes_read() - began < 2 * log.segments[-1].size
    assert bare.watcher.caught_up
    assert appearances(bare) == [(end, [(P, 0), (Q, 6)])]
    assert bare.fold_of("t").records == 3
    assert [tail.cursor.replay for tail in bare.watcher.tails()] == [Replays.NOT]


def test_a_restart_in_the_midst_of_a_latest_beginning(bare: Station, disk: LogDir) -> None:
    log = half_full(disk)
    end = log.log_end_offset
    bare.begin("latest")
    assert bare.turn(budget=MEGABYTE)
    for starts in (2, 3):
        bare.replace_watcher()
        assert bare.turn(budget=MEGABYTE)
        assert [event.kind for event in bare.events] == [Kind.CENSUS] * starts
        assert not bare.watcher.caught_up
        log.append(batch(2))
    rest(bare, budget=MEGABYTE)
    assert appearances(bare) == [(end, [(P, 0), (Q, 6)])]
    assert bare.fold_of("t").records == 4


def test_a_log_that_is_replayed_first_may_be_cut_off_meanwhile(bare: Station, disk: LogDir) -> None:
    log = half_full(disk)
    bare.begin("latest")
    assert bare.turn(budget=MEGABYTE)
    log.truncate(5)
    log.append(batch(2), leader_epoch=1)
    bare.look()
    assert bare.fold_of("t").next_offset == log.log_end_offset
    bare.replace_watcher()
    log.append(batch(2), leader_epoch=1)
    bare.look()
    assert bare.fold_of("t").next_offset == log.log_end_offset


@pytest.mark.parametrize("restarted", [True, False])
def test_a_log_whose_segments_are_deleted_while_it_is_replayed(bare: Station, disk: LogDir, restarted: bool) -> None:
    log = half_full(disk)
    bare.begin("latest")
    assert bare.turn(budget=MEGABYTE)
    log.append(batch(3))
    log.roll()
    log.append(batch(2))
    log.delete_records(log.active.base_offset)
    log.config = log.config.__class__(retention_ms=-1)
    log.delete_old_segments(0)
    log.unlink_deleted(10**15)
    if restarted:
        bare.replace_watcher()
    bare.look()
    counted = bare.fold_of("t")
    assert (counted.records, counted.next_offset) == (2, log.log_end_offset)
    assert counted.skipped["deleted"] > 0


def test_a_second_consumer_is_given_what_is_open_while_the_log_is_read_on(station: Station, disk: LogDir) -> None:
    log = half_full(disk)
    station.look()
    before = len(station.events)
    station.begin("latest", "second")
    assert station.turn(budget=MEGABYTE)
    assert [opened(event) for event in station.events[before:] if event.kind is Kind.APPEARED] == [None]
    log.append(batch(3))
    assert station.turn(budget=MEGABYTE)
    assert station.fold_of("t", name="second").records == 3
    assert not station.watcher.caught_up
    log.append(commit(P))
    rest(station, budget=MEGABYTE)
    assert appearances(station)[-1] == (log.log_end_offset, [(Q, 6)])
    assert station.watcher.caught_up


def test_what_a_second_consumer_is_owed_outlives_the_watcher(station: Station, disk: LogDir) -> None:
    log = half_full(disk)
    station.look()
    station.begin("latest", "second")
    assert station.turn(budget=1)
    station.replace_watcher()
    rest(station, budget=MEGABYTE)
    assert appearances(station)[-1] == (log.log_end_offset, [(P, 0), (Q, 6)])


def test_a_consumer_that_wants_more_than_one_whose_beginning_is_not_through(bare: Station, disk: LogDir) -> None:
    log = half_full(disk)
    bare.begin("latest")
    assert bare.turn(budget=1)
    bare.begin("earliest", "second")
    bare.look()
    log.append(batch(2))
    bare.look()
    assert bare.fold_of("t").records == 2
    assert bare.fold_of("t", name="second").records == 2 + 9
    assert appearances(bare)[-1] == (log.log_end_offset - 2, [(P, 0), (Q, 6)])


def test_live_logs_are_read_while_others_are_replayed(station: Station, disk: LogDir) -> None:
    live = partition(disk, "live", topic_id=9)
    live.append(batch(2))
    half_full(disk)
    station.look()
    station.begin("latest", "second")
    for records in range(3, 6):
        live.append(batch(1))
        assert station.turn(budget=1)
        assert station.fold_of("live").records == records


def test_where_a_log_was_cut_off_is_reported_at_once_and_what_is_open_there_later(station: Station, disk: LogDir) -> None:
    log = half_full(disk)
    station.look()
    log.truncate(8)
    (log.directory / f"{8:020}.snapshot").unlink(missing_ok=True)
    (truncated, appeared) = station.look()
    assert (truncated.kind, truncated.next_offset, opened(truncated)) == (Kind.TRUNCATED, 8, None)
    assert (appeared.kind, appeared.next_offset, opened(appeared)) == (Kind.APPEARED, 8, [(P, 0), (Q, 6)])


def test_a_segment_that_was_replayed_is_not_read_again_for_its_timestamps(bare: Station, disk: LogDir) -> None:
    log = half_full(disk)
    bare.begin("latest")
    bare.look()
    (tail,) = bare.watcher.tails()
    assert tail.cursor.largest_timestamp == log.segments[-1].largest_timestamp()
    assert tail.cursor.first_timestamp == log.segments[-1].entries[0].max_timestamp


def test_the_agent_is_asked_whether_to_stop_while_it_replays(bare: Station, disk: LogDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streaming.broker.watcher.grown_logs.SLICE_BYTES", MEGABYTE)
    half_full(disk)
    bare.begin("latest")
    bare.stop_at = 4
    assert bare.turn()
    assert bare.asked == bare.stop_at
    bare.look()
    assert len(appearances(bare)) == 1


# --- logs that cannot be looked at when a consumer begins


@contextmanager
def two_dirs(start_from: str) -> Iterator[Scene]:
    with scene(2, start_from) as made:
        made.make("t", 1)
        made.play("2 roll 3 other:1")
        yield made


@each_row(
    ("start_from", "records", "restarted"),
    [(*row, restarted) for row in (("earliest", 5), ("active", 3), ("latest", 0)) for restarted in ("", "replace")],
)
def test_a_log_dir_that_cannot_be_read_when_a_consumer_begins(start_from: str, records: int, restarted: str) -> None:
    with two_dirs("latest") as worlds:
        worlds.play("look away1")
        worlds.station.begin(start_from, "second")
        worlds.play(f"look home1 {restarted} look 4 look")
        assert worlds.station.fold_of("t").records == 4
        assert worlds.station.fold_of("t", name="second").records == records + 4


def test_a_log_dir_that_cannot_be_read_when_the_first_consumer_begins() -> None:
    with two_dirs("latest") as worlds:
        worlds.play("away1 look home1 look 4 look")
        assert worlds.station.fold_of("t").records == 4


def test_a_log_that_cannot_be_read_when_a_consumer_begins() -> None:
    with scene(start_from="latest") as one:
        one.play("2 hide look")
        assert one.station.folds["first"].logs == {}
        assert one.play("show look 4 look look") == "at2 | 2-6 | -"


@pytest.fixture(autouse=True)
def nothing_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever has to be replayed is replayed in pieces."""
    monkeypatch.setattr(open_at, "AT_ONCE_BYTES", -1)
