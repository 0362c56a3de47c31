"""The producers of each log: counted with what was appended, kept with the places, set back with the log."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.broker.journal.journal import Journal
from streaming.broker.journal.producer_pages import IDS_A_PAGE, KnownProducers
from streaming.common.event_row import Event
from streaming.common.log_key import LogKey
from streaming.common.rows import Kind
from streaming.kafka.scan.headers import Batches, read_headers
from streaming.kafka.scan.producer_states import EXPIRATION_MS, Producers
from streaming.simulator.batch_writer import Batch
from streaming.simulator.log import LogDir
from tests.builders import CLUSTER_ID, NOW, batch, partition
from tests.clocks import Clock
from tests.formats.segments import written
from tests.scratch import scratch
from tests.watcher.joined import join
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


def test_of_ranges_that_become_one_the_gaps_are_added(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    station.look()
    for sequence, producer in ((0, P), (5, P), (0, Q), (9, P)):
        log.append(data(producer, sequence))
        station.watcher.poll(station.everything())
    join(station.journal)
    assert counts(station.look()) == [(2, 2)]


def test_in_a_compacted_log_nothing_is_a_gap(station: Station, disk: LogDir) -> None:
    station.cluster.compacted = {"t"}
    partition(disk, "t").append(data(P, 0), data(P, 5))
    assert counts(station.look()) == [(1, 0)]


@pytest.mark.parametrize("killed", [True, False])
def test_they_survive_the_process(station: Station, disk: LogDir, killed: bool) -> None:
    log = partition(disk, "t")
    log.append(data(P, 0), data(Q, 0), data(P + IDS_A_PAGE, 0))
    station.look()
    station.restart(killed=killed)
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
    assert station.journal.producers(tail.cursor.log, 10) is None


def test_a_log_that_is_read_from_its_middle_has_those_of_the_snapshot(disk: LogDir, tmp_path: Path) -> None:
    log = partition(disk, "t")
    log.append(data(P, 0), data(Q, 0))
    log.roll()
    log.append(data(P, 2))
    station = Station(disk.path, journal=tmp_path / "journal")
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
    station.restart()
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
    station.restart()
    log.append(data(PRODUCERS_LIMIT, 1))
    assert counts(station.look()) == [(-1, 0)]


def headers(*batches: Batch) -> Batches:
    content = written(batches)
    return read_headers(content.buffer, np.array(content.positions, np.int64))


LOG = LogKey(1, "t", 0, "id")
moves = st.one_of(
    st.lists(st.tuples(st.integers(0, 600), st.integers(0, 3)), min_size=1, max_size=5),
    st.sampled_from(["reset", "unknown", "write", "later"]),
)


@given(st.lists(moves, max_size=12), st.integers(1, 8))
def test_what_is_written_in_pages_is_what_is_known(done: list[list[tuple[int, int]] | str], limit: int) -> None:
    with scratch() as root:
        journal = Journal(Path(root), CLUSTER_ID, Clock(NOW))
        known, now = KnownProducers(limit), NOW
        known.reset(Producers.none(limit))
        for move in [*done, "write"]:
            if move == "reset":
                known.reset(Producers.none(limit))
            elif move == "unknown":
                known.reset(None)
            elif move == "later":
                now += EXPIRATION_MS
            elif move == "write":
                pages = known.unwritten(LOG)
                journal.publish([], [], [], [] if pages is None else [pages])
            else:
                assert isinstance(move, list)
                known.take(headers(*[data(producer, sequence, timestamp=now) for producer, sequence in move]), now, compacted=False)
        kept = journal.producers(LOG, limit)
        journal.close()
        if known.now is None:
            assert kept is None
        else:
            assert kept is not None
            assert (kept.entries.tolist(), kept.dropped_ms) == (known.now.entries.tolist(), known.now.dropped_ms)
