"""A coordinator's log is read again from its first byte for who may lack some of its entries: as a whole, or not at all."""

import logging
from pathlib import Path

import pytest

from streaming.broker.disk.segment_files import Segment, list_segments
from streaming.broker.journal.range_values import NO_ENTRIES
from streaming.broker.watcher import coordinator_replay
from streaming.broker.watcher.unreadable import TRIES
from streaming.broker.watcher.watcher import Doubt
from streaming.common.event_row import Event
from streaming.common.rows import Kind
from streaming.simulator.batch_writer import Batch, Record
from streaming.simulator.coordinators import IdState, StoredTransaction, transaction_record
from streaming.simulator.log import LogDir, PartitionLog
from tests.builders import NOW, partition
from tests.watcher.coordinated import entries, state
from tests.watcher.station import Station

PRESENT = [("b", "Empty", 1), ("a", "PrepareCommit", 3)]


@pytest.fixture
def log(disk: LogDir) -> PartitionLog:
    """A segment for each entry; the one of `c` says that it has expired."""
    made = partition(disk, "__transaction_state", 3)
    expired = transaction_record(
        StoredTransaction(transactional_id="c", producer_id=1, epoch=0, timeout_ms=1, state=IdState.EMPTY, updated=NOW)
    )
    gone = Batch(records=(Record(expired.key, None, NOW),))
    for each in (
        state("a", IdState.ONGOING),
        state("b", IdState.EMPTY),
        state("c", IdState.ONGOING),
        state("a", IdState.PREPARE_COMMIT),
        gone,
    ):
        made.append(each)
        made.roll()
    return made


def reported(events: list[Event]) -> list[list[tuple[str, str, int]]]:
    return [entries([event]) for event in events if event.kind is Kind.APPEARED and event.coordinator not in (None, NO_ENTRIES)]


def missed(station: Station) -> None:
    """Somebody begins: the log is published from its first byte, and then read once more for others."""
    station.look()
    station.begin("latest", "second")


class Failing:
    """Lists segments, and fails so many times with an error."""

    def __init__(self, times: int, error: Exception) -> None:
        self.left, self.error = times, error

    def __call__(self, directory: Path) -> tuple[Segment, ...]:
        if self.left:
            self.left -= 1
            raise self.error
        return list_segments(directory)


def test_what_counts_is_the_last_entry_of_each_id_that_has_not_expired(station: Station, log: PartitionLog) -> None:
    missed(station)
    assert reported(station.look(set())) == [PRESENT]
    assert reported(station.look(set())) == []


def test_a_log_whose_segments_go_meanwhile_is_tried_again_at_once(
    station: Station, log: PartitionLog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    missed(station)
    monkeypatch.setattr(coordinator_replay, "list_segments", Failing(TRIES - 1, FileNotFoundError("gone")))
    assert reported(station.look(set())) == [PRESENT]
    assert "cannot be read again" not in caplog.text


@pytest.mark.parametrize(
    ("times", "error", "doubts"),
    [(TRIES, FileNotFoundError("gone"), 0), (1, PermissionError("no"), 0), (1, ArithmeticError("what nobody foresaw"), 1)],
    ids=["gone", "refused", "unforeseen"],
)
def test_a_log_that_cannot_be_read_waits_for_the_next_rescan(
    station: Station,
    log: PartitionLog,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    times: int,
    error: Exception,
    doubts: int,
) -> None:
    missed(station)
    failing = Failing(times, error)
    monkeypatch.setattr(coordinator_replay, "list_segments", failing)
    assert reported(station.look(set())) == []
    assert failing.left == 0
    (record,) = [record for record in caplog.records if "cannot be read again now" in record.message]
    assert (record.levelno, record.exc_info is not None) == (logging.WARNING, doubts == 1)
    assert station.watcher.doubts()[Doubt.PRODUCER_SNAPSHOT] == doubts
    assert reported(station.look(set())) == []
    assert reported(station.look()) == [PRESENT]


def test_a_log_that_is_cut_off_meanwhile_is_read_from_its_beginning(station: Station, log: PartitionLog) -> None:
    missed(station)
    began = len(station.events)
    for _ in range(4):
        assert station.turn(budget=2)  # a segment of it
    log.truncate(3)
    log.append(state("d", IdState.EMPTY), leader_epoch=1)
    station.look({log.directory})
    assert reported(station.events[began:]) == [[("a", "Ongoing", 0), ("b", "Empty", 1), ("c", "Ongoing", 2), ("d", "Empty", 3)]]


def test_one_that_is_cut_off_and_has_grown_as_far_again_is_read_from_its_beginning(station: Station, log: PartitionLog) -> None:
    missed(station)
    began = len(station.events)
    for _ in range(4):
        assert station.turn(budget=2)  # a segment of it
    log.truncate(3)
    for name in ("d", "e"):
        log.append(state(name, IdState.EMPTY), leader_epoch=1)
    station.look({log.directory})
    assert reported(station.events[began:]) == [
        [("a", "Ongoing", 0), ("b", "Empty", 1), ("c", "Ongoing", 2), ("d", "Empty", 3), ("e", "Empty", 4)]
    ]
