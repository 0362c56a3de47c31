"""A journal of rows becomes one of blocks: the same events at the same places, those that nobody had been told of included."""

import gzip
from pathlib import Path

import pytest

from streaming.event_row import Event
from streaming.journal.consumers import Consumers
from streaming.journal.journal import Journal, Mark
from streaming.rows import Kind
from tests.builders import CLUSTER_ID
from tests.clocks import Clock
from tests.journal.test_journal import appended, cursor
from tests.upgrade.before import DATA
from tests.watcher.journalled import events_of

FOUND = Event(kind=Kind.FOUND, broker=1, topic="t", partition=0, topic_id="id", log_dir="/d", segments=bytes(range(32)), oldest_timestamp=5)
CORRUPT = Event(kind=Kind.CORRUPT, broker=1, topic="\u00fc.x", partition=0, topic_id="id", reason="bad 'magic'", start_position=4)

EVENTS = [
    (2, appended(0, 10, detail=b"\x01\x00binary")),
    (3, FOUND),
    (4, Event(kind=Kind.CENSUS, reason="/d", detail=b"keys")),
    (5, CORRUPT),
    (7, appended(0, 7, number=1, transactions=b"t" * 60)),  # nobody was told of this one and the next
    (8, appended(10, 10, batches=2, max_timestamp=15)),
]
"""The first one was forgotten; the sixth became one with the last."""


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    (tmp_path / "journal.db").write_bytes(gzip.decompress((DATA.parent / "journal_6.db.gz").read_bytes()))
    return Journal(tmp_path, CLUSTER_ID, Clock())


def test_it_holds_what_it_held(journal: Journal) -> None:
    assert events_of(journal, 0, 99) == EVENTS
    assert (journal.trimmed(), journal.end()) == (Mark(1, 9), Mark(8, 36))
    assert [journal.at(seq).total for seq in range(1, 9)] == [9, 19, 19, 19, 19, 19, 26, 36]
    assert (journal.reach(1, 10), journal.reach(1, 17), journal.reach(1, None)) == (Mark(5, 19), Mark(7, 26), Mark(8, 36))
    assert (journal.cursors(), Consumers(journal, journal.now_ms).committed("a")) == ([cursor(0, 10)], 1)
    assert journal.size() > 500


def test_it_goes_on_where_it_was(journal: Journal) -> None:
    journal.publish([appended(20, 1)])
    assert journal.end() == Mark(9, 37)
    assert (journal.has_been_at(8, 36), journal.has_been_at(8, 35), journal.has_been_at(10, 40)) == (True, False, False)
