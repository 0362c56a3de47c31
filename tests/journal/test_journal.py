"""The last events of an agent: numbered, bounded, within a budget."""

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.broker.journal import journal as journal_module
from streaming.broker.journal.cursor import Cursor
from streaming.broker.journal.journal import Begun, Journal, Point, Stand
from streaming.common.event_row import Event
from streaming.common.rows import Kind
from streaming.errors import FencedError
from streaming.kafka.scan.producer_states import Producers
from tests.journal.appends import LOGS, appended
from tests.watcher.journalled import events_of


@pytest.fixture
def journal() -> Journal:
    return Journal()


def cursor(number: int, position: int) -> Cursor:
    return Cursor(
        log=LOGS[number],
        segment=0,
        device=1,
        inode=2**40,
        position=position,
        next_offset=position,
        log_epoch=3,
        anchor=b"",
        anchor_position=7,
        frontier=position,
        stopped="",
        skipped=0,
        backlog_segment=1,
        backlog_position=2,
        first_timestamp=4,
        largest_timestamp=-2,
    )


def everything(journal: Journal) -> list[tuple[int, Event]]:
    return events_of(journal, 0, journal.end().seq)


def test_events_come_back_as_they_were_published(journal: Journal) -> None:
    events = [
        appended(0, 10, detail=b"\x01\x00binary", batch_bytes_buckets=tuple(range(9)), batch_records_buckets=tuple(range(9, 18))),
        Event(kind=Kind.APPEARED, broker=1, topic="ü.x", partition=3, topic_id="i", next_offset=2**62, log_dir='/"d"', settled=True),
        Event(kind=Kind.CORRUPT, broker=1, topic="t", partition=0, topic_id="id", reason="bad 'magic'", start_position=4),
        Event(kind=Kind.CENSUS, reason="/d", detail=b"keys"),
    ]
    journal.publish(events)
    assert [event for _, event in everything(journal)] == events
    assert [seq for seq, _ in everything(journal)] == [1, 2, 3, 4]


def test_each_process_has_another_one() -> None:
    assert Journal().id != Journal().id


def test_a_budget_reaches_as_far_as_whole_events_fit(journal: Journal) -> None:
    journal.publish([appended(0, 10), appended(0, 20, number=1), appended(0, 30, number=2)])
    assert journal.reach(0, 10) == Point(1, 10)
    assert journal.reach(0, 59) == Point(2, 30)
    assert journal.reach(0, 60) == Point(3, 60)
    assert journal.reach(1, 20) == Point(2, 30)
    assert journal.reach(3, 100) == Point(3, 60)
    assert journal.reach(0, None) == journal.end() == Point(3, 60)


def test_at_least_one_event_passes_however_small_the_budget(journal: Journal) -> None:
    journal.publish([appended(0, 10), appended(0, 20, number=1)])
    assert journal.reach(0, 0) == Point(1, 10)
    assert journal.reach(1, 1) == Point(2, 30)
    assert journal.reach(2, 1) == Point(2, 30)


def test_events_that_are_not_bytes_of_logs_cost_no_budget(journal: Journal) -> None:
    journal.publish([Event(kind=Kind.APPEARED, bytes=0), appended(0, 10), appended(0, 99, number=1, kind=Kind.TRUNCATED)])
    assert journal.reach(0, 10) == Point(3, 10)


def test_the_point_of_a_seq(journal: Journal) -> None:
    journal.publish([appended(0, 10), appended(0, 20, number=1)])
    assert (journal.at(0), journal.at(1), journal.at(2), journal.at(9)) == (Point(0, 0), Point(1, 10), Point(2, 30), Point(2, 30))
    journal.clear()
    assert (journal.at(1), journal.dropped(), journal.size()) == (Point(2, 30), Point(2, 30), 0)
    journal.publish([appended(10, 5)])
    assert (journal.at(3), journal.reach(2, None)) == (Point(3, 35), Point(3, 35))


