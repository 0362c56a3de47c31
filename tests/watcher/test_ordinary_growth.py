"""Logs that are read together as columns, and the same logs read one by one: the events, cursors and producers are the same."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streaming.broker.disk.segment_files import LARGE_BYTES, OpenSegment
from streaming.broker.watcher import ordinary_growth
from streaming.broker.watcher.ordinary_growth import OrdinaryReader, OrdinaryRound
from streaming.broker.watcher.tail import Tail
from streaming.common.event_row import Event
from streaming.common.log_key import LogKey
from streaming.common.rows import Kind
from streaming.kafka.scan.producer_states import Producers
from streaming.simulator.batch_writer import Codec
from tests.builders import NOW, abort, batch, commit, delete, log_dir, partition
from tests.clocks import Clock
from tests.scratch import scratch
from tests.simulated import write_part
from tests.watcher.station import COMPACTED, Station
from tests.watcher.stepping import Step, hold, step

LOGS = 3
LARGE = LARGE_BYTES + 100
ALL_BY_TAILS = 1 << 30


class TwoStations:
    """A broker, with a station that reads as columns what it can, and one that reads every log by itself."""

    def __init__(self, root: Path, logs: int = LOGS) -> None:
        self.disk = log_dir(root)
        self.logs = [partition(self.disk, f"topic-{number}", topic_id=number + 1, segment_bytes=200_000) for number in range(logs)]
        self.clock = Clock(NOW)
        self.columns = Station(self.disk.path, clock=self.clock)
        self.tails = Station(self.disk.path, clock=self.clock, few_logs=ALL_BY_TAILS)
        self.stations = (self.columns, self.tails)
        self.epoch = 0
        for station in self.stations:
            station.begin("earliest")
        for number in range(logs):
            self.append(number)
        self.look()
        self.look()

    def close(self) -> None:
        for station in self.stations:
            station.close()
        for log in self.logs:
            log.close()
        self.disk.release()

    def append(self, number: int, records: int = 1, at_once: int = 1, value_bytes: int = 100, late_ms: int = 0) -> None:
        found = batch(records, value_bytes=value_bytes, timestamp=self.clock.now - late_ms, codec=list(Codec)[number % len(Codec)])
        self.logs[number].append(*[found] * at_once, leader_epoch=self.epoch)

    def produce(self, number: int, producer: int, epoch: int, sequence: int, transactional: bool) -> None:
        found = batch(producer=producer, epoch=epoch, sequence=sequence, transactional=transactional, timestamp=self.clock.now)
        self.logs[number].append(found, leader_epoch=self.epoch)

    def end(self, number: int, producer: int, *, committed: bool) -> None:
        marker = commit if committed else abort
        self.logs[number].append(marker(producer, timestamp=self.clock.now), leader_epoch=self.epoch)

    def append_in_parts(self, number: int, permille: int) -> None:
        """The stations look while the write is half done."""
        write_part(self.logs[number], batch(3), size=400 * permille // 1000, leader_epoch=self.epoch)
        self.look()
        self.logs[number].append(batch(3), leader_epoch=self.epoch)

    def damage(self, number: int) -> None:
        """The next batch has a base offset that was there before."""
        log = self.logs[number]
        if log.log_end_offset > 1:
            log.append(batch(), leader_epoch=self.epoch, base_offset=log.log_end_offset)

    def new_leader(self, number: int, leader: int) -> None:
        self.epoch += 1
        self.set_leader(number, leader, self.epoch)

    def set_leader(self, number: int, leader: int, epoch: int) -> None:
        """The metadata names a leader, perhaps of an epoch that was before, or comes later."""
        log = LogKey(1, f"topic-{number}", 0, "")
        for station in self.stations:
            for tail in station.watcher.tails():
                if tail.cursor.log.topic == log.topic:
                    station.cluster.leaders[tail.cursor.log] = (leader, epoch)
            station.cluster.changes += 1

    def configure(self, number: int, retention_ms: int) -> None:
        text = COMPACTED if retention_ms == 0 else f'{{"topic":{{"retention.ms":"{retention_ms}"}}}}'
        for station in self.stations:
            station.cluster.set_for[f"topic-{number}"] = text
            station.cluster.changes += 1

    def roll(self, number: int) -> None:
        if self.logs[number].active.size:
            self.logs[number].roll()

    def truncate(self, number: int, permille: int, regrow: int) -> None:
        log = self.logs[number]
        offsets = [entry.base_offset for segment in log.segments for entry in segment.entries]
        if offsets:
            log.truncate(offsets[(len(offsets) - 1) * permille // 1000])
            self.epoch += 1
            for _ in range(regrow):
                log.append(batch(), leader_epoch=self.epoch)

    def look(self, passed_ms: int = 700) -> None:
        """Both turn once; then both are where they are for the same reasons."""
        self.clock.now += passed_ms
        for station in self.stations:
            station.turn(station.everything())
        self.compare()

    def replace(self) -> None:
        for station in self.stations:
            station.replace_watcher()
        self.look()

    def compare(self) -> None:
        columns, tails = (_by_log(station.events) for station in self.stations)
        assert columns == tails
        for ours, theirs in zip(*(_tails_of(station) for station in self.stations), strict=True):
            assert ours.cursor == theirs.cursor
            assert _producers(ours.producers.now) == _producers(theirs.producers.now)
            assert (ours.looked_ms, ours.looked_offset, ours.appended_ms) == (theirs.looked_ms, theirs.looked_offset, theirs.appended_ms)

    def check(self) -> None:
        for _ in range(4):
            self.look(61_000)
        stored = [sorted(station.journal.cursors(), key=lambda cursor: cursor.log) for station in self.stations]
        assert stored[0] == stored[1]
        for cursor in stored[0]:
            first, second = (station.journal.producers(cursor.log) for station in self.stations)
            assert _producers(first) == _producers(second)


def _by_log(events: list[Event]) -> dict[LogKey, list[Event]]:
    """The events of each log in order: logs that are read together come one after the other in another order."""
    found = defaultdict(list)
    for event in events:
        if event.kind not in (Kind.FOUND, Kind.CENSUS):
            found[event.log].append(event)
    return found


def _tails_of(station: Station) -> list[Tail]:
    return sorted(station.watcher.tails(), key=lambda tail: tail.cursor.log)


def _producers(found: Producers | None) -> object:
    return None if found is None else (found.entries.tolist(), found.dropped_ms)


numbers, producers = st.integers(0, LOGS - 1), st.integers(7, 9)
steps = st.one_of(
    *[
        step(
            "append",
            numbers,
            st.integers(1, 4),
            st.integers(1, 4),
            st.sampled_from([1, 100, LARGE]),
            st.sampled_from([0, 0, 40_000, -60_000, 5_000_000]),
        )
    ]
    * 3,
    *[step("produce", numbers, producers, st.integers(0, 1), st.integers(0, 5), st.just(False))] * 3,
    step("produce", numbers, producers, st.integers(0, 1), st.integers(0, 5), st.just(True)),
    step("end", numbers, producers, committed=st.booleans()),
    step("append_in_parts", numbers, st.integers(1, 999)),
    step("new_leader", numbers, st.integers(0, 2)),
    step("set_leader", numbers, st.integers(-2, 2), st.integers(0, 4)),
    step("configure", numbers, st.sampled_from([0, 1_000, 86_400_000])),
    step("roll", numbers),
    step("truncate", numbers, st.integers(0, 1000), st.integers(0, 9)),
    *[step("look")] * 6,
    step("look", st.sampled_from([0, -5_000, 61_000, 700_000, 90_000_000])),
    step("replace"),
)


@example([("append", (0, 1, 1, 100, 0), {}), ("look", (), {}), ("replace", (), {}), ("append", (0, 1, 2, LARGE, 0), {})])
@given(st.lists(steps, max_size=30))
def test_read_together_or_one_by_one_the_events_are_the_same(done: list[Step]) -> None:
    hold(TwoStations, done)


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> list[OrdinaryRound]:
    """What was read together."""
    found: list[OrdinaryRound] = []
    read = OrdinaryReader.read

    def noted(self: OrdinaryReader, tails: list[Tail], looked_ms: int) -> OrdinaryRound:
        found.append(read(self, tails, looked_ms))
        return found[-1]

    monkeypatch.setattr(OrdinaryReader, "read", noted)
    return found


@pytest.fixture
def two(tmp_path: Path, rounds: list[OrdinaryRound]) -> Iterator[TwoStations]:
    made = TwoStations(tmp_path)
    rounds.clear()
    yield made
    made.check()
    made.close()


@pytest.mark.parametrize("value_bytes", [100, LARGE])
def test_ordinary_logs_are_read_together(two: TwoStations, rounds: list[OrdinaryRound], value_bytes: int) -> None:
    for number in range(LOGS):
        two.append(number, 2, 3, value_bytes)
        two.produce(number, 7, 0, 5, False)
    two.look()
    for number in range(LOGS):
        two.produce(number, 7, 0, 9, False)
    two.look()
    assert [(len(each.read), list(each.left)) for each in rounds] == [(LOGS, [])] * 2
    gaps = [event.sequence_gaps for event in two.columns.events if event.kind is Kind.APPENDED]
    assert gaps[-LOGS:] == [1] * LOGS


def test_small_batches_after_a_large_one_are_read_together(two: TwoStations, rounds: list[OrdinaryRound]) -> None:
    for value_bytes, count in ((LARGE, 1), (10, 60)):
        for number in range(LOGS):
            two.append(number, 1, count, value_bytes)
        two.look()
    assert [(len(each.read), list(each.left)) for each in rounds] == [(LOGS, [])] * 2


def test_large_batches_are_not_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a log grows by more than is read together."""
    disk = log_dir(tmp_path)
    log = partition(disk, "t", segment_bytes=1 << 30)
    station = Station(disk.path)
    station.begin("earliest")
    log.append(batch())
    station.look()
    station.look()
    monkeypatch.setattr(OpenSegment, "_cached", lambda *_: True)
    monkeypatch.setattr(OpenSegment, "read_into", lambda *_, **__: pytest.fail("its bytes are read"))
    log.append(*[batch(value_bytes=1 << 18)] * 6)
    station.look()
    assert station.fold_of("t").bytes == log.active.size
    station.close()
    log.close()
    disk.release()


