"""What nobody foresaw in one log stops that log, visibly, and no other; nor the agent."""

import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streaming.broker.disk.log_inventory import Inventory
from streaming.broker.watcher import beginnings, open_at, reading, registry, tail
from streaming.common.rows import Kind
from streaming.kafka.scan import pieces
from tests.watcher.scene import Scene, scene
from tests.watcher.station import RESCAN_MS

BAD_GROWS = "t:5 good:6 look"


class UnforeseenError(ArithmeticError):
    """What no code expects."""


@pytest.fixture
def world(world: Scene) -> Scene:
    """With two logs of which one is bad."""
    world.play("new2 good:new3")
    return world


Breaks = Callable[..., None]


@pytest.fixture
def breaks(monkeypatch: pytest.MonkeyPatch) -> Breaks:
    """Lets a function fail where it is given something of the bad log; with ``late`` only when it has done its work."""

    def install(where: Any, name: str, is_bad: Callable[..., bool], *, late: bool = False) -> None:
        works = getattr(where, name)

        def fails(*args: Any, **kwargs: Any) -> Any:
            found = works(*args, **kwargs) if late else None
            if is_bad(*args):
                raise UnforeseenError("a number too large")
            return found if late else works(*args, **kwargs)

        monkeypatch.setattr(where, name, fails)

    return install


def of_bad_tail(tail: Any, *_: Any) -> bool:
    return str(tail.cursor.log) == "t-0"


def of_bad_path(path: Path, *_: Any) -> bool:
    return path.name == "t-0"


def good_is_whole(world: Scene) -> bool:
    return world.station.fold_of("good").bytes == world.log("good").active.size


def assert_stopped(world: Scene, caplog: pytest.LogCaptureFixture) -> None:
    """The bad log is stopped with all its bytes skipped, and goes on being counted so; the good one is read."""
    events, bad = world.station.events, world.log()
    corrupt, skipped = [event for event in events if event.kind in (Kind.CORRUPT, Kind.SKIPPED)]
    assert (corrupt.kind, corrupt.topic, corrupt.reason) == (Kind.CORRUPT, "t", "UnforeseenError: a number too large")
    assert (skipped.topic, skipped.bytes) == ("t", bad.active.size)
    (record,) = [record for record in caplog.records if record.message == "an unexpected error stopped a log: it is not read on"]
    assert (record.__dict__["log"], record.__dict__["path"], record.__dict__["position"]) == ("t-0", str(bad.active.path("log")), 0)
    assert record.exc_info is not None
    assert good_is_whole(world)
    begun, size = len(events), bad.active.size
    world.play("good:3 4 look")
    assert [event.bytes for event in events[begun:] if event.kind in (Kind.CORRUPT, Kind.SKIPPED)] == [bad.active.size - size]
    assert good_is_whole(world)
    assert world.station.watcher.caught_up


@pytest.mark.parametrize("name", ["find_steps", "find_entries"])
def test_reading(world: Scene, breaks: Breaks, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str) -> None:
    world.play("look")
    breaks(reading, name, of_bad_tail)
    world.play(BAD_GROWS)
    assert_stopped(world, caplog)
    world.play("replace look")
    assert len([event for event in world.station.events if event.kind is Kind.CORRUPT]) == 2  # another process tries once
    assert world.station.fold_of("t").corrupt_at == [0]
    monkeypatch.undo()
    world.play("replace look")
    assert world.station.fold_of("t").next_offset == 9


def test_an_error_behind_the_move_of_the_cursor(world: Scene, breaks: Breaks, caplog: pytest.LogCaptureFixture) -> None:
    """What was read is not published, so it is skipped."""
    world.play("look")
    breaks(tail.Tail, "append", of_bad_tail, late=True)
    world.play(BAD_GROWS)
    assert_stopped(world, caplog)


