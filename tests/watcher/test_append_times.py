"""Between which times batches were appended, by the looks at a log and by the times of its files: what counts as late surely was."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest

from streaming.broker.disk.locate import beginning, find_offset, window
from streaming.broker.disk.opening import ThreadCalls
from streaming.broker.disk.segment_files import list_segments
from streaming.broker.watcher.cursors import BROUGHT_ALONG, EVERYTHING, Relocation, moved
from streaming.broker.watcher.log_listing import Listing
from streaming.broker.watcher.tail import Tail
from streaming.common.log_key import LogKey
from streaming.common.rows import EXPIRED, Kind
from streaming.kafka.scan.sums import Appended
from streaming.rules.expired_arrivals import DAY_MS
from streaming.simulator.batch_writer import Batch
from streaming.simulator.log import LogDir, PartitionLog
from streaming.simulator.segment_writer import uuid_text
from tests.builders import NOW, batch, log_dir, partition
from tests.clocks import Clock
from tests.file_times import written_at
from tests.watcher.station import Station
from tests.watcher.tails import begun


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    return partition(log_dir(tmp_path), "t")


@pytest.fixture
def tail(log: PartitionLog) -> Iterator[Tail]:
    """A tail of the log that has read its first two records; a poll at `NOW` found no more."""
    log.append(batch(2))
    made = begun(log)
    _read(made, log)
    made.reach_end(NOW)
    made.settle_backlog()
    yield made
    made.close()


def _read(tail: Tail, log: PartitionLog) -> None:
    """All that is in the file of the cursor by now was read."""
    segments = list_segments(log.directory)
    mine = [each for each in segments if each.base_offset <= tail.cursor.segment]
    end = find_offset(tuple(mine), None, window())
    tail.relocate(Relocation(moved(tail.cursor, end)._replace(next_offset=end.next_offset), segments))


def _followed(tail: Tail, log: PartitionLog) -> None:
    """It goes on in the next file, as listed now."""
    segments = list_segments(log.directory)
    later = next(each for each in segments if each.base_offset > tail.cursor.segment)
    tail.relocate(Relocation(moved(tail.cursor, beginning(later)), segments))


def _again(tail: Tail, log: PartitionLog, *, frontier: int | None = None) -> Tail:
    """The tail of an agent that was started again at the cursor of the one before: no poll of it has looked yet."""
    cursor = tail.cursor if frontier is None else tail.cursor._replace(frontier=frontier)
    return Tail(tail.partition, cursor, Listing(list_segments(log.directory)), tail.producers)


def test_what_comes_into_the_same_segment_came_after_the_last_poll_that_found_nothing(tail: Tail, log: PartitionLog) -> None:
    written_at(log, NOW - DAY_MS)  # the times of files do not matter
    assert not tail.has_grown(NOW + 1000)  # the anchor is checked
    assert not tail.has_grown(NOW + 2000)
    assert tail.is_still(NOW + 3000, ThreadCalls())
    log.append(batch(1))
    assert not tail.is_still(NOW + 4000, ThreadCalls())
    assert tail.has_grown(NOW + 4000)
    assert tail.appended(2, NOW + 5000) == Appended(NOW + 3000, NOW + 5000)
    assert tail.appended(7, NOW + 5000) == Appended(NOW + 3000, NOW + 5000)  # compaction has left a gap


def test_what_is_read_again_was_there_before_the_last_poll(tail: Tail) -> None:
    assert tail.appended(1, NOW + 5000) is None


@pytest.mark.parametrize(("last_write", "earliest"), [(-500, -500), (0, 0), (300, 0)])
def test_what_is_in_the_next_segment_came_after_the_last_write_to_the_one_before(
    tail: Tail, log: PartitionLog, last_write: int, earliest: int
) -> None:
    """That the log has rolled shows a moment after the poll that found nothing: where nothing was written since, that may be before it."""
    written_at(log, NOW + last_write)
    log.roll()
    log.append(batch(1))
    _followed(tail, log)
    assert tail.appended(2, NOW + 5000) == Appended(NOW + earliest, NOW + 5000)


def test_of_several_segments_that_came_at_once_each_is_bounded_by_the_one_before(tail: Tail, log: PartitionLog) -> None:
    for at in (-500, -400, -300):
        written_at(log, NOW + at)
        log.roll()
        log.append(batch(1))
    found = []
    for base_offset in (2, 3, 4):
        _followed(tail, log)
        found.append(tail.appended(base_offset, NOW + 5000))
    assert found == [Appended(NOW + at, NOW + 5000) for at in (-500, -400, -300)]


def test_where_the_segment_before_is_gone_nothing_shows_when_the_next_one_was_begun(tail: Tail, log: PartitionLog) -> None:
    log.roll()
    log.append(batch(1))
    log.segments[0].path("log").unlink()
    _followed(tail, log)
    assert tail.appended(2, NOW + 5000) is None


def test_of_a_first_backlog_nothing_is_known_whatever_its_files_show(log: PartitionLog) -> None:
    for _ in range(2):
        log.append(batch(2))
        written_at(log, NOW)
        log.roll()
    log.append(batch(2))
    written_at(log, NOW)
    tail = begun(log)
    assert tail.appended(0, NOW) is None
    _followed(tail, log)
    assert not tail.cursor.settled
    assert tail.appended(2, NOW) is None
    tail.close()


class Restarted:
    """The agent was away while the log grew by a record in the segment of the cursor, rolled, and grew by another one."""

    def __init__(self, tail: Tail, log: PartitionLog, before_ms: int = NOW + 100, last_ms: int = NOW + 900) -> None:
        log.append(batch(1))
        written_at(log, before_ms)
        log.roll()
        log.append(batch(1))
        written_at(log, last_ms)
        self._before, self._log = tail, log

    def in_the_next_segment(self, now_ms: int = NOW + 5000, *, frontier: int | None = None) -> Appended | None:
        tail = _again(self._before, self._log, frontier=frontier)
        _followed(tail, self._log)
        try:
            return tail.appended(3, now_ms)
        finally:
            tail.close()

    def in_the_same_segment(self) -> Appended | None:
        tail = _again(self._before, self._log)
        try:
            return tail.appended(2, NOW + 5000)
        finally:
            tail.close()


def test_what_grew_while_no_agent_watched_is_bounded_by_the_times_of_the_files(tail: Tail, log: PartitionLog) -> None:
    restarted = Restarted(tail, log)
    assert restarted.in_the_next_segment() == Appended(NOW + 100, NOW + 900)
    assert restarted.in_the_next_segment(frontier=BROUGHT_ALONG) == Appended(NOW + 100, NOW + 900)
    assert restarted.in_the_next_segment(NOW + 900) == Appended(NOW + 100, NOW + 900)
    assert restarted.in_the_same_segment() is None  # no segment lies before it


@pytest.mark.parametrize("frontier", [4, EVERYTHING])
def test_what_was_published_before_is_not_taken_for_new(tail: Tail, log: PartitionLog, frontier: int) -> None:
    assert Restarted(tail, log).in_the_next_segment(frontier=frontier) is None


def test_times_of_files_that_contradict_each_other_or_the_clock_show_nothing(tail: Tail, log: PartitionLog) -> None:
    assert Restarted(tail, log, before_ms=NOW + 901, last_ms=NOW + 900).in_the_next_segment() is None


def test_a_file_from_the_future_shows_nothing(tail: Tail, log: PartitionLog) -> None:
    assert Restarted(tail, log).in_the_next_segment(NOW + 899) is None


def test_a_clock_that_was_set_back_leaves_the_times_of_the_files(tail: Tail, log: PartitionLog) -> None:
    written_at(log, NOW - 3000)
    log.roll()
    log.append(batch(1))
    written_at(log, NOW - 2000)
    _followed(tail, log)
    assert tail.appended(2, NOW - 1) == Appended(NOW - 3000, NOW - 2000)


# --- the whole way, from the log dir to the event

KEY = LogKey(1, "t", 0, uuid_text(UUID(int=1)))
LIMIT_MS = 7 * DAY_MS


def led(station: Station) -> Station:
    """Its broker leads the log, whose records are kept for a week."""
    station.cluster.leaders[KEY] = (1, 0)
    station.cluster.set_for["t"] = f'{{"topic":{{"retention.ms":"{LIMIT_MS}"}}}}'
    return station


def late(records: int = 1) -> Batch:
    return batch(records, timestamp=NOW - 30 * DAY_MS)


def earliest(station: Station) -> list[int]:
    """When each range that has batches past their retention was appended at the earliest."""
    found = [event.expired for event in station.events if event.kind is Kind.APPENDED and event.expired is not None]
    return [int(np.frombuffer(each, EXPIRED)[0]["appended_ms"]) for each in found]


def grow(log: PartitionLog, begun_ms: int, one: Batch | None = None) -> None:
    """A batch in each of three segments, of which each was written a second after the one before."""
    for turn in range(3):
        if turn:
            log.roll()
        log.append(one or late())
        written_at(log, begun_ms + 1000 * turn)


def test_an_agent_that_comes_back_does_not_judge_what_came_meanwhile(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    led(station).look()
    log.append(late())
    looked = station.clock.now
    station.look()
    assert earliest(station) == [looked]
    station.leave()
    away = station.clock.now
    grow(log, away + 10_000)
    station.clock.now += 60_000
    station.come_back()
    station.look()
    assert earliest(station) == [looked]  # the files may be copies, whose times say nothing of appends
    assert station.fold_of("t").records == 4


@pytest.mark.parametrize(("leader", "delays"), [(2, 0), (None, 1)])
def test_what_a_follower_copies_is_not_judged_nor_what_perhaps_one_copies(
    station: Station, disk: LogDir, leader: int | None, delays: int
) -> None:
    """Where it is not known who led, what came late is shown, and nothing is said of its retention."""
    log = partition(disk, "t")
    led(station).look()
    station.cluster.leaders = {} if leader is None else {KEY: (leader, 0)}
    log.append(late())
    station.look()
    (event,) = [each for each in station.events if each.kind is Kind.APPENDED]
    assert (event.leads, event.expired, sum(event.append_delay_buckets)) == (0 if leader else -1, None, delays)


def test_what_is_kept_for_how_long_is_only_assumed_is_not_judged(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    led(station).look()
    station.cluster.set_for["t"] = ""
    log.append(late())
    station.look()
    (event,) = [each for each in station.events if each.kind is Kind.APPENDED]
    assert (event.judges_expiry, event.expired, sum(event.append_delay_buckets)) == (False, None, 1)


@pytest.mark.parametrize("copied_to", ["d0", "d1"])
def test_the_times_of_a_copy_are_not_those_of_its_appends(station_of_two: Station, two: tuple[LogDir, LogDir], copied_to: str) -> None:
    """A replica that moved to another log dir, or that was restored, while no agent watched."""
    station, log = led(station_of_two), partition(two[0], "t")
    log.append(batch())
    station.look()
    station.leave()
    grow(log, station.clock.now, batch())  # in time
    held, target = two[0].path.parent / "held", two[0].path.parent / copied_to / "t-0"
    shutil.move(log.directory, held)
    shutil.copytree(held, target)
    copied = station.clock.now + 20 * DAY_MS
    for number, file in enumerate(sorted(target.glob("*.log"))):
        os.utime(file, ns=((copied + number) * 1_000_000,) * 2)
    station.clock.now = copied + 60_000
    station.come_back()
    station.look()
    station.look()
    assert (station.fold_of("t").records, earliest(station)) == (4, [])
    station.close()


class Ticking(Clock):
    """Goes on by two milliseconds whenever it is asked; between two of them, once, something is written."""

    def __init__(self, log: PartitionLog) -> None:
        super().__init__(NOW)
        self.asked, self.append_at, self.appended_ms = 0, -1, -1
        self._log = log

    def __call__(self) -> float:
        self.now += 2
        self.asked += 1
        if self.asked == self.append_at:
            self._log.append(late())
            self.appended_ms = int(self.now) - 1
        return self.now


@pytest.mark.parametrize("preallocate", [False, True])
def test_whenever_in_a_poll_it_comes_its_time_is_not_later(disk: LogDir, tmp_path: Path, preallocate: bool) -> None:
    log = partition(disk, "t", preallocate=preallocate)
    clock = Ticking(log)
    station = Station(disk.path, clock=clock)
    station.begin("earliest")
    led(station).look()
    log.append(late())
    station.look()
    before = clock.asked
    station.turn(station.everything())
    for number in range(clock.asked - before):
        found, written = len(earliest(station)), log.log_end_offset
        log.append(late())  # so that there is something to read in the poll
        clock.append_at = clock.asked + 1 + number
        station.turn(station.everything())
        station.look()
        assert station.fold_of("t").next_offset == log.log_end_offset == written + 2
        newest = earliest(station)[found:][-1]
        assert newest <= clock.appended_ms, f"in call {number + 1} of the clock"
    station.close()