def _grow(two: TwoStations) -> None:
    for number in range(LOGS):
        two.append(number)


def _half(two: TwoStations, number: int) -> None:
    write_part(two.logs[number], batch(3), size=200)


def _transaction(two: TwoStations, number: int) -> None:
    two.produce(number, 7, 0, 0, True)


def _epoch(two: TwoStations, number: int) -> None:
    two.epoch = 1
    two.append(number)
    two.epoch = 0


def _unknown_leader(two: TwoStations, number: int) -> None:
    two.set_leader(number, 1, -1)  # the metadata has not reached the epoch of the log
    two.append(number)


def _cut_and_grown(two: TwoStations, number: int) -> None:
    two.logs[number].truncate(0)
    two.append(number, 4, 4, 300)


def _written_anew(two: TwoStations, number: int) -> None:
    """The log has other batches of the same sizes, and goes on where it was read to."""
    log = two.logs[number]
    offsets = [entry.base_offset for segment in log.segments for entry in segment.entries]
    size = log.active.size
    log.truncate(0)
    two.clock.now += 1
    for _ in offsets:
        two.append(number)
    assert log.active.size == size
    two.append(number)


def _flaw(two: TwoStations, number: int) -> None:
    log = two.logs[number]
    entry, data = next(iter(batch().entries(0, 0)))  # its base offset was read before
    assert entry.base_offset < log.log_end_offset
    log.active.write(data)