@pytest.mark.parametrize("most_pieces", [0, pieces.MOST_PIECES])
def test_scanning_many_logs_at_once(
    most_pieces: int, world: Scene, breaks: Breaks, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In one numpy pass, and in the plain loop that few batches are left to."""
    monkeypatch.setattr(pieces, "MOST_PIECES", most_pieces)
    world.play("look")
    breaks(pieces, "columns_of", lambda _, headers: (headers["records_count"] == 5).any())
    breaks(pieces, "find_flaws", lambda batches, *_: (batches.records == 5).any())
    world.play(BAD_GROWS)
    assert_stopped(world, caplog)


def test_looking_for_growth(world: Scene, breaks: Breaks, caplog: pytest.LogCaptureFixture) -> None:
    world.play("look")
    breaks(tail, "holds_anchor", lambda _, cursor: str(cursor.log) == "t-0")
    world.play(BAD_GROWS)
    assert_stopped(world, caplog)


def test_listing_a_log_that_is_watched(world: Scene, breaks: Breaks, caplog: pytest.LogCaptureFixture) -> None:
    world.play("look 5")
    for where in (registry, beginnings):
        breaks(where, "log_start_offset", of_bad_path)
    world.look({world.log().directory, world.log("good").directory})
    assert "log cannot be listed" in caplog.text
    world.play("look")
    assert [event.topic for event in world.station.events if event.kind is Kind.CORRUPT] == ["t"]
    world.play("good:6 look")
    assert good_is_whole(world)


def test_listing_a_log_that_waits_to_be_read_on(breaks: Breaks) -> None:
    """It is in the queue of backlogs when it is stopped, and is not read from there."""
    with scene() as one:
        bad, station = one.make("t", segment_bytes=1 << 30), one.station
        one.play(f"1*8~{1 << 20} wait{RESCAN_MS}")
        assert one.turn(budget=1 << 20)
        size, began = station.fold_of("t").bytes, len(station.events)
        assert 0 < size < bad.active.size
        breaks(beginnings, "log_start_offset", of_bad_path)
        one.play("roll look")
        assert [event.kind for event in station.events[began:]][:2] == [Kind.CORRUPT, Kind.SKIPPED]
        assert station.fold_of("t").bytes == size
        assert station.watcher.caught_up


def test_taking_up_a_log_that_is_new(
    world: Scene, breaks: Breaks, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    breaks(beginnings, "log_start_offset", of_bad_path)
    world.play(BAD_GROWS)
    assert good_is_whole(world)
    assert "log cannot be taken up now" in caplog.text
    assert "UnforeseenError" in caplog.text
    monkeypatch.undo()
    assert world.result("look") == "at0 0-5"


def test_what_is_open(breaks: Breaks, caplog: pytest.LogCaptureFixture) -> None:
    breaks(open_at, "replay_of", of_bad_tail)
    with scene(start_from="latest") as one:
        assert one.play("5 good:new3 look 1 good:6 look") == "at5 good:at0 | 5-6 good:0-6"
        assert "open transactions of a log are not known" in caplog.text


def test_looking_at_other_files(world: Scene, breaks: Breaks, caplog: pytest.LogCaptureFixture) -> None:
    breaks(Inventory, "look", lambda _, partition, *__: partition.path.name == "t-0")
    assert world.result(BAD_GROWS) == "at0 0-5 good:at0 good:0-6"
    assert "log cannot be listed" in caplog.text


def test_memory_that_is_short_is_no_log_s_fault(world: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def short(*_: Any, **__: Any) -> Any:
        raise MemoryError

    world.play("look")
    monkeypatch.setattr(reading, "find_steps", short)
    with pytest.raises(MemoryError):
        world.play("5 look")


def test_offsets_of_an_old_wrapper_that_fit_no_64_bits(world: Scene) -> None:
    """As they once ended the agent, at each start again."""

    def message(offset: int, attributes: int, value: bytes) -> bytes:
        body = bytes([1, attributes]) + struct.pack(">qii", 7, -1, len(value)) + value
        return struct.pack(">qiI", offset, 4 + len(body), zlib.crc32(body)) + body

    stream = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    inner = stream.compress(message(0, 0, b"v") + message(-5, 0, b"v")) + stream.flush()
    world.write("t", message(2**63 - 1, 1, inner))
    world.play("good:6 look wait1000 turn")
    assert [event.topic for event in world.station.events if event.kind is Kind.CORRUPT] == ["t"]
    assert good_is_whole(world)
