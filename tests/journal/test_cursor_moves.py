"""Cursors that moved, packed: whoever reads the journal finds each log where it is, whatever was written of it in which order."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.broker.journal.cursor import Cursor
from streaming.broker.journal.journal import Journal
from streaming.broker.journal.producer_pages import IDS_A_PAGE, KnownProducers
from streaming.broker.journal.stored_logs import CursorMoves
from streaming.common.log_key import LogKey
from streaming.errors import JournalError
from streaming.kafka.scan.producer_states import ENTRIES, Producers, Taken
from tests.builders import CLUSTER_ID
from tests.clocks import Clock
from tests.scratch import scratch

LOGS = [LogKey(1, "t", number, "id") for number in range(3)]
LIMIT = 100


def cursor(number: int, position: int, *, segment: int = 0) -> Cursor:
    return Cursor(
        log=LOGS[number],
        segment=segment,
        device=1,
        inode=2**40,
        position=position,
        next_offset=position,
        log_epoch=3,
        epochs=b"\x01\x00" * 6,
        anchor=position.to_bytes(61, "big"),
        anchor_position=max(0, position - 1),
        frontier=position,
        stopped="",
        skipped=0,
        backlog_segment=0,
        backlog_position=0,
        first_timestamp=4,
        largest_timestamp=position,
    )


def entry(producer: int, sequence: int) -> bytes:
    return np.array([(producer, 0, 0, sequence, sequence)], ENTRIES).tobytes()


def opened(directory: Path) -> Journal:
    return Journal(directory, CLUSTER_ID, Clock())


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    made = opened(tmp_path / "journal")
    made.publish([], [cursor(number, 10) for number in range(3)])
    return made


def positions(journal: Journal) -> list[int]:
    return [one.position for one in sorted(journal.cursors(), key=lambda one: one.log)]


def moved(*cursors: Cursor, rows: Sequence[LogKey] = ()) -> CursorMoves:
    return CursorMoves(cursors, [b""] * len(cursors), rows)


def test_a_log_is_where_it_moved_last_for_the_next_process_too(journal: Journal, tmp_path: Path) -> None:
    journal.publish([], moved=moved(cursor(0, 20), cursor(1, 15)))
    journal.publish([], moved=moved(cursor(0, 30)))
    journal.close()
    after = opened(tmp_path / "journal")
    assert sorted(after.cursors(), key=lambda one: one.log) == [cursor(0, 30), cursor(1, 15), cursor(2, 10)]
    assert after.published_ends()[LOGS[0]].upto == 30


def test_moves_before_a_row_do_not_count(journal: Journal) -> None:
    journal.publish([], moved=moved(cursor(0, 20), cursor(1, 20)))
    cut = cursor(0, 10)  # the log was truncated, and is where the move began
    journal.publish([], [cut], moved=moved(rows=[LOGS[0]]))
    assert positions(journal) == [10, 20, 10]
    journal.publish([], [cut], moved=moved(cursor(1, 30)))
    journal.publish([], moved=moved(cursor(0, 25)))
    assert positions(journal) == [25, 30, 10]


def test_a_log_that_is_gone_stays_gone_and_one_that_comes_back_is_where_it_is(journal: Journal) -> None:
    journal.publish([], moved=moved(cursor(0, 20), cursor(1, 20)))
    journal.publish([], gone=[LOGS[0]])
    assert positions(journal) == [20, 10]
    journal.publish([], [cursor(0, 5)])
    assert positions(journal) == [5, 20, 10]


def test_a_move_that_cannot_be_written_is_no_move(journal: Journal) -> None:
    with journal.database.reading() as run:
        run.execute("CREATE TRIGGER full BEFORE INSERT ON moves BEGIN SELECT RAISE(ABORT, 'disk full'); END")
    with pytest.raises(JournalError, match="disk full"):
        journal.publish([], [cursor(1, 30)], moved=moved(cursor(0, 20)))
    with journal.database.reading() as run:
        run.execute("DROP TRIGGER full")
    assert positions(journal) == [10, 10, 10]
    journal.publish([], [cursor(1, 30)], moved=moved(cursor(0, 20)))
    assert positions(journal) == [20, 30, 10]


def test_a_merge_that_fails_leaves_the_moves(journal: Journal) -> None:
    journal.publish([], moved=moved(cursor(0, 20)))
    with journal.database.reading() as run:
        run.execute("CREATE TRIGGER full BEFORE DELETE ON moves BEGIN SELECT RAISE(ABORT, 'disk full'); END")
    with pytest.raises(JournalError):
        journal.cursors()
    with journal.database.reading() as run:
        run.execute("DROP TRIGGER full")
    assert positions(journal) == [20, 10, 10]


steps = st.lists(
    st.tuples(st.sampled_from(["move", "row", "restart"]), st.lists(st.tuples(st.sampled_from([1, 2, IDS_A_PAGE, 900]), st.integers(0, 9))))
)


@given(steps)
def test_producers_are_those_after_all_steps(done: list[tuple[str, list[tuple[int, int]]]]) -> None:
    with scratch() as directory:
        journal, known, position = opened(Path(directory)), KnownProducers(LIMIT, Producers.none(LIMIT)), 10
        known.reset(Producers.none(LIMIT))
        journal.publish([], [cursor(0, position)], pages=[pages for pages in [known.unwritten(LOGS[0])] if pages is not None])
        for what, changes in done:
            if what == "restart":
                journal.close()
                journal = opened(Path(directory))
                known = KnownProducers(LIMIT, journal.producers(LOGS[0], LIMIT))
                continue
            changed = np.array(sorted(dict(changes).items()), np.int64).reshape(-1, 2)
            entries = np.zeros(len(changed), ENTRIES)
            entries["producer_id"], entries["last_sequence"] = changed[:, 0], changed[:, 1]
            assert known.now is not None
            ours = {int(one["producer_id"]): one for one in (*known.now.entries, *entries)}
            after = np.array([ours[own] for own in sorted(ours)], ENTRIES)
            taken = Taken(known.now._replace(entries=after), 0, entries, np.empty(0, np.int64))
            position += 1
            if what == "move":
                known.move(taken)
                assert not known.need_pages
                journal.publish([], moved=CursorMoves([cursor(0, position)], [entries.tobytes()]))
            else:
                known.go_on(taken)
                pages = known.unwritten(LOGS[0])
                journal.publish([], [cursor(0, position)], pages=[] if pages is None else [pages], moved=moved(rows=[LOGS[0]]))
        found = journal.producers(LOGS[0], LIMIT)
        assert found is not None
        assert known.now is not None
        assert found.entries.tolist() == known.now.entries.tolist()
        journal.close()


def test_what_a_move_does_not_show_needs_pages() -> None:
    known = KnownProducers(LIMIT, Producers.none(LIMIT))
    assert known.now is not None
    known.move(Taken(known.now, 0, np.frombuffer(entry(7, 1), ENTRIES), np.array([5])))
    assert known.need_pages
    pages = known.unwritten(LOGS[0])
    assert pages is not None
    assert not known.need_pages
    known.move(Taken(known.now._replace(dropped_ms=9), 0, np.frombuffer(entry(7, 1), ENTRIES), np.empty(0, np.int64)))
    assert known.need_pages