SURPRISES = {
    "half a batch": _half,
    "transaction": _transaction,
    "leader epoch": _epoch,
    "unknown leader": _unknown_leader,
    "other bytes where the last batch was": _cut_and_grown,
    "other bytes before it goes on": _written_anew,
    "flaw": _flaw,
}


@pytest.mark.parametrize("surprise", SURPRISES.values(), ids=SURPRISES)
def test_a_surprise_leaves_its_log_and_the_others_are_read_together(
    two: TwoStations, rounds: list[OrdinaryRound], surprise: Callable[[TwoStations, int], None]
) -> None:
    for number in (1, 2):
        two.append(number)
    surprise(two, 0)
    two.clock.now += 700
    two.columns.turn()
    two.tails.turn()
    (one,) = rounds
    assert [tail.cursor.log.topic for tail in one.read] == ["topic-1", "topic-2"]
    assert [tail.cursor.log.topic for tail in one.left] == ["topic-0"]


def test_a_poll_may_meet_every_surprise_at_once(tmp_path: Path, rounds: list[OrdinaryRound]) -> None:
    two = TwoStations(tmp_path, len(SURPRISES) + 2)
    rounds.clear()
    for number, surprise in enumerate(SURPRISES.values()):
        surprise(two, number)
    for number in range(len(SURPRISES), len(two.logs)):
        two.append(number)
    two.look()
    assert [(len(each.read), len(each.left)) for each in rounds] == [(2, len(SURPRISES))]
    two.check()
    two.close()