def test_what_was_published_last_is_kept_however_large_it_is() -> None:
    journal = Journal(1)
    for number in range(3):
        journal.publish([appended(number, 10)])
        assert everything(journal) == [(number + 1, appended(number, 10))]
        assert journal.dropped() == Point(number, 10 * number)


publications = st.lists(st.lists(st.integers(0, 40), max_size=5), max_size=12)


@given(publications, st.integers(0, 30), st.none() | st.integers(0, 200))
def test_a_reach_is_the_furthest_event_within_the_budget(published: list[list[int]], after: int, budget: int | None) -> None:
    journal, sizes = Journal(), [0]
    for each in published:
        journal.publish([appended(0, size) for size in each])
        sizes += each
    totals = [sum(sizes[: seq + 1]) for seq in range(len(sizes))]
    end = len(sizes) - 1
    after = min(after, end)
    fitting = [seq for seq in range(after, end + 1) if budget is None or totals[seq] - totals[after] <= budget]
    expected = max(fitting[-1], min(after + 1, end))
    assert journal.reach(after, budget) == Point(expected, totals[expected])


@given(publications, st.integers(1, 4000))
def test_the_oldest_are_dropped_and_the_rest_is_as_it_was(published: list[list[int]], most: int) -> None:
    small, whole = Journal(most), Journal()
    for each in published:
        for journal in (small, whole):
            journal.publish([appended(0, size) for size in each])
    dropped = small.dropped()
    assert dropped == whole.at(dropped.seq)
    assert everything(small) == [(seq, event) for seq, event in everything(whole) if seq > dropped.seq]
    assert small.end() == whole.end()
    assert small.size() <= most or len(small._blocks) == 1
    assert small.size_after(dropped.seq) == small.size()
    assert small.size_after(small.end().seq) == 0


def test_long_publications_are_several_blocks(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "BLOCK_ROWS", 2)
    journal.publish([appended(number, 1) for number in range(5)])
    assert [block.num_rows for block in journal.blocks(0, 9)] == [2, 2, 1]
    assert [block.num_rows for block in journal.blocks(1, 4)] == [1, 2]
    assert [block.num_rows for block in journal.blocks(1, 4, 1)] == [1]
    assert journal.blocks(5, 9) == []


def test_where_logs_stand_is_taken_over_with_the_events(journal: Journal) -> None:
    producers = Producers.none(3)
    journal.publish([appended(0, 10)], [Stand(cursor(0, 10), producers), Stand(cursor(1, 0), None)])
    journal.publish([], [Stand(cursor(0, 20), producers)])
    assert sorted(journal.cursors(), key=lambda one: one.log) == [cursor(0, 20), cursor(1, 0)]
    assert (journal.producers(LOGS[0]), journal.producers(LOGS[1]), journal.producers(LOGS[2])) == (producers, None, None)
    journal.publish([], [], [LOGS[1]])
    assert journal.cursors() == [cursor(0, 20)]


def test_a_beginning_comes_after_everything_before(journal: Journal) -> None:
    journal.publish([appended(0, 10)])
    begun = Begun()
    journal.publish([appended(10, 5)], begun=begun)
    assert (begun.seq, journal.end().seq) == (1, 2)


def test_a_thread_that_was_replaced_publishes_nothing(journal: Journal) -> None:
    errors: list[Exception] = []

    def publish() -> None:
        try:
            journal.publish([appended(0, 10)])
        except FencedError as error:
            errors.append(error)

    thread = threading.Thread(target=publish)
    journal.fence(thread)
    thread.start()
    thread.join()
    assert (len(errors), journal.end().seq) == (1, 0)
    journal.publish([appended(0, 10)])
    assert journal.end().seq == 1


def test_waiting_for_something_to_be_published(journal: Journal, tmp_path: Path) -> None:
    assert journal.wait(0) is False
    assert journal.wait(-1) is False
