"""What nobody foresaw in one log stops that log, visibly, and no other; nor the agent."""

import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from streaming.broker.disk.log_inventory import Inventory
from streaming.broker.watcher import carrying, reading, registry, replaying, tail, taking_up
from streaming.common.event_row import Event
from streaming.common.rows import Kind
from streaming.kafka.scan import few_batches, pieces
from streaming.simulator.log import PartitionLog
from streaming.simulator.log_dir import LogDir
from tests.builders import batch, partition
from tests.watcher.station import RESCAN_MS, Station


class UnforeseenError(ArithmeticError):
    """What no code expects."""


@pytest.fixture
def bad(disk: LogDir) -> PartitionLog:
    return partition(disk, "bad", topic_id=2)


@pytest.fixture
def good(disk: LogDir) -> PartitionLog:
    return partition(disk, "good", topic_id=3)


def breaks(monkeypatch: pytest.MonkeyPatch, where: Any, name: str, is_bad: Any) -> None:
    """Let a function fail where it is given something of the bad log."""
    works = getattr(where, name)

    def fails(*args: Any, **kwargs: Any) -> Any:
        if is_bad(*args):
            raise UnforeseenError("a number too large")
        return works(*args, **kwargs)

    monkeypatch.setattr(where, name, fails)


def of_bad_tail(tail: Any, *_: Any) -> bool:
    return str(tail.cursor.log) == "bad-0"


def of_bad_path(path: Path, *_: Any) -> bool:
    return path.name == "bad-0"


def losses(events: list[Event]) -> list[tuple[Kind, str, int]]:
    return [(event.kind, event.topic, event.bytes) for event in events if event.kind in (Kind.CORRUPT, Kind.SKIPPED)]


def assert_stopped(station: Station, bad: PartitionLog, good: PartitionLog, caplog: pytest.LogCaptureFixture) -> None:
    """The bad log is stopped with all its bytes skipped, and goes on being counted so; the good one is read."""
    bad_size = bad.active.size
    assert losses(station.events) == [(Kind.CORRUPT, "bad", 0), (Kind.SKIPPED, "bad", bad_size)]
    (corrupt,) = [event for event in station.events if event.kind is Kind.CORRUPT]
    assert corrupt.reason == "UnforeseenError: a number too large"
    (record,) = [record for record in caplog.records if record.message == "an unexpected error stopped a log: it is not read on"]
    assert (record.__dict__["log"], record.__dict__["path"], record.__dict__["position"]) == ("bad-0", str(bad.active.path("log")), 0)
    assert record.exc_info is not None
    assert station.fold_of("good").bytes == good.active.size
    good.append(batch(3))
    bad.append(batch(4))
    grown = bad.active.size - bad_size
    events = station.look()
    assert losses(events) == [(Kind.SKIPPED, "bad", grown)]
    assert station.fold_of("good").bytes == good.active.size
    assert station.watcher.caught_up


