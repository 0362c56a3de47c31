"""The producers of each log: counted with what was appended, kept with the places, set back with the log."""

from streaming.common.event_row import Event
from streaming.common.rows import Kind
from streaming.kafka.scan.producer_states import EXPIRATION_MS
from streaming.simulator.batch_writer import Batch
from streaming.simulator.log import LogDir
from tests.builders import NOW, batch, partition
from tests.watcher.station import PRODUCERS_LIMIT, Station

P, Q = 4000, 4001


def data(producer: int, sequence: int, *, timestamp: int = NOW) -> Batch:
    return batch(1, producer=producer, sequence=sequence, timestamp=timestamp)


def counts(events: list[Event]) -> list[tuple[int, int]]:
    """(active producers, sequence gaps) of what was appended."""
    return [(event.active_producers, event.sequence_gaps) for event in events if event.kind is Kind.APPENDED]


def test_producers_and_gaps_are_reported_with_what_was_appended(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(data(P, 0), data(Q, 0), batch())
    assert counts(station.look()) == [(2, 0)]
    log.append(data(P, 1), data(Q, 5), data(P, 3))
    assert counts(station.look()) == [(2, 2)]


def test_in_a_compacted_log_nothing_is_a_gap(station: Station, disk: LogDir) -> None:
    station.cluster.compacted = {"t"}
    partition(disk, "t").append(data(P, 0), data(P, 5))
    assert counts(station.look()) == [(1, 0)]


def test_another_watcher_goes_on_with_them(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(data(P, 0), data(Q, 0), data(P + 256, 0))
    station.look()
    station.replace_watcher()
    log.append(data(P, 1), data(Q, 2))
    assert counts(station.look()) == [(3, 1)]


def test_they_go_with_the_log(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(data(P, 0))
    station.look()
    (tail,) = station.watcher.tails()
    log.close()
    disk.forget(log)
    log.remove()
    station.look()
    assert station.journal.producers(tail.cursor.log) is None


def test_a_log_that_is_read_from_its_middle_has_those_of_the_snapshot(disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(data(P, 0), data(Q, 0))
    log.roll()
    log.append(data(P, 2))
    station = Station(disk.path)
    station.begin("active")
    assert counts(station.look()) == [(2, 1)]
    station.close()


def test_where_a_log_was_cut_off_they_are_as_they_were_there(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(data(P, 0), data(P, 1), data(Q, 0))
    station.look()
    log.truncate(1)
    station.look()
    log.append(data(P, 1))
    assert counts(station.look()) == [(1, 0)]
    station.replace_watcher()
    log.append(data(P, 2))
    assert counts(station.look()) == [(1, 0)]


def test_the_silent_ones_are_let_go(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(data(P, 0), data(Q, 0, timestamp=NOW + EXPIRATION_MS))
    station.look()
    station.clock.now = NOW + EXPIRATION_MS + 1
    log.append(data(Q, 1, timestamp=NOW + EXPIRATION_MS))
    assert counts(station.look(station.everything())) == [(1, 0)]


def test_how_many_there_are_is_not_reported_where_some_were_let_go_for_their_number(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(*[data(producer, 0) for producer in range(PRODUCERS_LIMIT + 1)])
    assert counts(station.look()) == [(-1, 0)]
    station.replace_watcher()
    log.append(data(PRODUCERS_LIMIT, 1))
    assert counts(station.look()) == [(-1, 0)]