def test_a_log_comes_back_after_a_surprise(two: TwoStations, rounds: list[OrdinaryRound]) -> None:
    two.produce(0, 7, 0, 0, True)
    two.look()
    two.end(0, 7, committed=True)
    two.look()
    rounds.clear()
    _grow(two)
    two.look()
    assert [len(each.read) for each in rounds] == [LOGS]


def test_a_read_that_fails_leaves_its_log_and_an_error_of_the_program_all_of_them(
    two: TwoStations, rounds: list[OrdinaryRound], monkeypatch: pytest.MonkeyPatch
) -> None:
    _grow(two)
    growth = OpenSegment.read_growth

    def refused(self: OpenSegment, *arguments: object) -> int:
        if "topic-1" in str(self.path):
            raise OSError(5, "Input/output error", str(self.path))
        return growth(self, *arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as broken:
        broken.setattr(OpenSegment, "read_growth", refused)
        two.look()
    assert [tail.cursor.log.topic for tail in rounds[0].left] == ["topic-1"]
    _grow(two)
    with monkeypatch.context() as broken:
        broken.setattr(ordinary_growth, "plain_ranges", lambda *_: 1 / 0)
        two.look()
    assert not rounds[1].read
    assert len(rounds[1].left) == LOGS


def test_few_logs_are_read_one_by_one(tmp_path: Path, rounds: list[OrdinaryRound]) -> None:
    disk = log_dir(tmp_path)
    logs = [partition(disk, "t", number) for number in range(3)]
    station = Station(disk.path, few_logs=2)
    station.begin("earliest")
    station.look()
    for count, expected in ((2, []), (3, [3])):
        for log in logs[:count]:
            log.append(batch())
        station.look(set())
        for log in logs[:count]:
            log.append(batch())
        rounds.clear()
        station.look(set())
        assert [len(each.read) for each in rounds] == expected
    station.close()


def test_thousands_of_new_logs_in_one_poll_are_counted_and_then_read_together(rounds: list[OrdinaryRound]) -> None:
    with scratch() as root:
        disk, logs = log_dir(Path(root)), []
        station = Station(disk.path, few_logs=ordinary_growth.FEW_LOGS)
        station.begin("earliest")
        station.look()
        for number in range(3_000):
            log = partition(disk, "t", number)
            log.append(batch())
            log.close()
            logs.append(log.directory / f"{0:020}.log")
        station.look()
        assert sum(counted.records for counted in station.folds["first"].logs.values()) == len(logs)
        rounds.clear()
        (_, more), *_ = batch().entries(1, 0)
        for path in logs:
            with path.open("ab") as file:
                file.write(more)
        station.look(set())
        assert sum(len(each.read) for each in rounds) == len(logs)
        assert sum(counted.records for counted in station.folds["first"].logs.values()) == 2 * len(logs)
        station.close()
        disk.release()


def test_a_log_that_is_gone_after_it_moved_gets_no_row_again(two: TwoStations) -> None:
    _grow(two)
    two.look()
    gone = two.logs.pop(0)
    delete(two.disk, gone).remove()
    gone.close()
    for _ in range(4):
        two.look(1_500)  # by hints: there is no rescan, which gives rows to all logs that have moved
    for station in two.stations:
        assert len(station.watcher.tails()) == 2
        station.replace_watcher()
        assert sorted(cursor.log.topic for cursor in station.journal.cursors()) == ["topic-1", "topic-2"]


def test_a_log_that_is_followed_by_another_tail_keeps_the_place_of_that_one(tmp_path: Path) -> None:
    first, second = log_dir(tmp_path, "d0"), log_dir(tmp_path, "d1")
    log = partition(first, "t")
    station = Station(first.path, second.path)
    station.begin("earliest")
    log.append(batch())
    station.look()
    log.append(batch())
    station.look(set())  # by columns: its cursor is a move
    log.close()
    log.directory.rename(second.path / log.directory.name)
    station.look(station.everything())
    with (second.path / log.directory.name / f"{0:020}.log").open("ab") as file:
        for _, data in batch().entries(2, 1):
            file.write(data)
    station.look(station.everything())
    (tail,) = station.watcher.tails()
    assert tail.cursor.next_offset == 3
    place = tail.cursor
    station.replace_watcher()
    assert station.journal.cursors() == [place]
    station.close()