@pytest.mark.parametrize("name", ["find_steps", "find_entries"])
def test_reading(
    station: Station, bad: PartitionLog, good: PartitionLog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    station.look()
    breaks(monkeypatch, reading, name, of_bad_tail)
    bad.append(batch(5))
    good.append(batch(6))
    station.look()
    assert_stopped(station, bad, good, caplog)
    station.restart()
    station.look()
    assert len([event for event in station.events if event.kind is Kind.CORRUPT]) == 2  # another process tries once
    assert station.fold_of("bad").corrupt_at == [0]
    monkeypatch.undo()
    station.restart()
    station.look()
    assert station.fold_of("bad").next_offset == 9


def test_an_error_behind_the_move_of_the_cursor(
    station: Station, bad: PartitionLog, good: PartitionLog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What was read is not published, so it is skipped."""
    station.look()
    works = tail.Tail.append

    def fails(of: tail.Tail, *args: Any, **kwargs: Any) -> int:
        gaps = works(of, *args, **kwargs)
        if of_bad_tail(of):
            raise UnforeseenError("a number too large")
        return gaps

    monkeypatch.setattr(tail.Tail, "append", fails)
    bad.append(batch(5))
    good.append(batch(6))
    station.look()
    assert_stopped(station, bad, good, caplog)


@pytest.mark.parametrize("most_pieces", [0, few_batches.MOST_PIECES])
def test_scanning_many_logs_at_once(
    most_pieces: int,
    station: Station,
    bad: PartitionLog,
    good: PartitionLog,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """In one numpy pass, and in the plain loop that few batches are left to."""
    monkeypatch.setattr(few_batches, "MOST_PIECES", most_pieces)
    station.look()
    breaks(monkeypatch, few_batches, "columns_of", lambda _, headers: (headers["records_count"] == 5).any())
    breaks(monkeypatch, pieces, "find_flaws", lambda batches, *_: (batches.records == 5).any())
    bad.append(batch(5))
    good.append(batch(6))
    station.look()
    assert_stopped(station, bad, good, caplog)


def test_looking_for_growth(
    station: Station, bad: PartitionLog, good: PartitionLog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    station.look()
    breaks(monkeypatch, tail, "holds_anchor", lambda _, cursor: str(cursor.log) == "bad-0")
    bad.append(batch(5))
    good.append(batch(6))
    station.look()
    assert_stopped(station, bad, good, caplog)


def test_listing_a_log_that_is_watched(
    station: Station, bad: PartitionLog, good: PartitionLog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    station.look()
    bad.append(batch(5))
    for where in (registry, taking_up):
        breaks(monkeypatch, where, "log_start_offset", of_bad_path)
    station.look({bad.directory, good.directory})
    assert "log cannot be listed" in caplog.text
    station.look()
    assert [event.topic for event in station.events if event.kind is Kind.CORRUPT] == ["bad"]
    good.append(batch(6))
    station.look()
    assert station.fold_of("good").bytes == good.active.size


def test_listing_a_log_that_waits_to_be_read_on(station: Station, disk: LogDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in the queue of backlogs when it is stopped, and is not read from there."""
    bad = partition(disk, "bad", topic_id=2, segment_bytes=1 << 30)
    bad.append(*[batch(1, value_bytes=1 << 20)] * 8)
    station.clock.now += RESCAN_MS
    assert station.turn(budget=1 << 20)
    size, began = station.fold_of("bad").bytes, len(station.events)
    assert 0 < size < bad.active.size
    breaks(monkeypatch, taking_up, "log_start_offset", of_bad_path)
    bad.roll()
    station.clock.now += RESCAN_MS
    while station.turn():
        pass
    assert [event.kind for event in station.events[began:] if event.topic == "bad"][:2] == [Kind.CORRUPT, Kind.SKIPPED]
    assert station.fold_of("bad").bytes == size
    assert station.watcher.caught_up


def test_taking_up_a_log_that_is_new(
    station: Station, bad: PartitionLog, good: PartitionLog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    breaks(monkeypatch, taking_up, "log_start_offset", of_bad_path)
    bad.append(batch(5))
    good.append(batch(6))
    station.look()
    assert station.fold_of("good").bytes == good.active.size
    assert "log cannot be taken up now" in caplog.text
    assert "UnforeseenError" in caplog.text
    monkeypatch.undo()
    station.look()
    assert station.fold_of("bad").bytes == bad.active.size


def test_what_is_open(
    disk: LogDir, tmp_path: Path, bad: PartitionLog, good: PartitionLog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bad.append(batch(5))
    size = bad.active.size
    for where in (carrying, replaying):
        breaks(monkeypatch, where, "replay_of", of_bad_tail)
    station = Station(disk.path, journal=tmp_path / "journal")
    station.begin("latest")
    station.look()
    bad.append(batch(1))
    good.append(batch(6))
    station.look()
    assert "open transactions of a log are not known" in caplog.text
    assert station.fold_of("bad").bytes == bad.active.size - size
    assert station.fold_of("good").bytes == good.active.size
    station.close()


def test_looking_at_other_files(
    station: Station, bad: PartitionLog, good: PartitionLog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    breaks(monkeypatch, Inventory, "look", lambda _, partition, *__: partition.path.name == "bad-0")
    bad.append(batch(5))
    good.append(batch(6))
    station.look()
    assert "log cannot be listed" in caplog.text
    assert station.fold_of("bad").bytes == bad.active.size
    assert station.fold_of("good").bytes == good.active.size
    assert station.watcher.caught_up


def test_memory_that_is_short_is_no_log_s_fault(station: Station, bad: PartitionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    def short(*_: Any, **__: Any) -> Any:
        raise MemoryError

    station.look()
    monkeypatch.setattr(reading, "find_steps", short)
    bad.append(batch(5))
    with pytest.raises(MemoryError):
        station.look()


def test_offsets_of_an_old_wrapper_that_fit_no_64_bits(station: Station, bad: PartitionLog, good: PartitionLog) -> None:
    """As they once ended the agent, at each start again."""

    def message(offset: int, attributes: int, value: bytes) -> bytes:
        body = bytes([1, attributes]) + struct.pack(">qii", 7, -1, len(value)) + value
        return struct.pack(">qiI", offset, 4 + len(body), zlib.crc32(body)) + body

    stream = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    inner = stream.compress(message(0, 0, b"v") + message(-5, 0, b"v")) + stream.flush()
    with bad.active.path("log").open("ab") as file:
        file.write(message(2**63 - 1, 1, inner))
    good.append(batch(6))
    station.look()
    station.clock.now += 1000
    station.turn()
    assert [(event.kind, event.topic) for event in station.events if event.kind is Kind.CORRUPT] == [(Kind.CORRUPT, "bad")]
    assert station.fold_of("good").bytes == good.active.size
