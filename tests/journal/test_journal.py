"""The journal: events in order, and what becomes of those that wait."""

import itertools
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.broker.disk.segment_files import SegmentKey
from streaming.broker.journal.blocks import entries
from streaming.broker.journal.consumers import Consumers
from streaming.broker.journal.cursor import Cursor
from streaming.broker.journal.database import VERSION
from streaming.broker.journal.forgetting import LEAST, LOOKS, MERGED_BLOBS_MAX, MERGED_BYTES_MAX, Forgetting, TrimLimits
from streaming.broker.journal.journal import Journal, Point
from streaming.common.event_row import Event
from streaming.common.log_key import LogKey
from streaming.common.rows import Kind
from streaming.errors import JournalBusyError, JournalError
from streaming.kafka.scan.sums import joined
from tests.builders import CLUSTER_ID
from tests.clocks import Clock
from tests.journal.appends import LOGS, appended
from tests.scratch import scratch
from tests.watcher.joined import join
from tests.watcher.journalled import events_of


def opened(directory: Path) -> Journal:
    return Journal(directory, CLUSTER_ID, Clock())


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return opened(tmp_path / "journal")


def cursor(number: int, position: int) -> Cursor:
    return Cursor(
        log=LOGS[number],
        segment=0,
        device=1,
        inode=2**40,
        position=position,
        next_offset=position,
        log_epoch=3,
        epochs=b"\x01\x00" * 6,
        anchor=b"\x00\xff" * 30,
        anchor_position=7,
        frontier=2**63 - 1,
        stopped="why",
        skipped=9,
        backlog_segment=1,
        backlog_position=2,
        first_timestamp=4,
        largest_timestamp=-2,
    )


def forget(journal: Journal, upto: int) -> None:
    while Forgetting(journal).forget(upto):
        pass


def merge(journal: Journal, upto: int) -> int:
    """Merge everything up to there; returns how many bytes are lost."""
    trimming, lost = Forgetting(journal), 0
    while True:
        size, more = trimming.merge(upto, TrimLimits(before_ms=1 << 62, max_bytes=0))
        lost += size
        if not more:
            return lost


def everything(journal: Journal) -> list[tuple[int, Event]]:
    return events_of(journal, 0, journal.end().seq)


def test_events_come_back_as_they_were_written(journal: Journal) -> None:
    events = [
        appended(0, 10, detail=b"\x01\x00binary", batch_bytes_buckets=tuple(range(9)), batch_records_buckets=tuple(range(9, 18))),
        Event(kind=Kind.APPEARED, broker=1, topic="ü.x", partition=3, topic_id="i", next_offset=2**62, log_dir='/"d"', settled=True),
        Event(kind=Kind.CORRUPT, broker=1, topic="t", partition=0, topic_id="id", reason="bad 'magic'", start_position=4),
        Event(kind=Kind.CENSUS, reason="/d", detail=b"keys"),
    ]
    journal.publish(events)
    assert [event for _, event in everything(journal)] == events
    assert [seq for seq, _ in everything(journal)] == [1, 2, 3, 4]


def test_appends_that_follow_each_other_become_one_while_they_wait(journal: Journal) -> None:
    journal.publish([appended(0, 10)])
    journal.publish([appended(10, 5), appended(0, 7, number=1)])
    journal.publish([appended(15, 1)])
    join(journal)
    (_, other), (_, merged) = everything(journal)
    assert (other.partition, other.bytes) == (1, 7)
    assert (merged.start_position, merged.end_position, merged.base_offset, merged.next_offset) == (0, 16, 0, 16)
    assert (merged.bytes, merged.batches, merged.records, merged.max_timestamp, merged.codec_bytes) == (16, 3, 16, 15, (16, 0, 0, 0, 0))
    journal.publish([appended(16, 1)])
    assert [event.bytes for _, event in everything(journal)] == [7, 16, 1]


@pytest.mark.parametrize(
    "later",
    [
        {"segment": 10},
        {"log_epoch": 2},
        {"leads": 0},
        {"start_position": 11},
        {"log_dir": "/e"},
        {"detail": b"\x01"},
        {"kind": Kind.SKIPPED},
        {"bytes": MERGED_BYTES_MAX},
        {"transactions": bytes(MERGED_BLOBS_MAX + 1)},
        {"coordinator": bytes(MERGED_BLOBS_MAX + 1)},
    ],
)
def test_what_is_not_alike_stays_apart(journal: Journal, later: dict[str, object]) -> None:
    journal.publish([appended(0, 10), appended(10, 5, **later)])
    join(journal)
    assert len(everything(journal)) == 2


def test_another_event_of_the_log_between_them_keeps_appends_apart(journal: Journal) -> None:
    between = appended(10, 0, kind=Kind.TRUNCATED, batches=0)
    journal.publish([appended(0, 10), between, appended(10, 5)])
    join(journal)
    assert [event.kind for _, event in everything(journal)] == [Kind.APPENDED, Kind.TRUNCATED, Kind.APPENDED]


def test_a_journal_that_nobody_reads_grows_with_what_is_written_and_not_with_time() -> None:
    with scratch() as directory:
        journal = opened(Path(directory))
        joining, seconds = Forgetting(journal), 0
        for look in range(900):
            journal.publish([appended(look * 100, 100, number=number) for number in range(3)])
            seconds += 5
            while joining.join(journal.now_ms() + seconds * 1000):
                pass
        assert len(everything(journal)) < LEAST + 3 * LOOKS
        assert sum(event.records for _, event in everything(journal)) == 900 * 300
        journal.close()


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


def test_what_is_joined_passes_later_and_never_beyond_the_budget_of_all_before(journal: Journal) -> None:
    journal.publish([appended(0, 100)])
    journal.publish([appended(0, 50, number=1)])
    journal.publish([appended(100, 10)])
    join(journal)
    assert [(seq, event.bytes) for seq, event in everything(journal)] == [(2, 50), (3, 110)]
    assert journal.reach(0, 155) == Point(2, 150)
    assert journal.reach(2, 10) == journal.end() == Point(3, 160)


def test_the_mark_of_a_seq(journal: Journal) -> None:
    journal.publish([appended(0, 10), appended(0, 20, number=1)])
    assert (journal.at(0), journal.at(1), journal.at(2), journal.at(9)) == (Point(0, 0), Point(1, 10), Point(2, 30), Point(9, 30))
    forget(journal, 1)
    assert (journal.at(1), journal.trimmed()) == (Point(1, 10), Point(1, 10))


def test_places_are_kept_with_the_events_they_lead_to(journal: Journal) -> None:
    journal.publish([appended(0, 10)], [cursor(0, 10), cursor(1, 0)])
    journal.publish([], [cursor(0, 20)])
    assert sorted(journal.cursors(), key=lambda one: one.log) == [cursor(0, 20), cursor(1, 0)]
    journal.publish([], [], [LOGS[1]])
    assert journal.cursors() == [cursor(0, 20)]


def test_a_process_that_comes_later_goes_on_where_this_one_was(journal: Journal, tmp_path: Path) -> None:
    journal.publish([appended(0, 10), appended(0, 20, number=1)], [cursor(0, 10)])
    journal.reach(0, 10)
    before, identity = everything(journal), journal.id
    journal.close()
    again = opened(tmp_path / "journal")
    assert (again.id, everything(again), again.end(), again.cursors()) == (identity, before, Point(2, 30), [cursor(0, 10)])
    again.publish([appended(10, 5)])
    assert again.reach(0, 30) == Point(2, 30)
    assert again.end() == Point(3, 35)


def test_a_new_file_is_another_journal(journal: Journal, tmp_path: Path) -> None:
    journal.close()
    shutil.rmtree(tmp_path / "journal")
    assert opened(tmp_path / "journal").id != journal.id


def test_waiting_for_something_to_be_published(journal: Journal) -> None:
    assert journal.wait(0) is False
    assert journal.wait(-1) is False


# --- forgetting


def test_what_is_forgotten_keeps_the_totals_right(journal: Journal) -> None:
    journal.publish([appended(0, 10), appended(0, 20, number=1), appended(0, 30, number=2)])
    forget(journal, 2)
    assert [(seq, event.bytes) for seq, event in everything(journal)] == [(3, 30)]
    assert (journal.trimmed(), journal.reach(2, 30), journal.reach(0, 30)) == (Point(2, 30), Point(3, 60), Point(3, 60))
    forget(journal, 3)
    assert (journal.end(), journal.reach(3, 10), journal.size()) == (Point(3, 60), Point(3, 60), 0)
    journal.publish([appended(30, 5, number=2)])
    assert everything(journal)[0][0] == 4


def test_nothing_is_merged_into_what_was_forgotten(journal: Journal) -> None:
    journal.publish([appended(0, 10)])
    forget(journal, 1)
    journal.publish([appended(10, 5)])
    join(journal)
    assert [(seq, event.bytes) for seq, event in everything(journal)] == [(2, 5)]


def test_what_a_reader_has_not_had_becomes_one_loss_for_each_log_in_its_place(journal: Journal) -> None:
    journal.publish([appended(0, 10, leads=0), appended(0, 20, number=1, leads=1)])
    journal.reach(0, None)
    journal.publish([appended(10, 5, leads=0), appended(20, 1, number=1, leads=0), appended(0, 7, number=2)])
    journal.reach(0, None)
    journal.publish([appended(15, 100)])
    assert merge(journal, 5) == 43
    first, second, third, kept = (event for _, event in everything(journal))
    assert {(event.kind, event.reason) for event in (first, second, third)} == {(Kind.SKIPPED, "journal_trimmed")}
    assert [(event.partition, event.base_offset, event.next_offset, event.bytes, event.leads) for event in (first, second, third)] == [
        (0, 0, 15, 15, 0),
        (1, 0, 21, 21, -1),
        (2, 0, 7, 7, 1),
    ]
    assert (kept.kind, kept.bytes, journal.end().total, journal.first_unchanged()) == (Kind.APPENDED, 100, 143, 5)
    assert journal.reach(0, None) == Point(6, 143)
    assert merge(journal, 5) == 0
    assert len(everything(journal)) == 4


def test_a_loss_keeps_what_is_no_loss_in_its_order(journal: Journal) -> None:
    """A truncation sets a reader back, and what leaves or appears does so for everybody."""
    truncated = appended(0, 0, kind=Kind.TRUNCATED, next_offset=5)
    gone = appended(0, 0, kind=Kind.GONE, number=1)
    journal.publish([appended(0, 10), appended(0, 3, number=1), Event(kind=Kind.CENSUS), truncated, appended(5, 20), gone])
    assert merge(journal, 6) == 33
    assert Kind.CENSUS in {event.kind for _, event in everything(journal)}
    found = [(event.partition, event.kind, event.next_offset, event.bytes) for _, event in everything(journal)]
    assert [one for one in found if one[0] == 0] == [(0, Kind.SKIPPED, 10, 10), (0, Kind.TRUNCATED, 5, 0), (0, Kind.SKIPPED, 25, 20)]
    assert [one for one in found if one[0] == 1] == [(1, Kind.SKIPPED, 3, 3), (1, Kind.GONE, 0, 0)]


def test_size_follows_what_is_held(journal: Journal, tmp_path: Path) -> None:
    journal.publish([appended(0, 10, detail=Random(1).randbytes(5000)), appended(0, 10, number=1)])
    held = journal.size()
    assert 5400 < held < 8000
    journal.publish([appended(10, 10, number=1)])
    grown = journal.size()
    join(journal)
    assert held < journal.size() < grown
    merge(journal, 1)
    forget(journal, 2)
    left = journal.size()
    assert 0 < left < 1500
    journal.close()
    assert opened(tmp_path / "journal").size() == left


# --- whatever happens


@dataclass
class Had:
    """What a reader has had."""

    seq: int
    events: list[tuple[int, Event]]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.lists(st.tuples(st.integers(0, 2), st.integers(1, 50)), min_size=1, max_size=6)),
        st.tuples(st.just("reach"), st.none() | st.integers(0, 120)),
        st.tuples(st.just("reopen"), st.none()),
        st.tuples(st.just("trim"), st.none()),
        st.tuples(st.just("join"), st.none()),
    ),
    max_size=25,
)


def summed(events: Sequence[Event]) -> dict[LogKey, tuple[int, ...]]:
    totals: dict[LogKey, Event] = {}
    for event in events:
        totals[event.log] = joined(totals[event.log], event) if event.log in totals else event
    names = ("base_offset", "next_offset", "bytes", "batches", "records", "max_timestamp", "codec_bytes")
    return {log: attrgetter(*names)(event) for log, event in totals.items()}


@settings(max_examples=100)
@given(steps)
def test_every_reader_gets_every_sum_once_in_order_within_its_budget(done: list[tuple[str, object]]) -> None:
    with scratch() as directory:
        follow(Path(directory), done)


def follow(directory: Path, done: list[tuple[str, object]]) -> None:
    journal = opened(directory)
    Consumers(journal, journal.now_ms).register("reader")
    ends, published, total, joined = [0, 0, 0], list[Event](), 0, False
    reported = Had(0, [])
    for name, value in done:
        if name == "publish":
            events = []
            for number, size in value:  # type: ignore[attr-defined]
                events.append(appended(ends[number], size, number=number))
                ends[number] += size
                total += size
            journal.publish(events)
            published += events
        elif name == "reach":
            mark = journal.reach(reported.seq, value)  # type: ignore[arg-type]
            Consumers(journal, journal.now_ms).send("reader", mark.seq)
            answer = events_of(journal, reported.seq, mark.seq)
            size = sum(event.bytes for _, event in answer)
            if value is not None and len(answer) > 1 and not joined:
                assert size <= value  # type: ignore[operator]
            assert answer or journal.end().seq == reported.seq
            reported = Had(mark.seq, reported.events + answer)
            had = sum(event.bytes for _, event in reported.events)
            assert had <= mark.total
            assert joined or had == mark.total
        elif name == "trim":
            forget(journal, reported.seq)
        elif name == "join":
            join(journal)
            joined = True
        else:
            journal.close()
            journal = opened(directory)
        assert journal.end().total == total
    rest = events_of(journal, reported.seq, journal.end().seq)
    assert events_of(journal, reported.seq, journal.end().seq) == rest
    seen = reported.events + rest
    assert [seq for seq, _ in seen] == sorted({seq for seq, _ in seen})
    assert summed([event for _, event in seen]) == summed(published)
    for log in LOGS:
        positions = [(event.start_position, event.end_position) for _, event in seen if event.log == log]
        assert all(before[1] == after[0] for before, after in itertools.pairwise(positions))
    journal.close()


# --- the file


def test_a_journal_has_one_holder(journal: Journal, tmp_path: Path) -> None:
    with pytest.raises(JournalBusyError, match="held by another agent"):
        opened(tmp_path / "journal")
    journal.close()
    opened(tmp_path / "journal").close()


def test_a_journal_of_another_cluster_is_refused_and_not_held(journal: Journal, tmp_path: Path) -> None:
    journal.close()
    with pytest.raises(JournalError, match=f"belongs to cluster {CLUSTER_ID}.* other"):
        Journal(tmp_path / "journal", "other", Clock())
    opened(tmp_path / "journal").close()


def test_a_journal_of_a_cluster_that_was_not_known_is_of_the_first_that_is(tmp_path: Path) -> None:
    for cluster in ("", CLUSTER_ID, ""):
        Journal(tmp_path / "journal", cluster, Clock()).close()
    with pytest.raises(JournalError, match=f"belongs to cluster {CLUSTER_ID}"):
        Journal(tmp_path / "journal", "other", Clock())


@pytest.mark.parametrize("version", [1, VERSION - 1, VERSION + 1])
def test_a_journal_of_another_version_is_refused_and_says_what_to_do(journal: Journal, tmp_path: Path, version: int) -> None:
    with journal.database.transaction() as run:
        run.execute(f"PRAGMA user_version={version}")
    journal.close()
    path = tmp_path / "journal" / "journal.db"
    before = path.read_bytes()
    says = f"{path} is of version {version}, this segtail reads {VERSION}: use the segtail that wrote it, or delete it to start a new one$"
    with pytest.raises(JournalError, match=says):
        opened(tmp_path / "journal")
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"SQLite format 3\x00" + bytes(4000)])
def test_a_damaged_journal_says_what_to_do(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / "journal.db").write_bytes(content)
    with pytest.raises(JournalError, match=r"is damaged.*delete"):
        opened(tmp_path / "journal")
    (tmp_path / "journal" / "journal.db").unlink()
    opened(tmp_path / "journal").close()


def test_an_empty_file_is_a_new_journal(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / "journal.db").touch()
    assert opened(tmp_path / "journal").end() == Point(0, 0)


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JournalError, match=r"file/journal cannot be written"):
        opened(tmp_path / "file" / "journal")


def test_what_could_not_be_written_is_not_remembered_as_if_it_had_been(journal: Journal) -> None:
    journal.publish([appended(0, 10)])
    with journal.database.reading() as run:
        (pages,) = run.execute("PRAGMA page_count").fetchone()
        run.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(JournalError, match="is its disk full"):
        journal.publish([appended(10, 5, detail=bytes(1 << 20)), appended(15, 5)])
    with journal.database.reading() as run:
        run.execute("PRAGMA max_page_count=1000000")
    assert (journal.end().total, journal.size()) == (10, journal.size())
    journal.publish([appended(10, 5)])
    assert [(event.bytes, event.next_offset) for _, event in everything(journal)] == [(10, 10), (5, 15)]
    assert journal.end().total == 15


def test_of_what_a_slow_reader_did_not_get_the_last_list_of_segments_is_kept(journal: Journal) -> None:
    """Nobody publishes them again."""

    def found(number: int, leader: int, blob: bytes | None) -> Event:
        return Event(kind=Kind.FOUND, broker=1, topic="t", partition=number, topic_id="id", leader=leader, segments=blob)

    for leader, blob in ((1, b"first"), (2, b"second"), (3, None)):
        journal.publish([found(0, leader, blob), appended(leader * 10, 10)])
    journal.publish([found(1, 7, b"other")])
    merge(journal, journal.end().seq)
    kept = {event.partition: (event.leader, event.segments) for _, event in everything(journal) if event.kind is Kind.FOUND}
    assert kept == {0: (3, b"second"), 1: (7, b"other")}
    assert [event.kind for _, event in everything(journal)].count(Kind.FOUND) == 2


def test_ladders_of_closed_segments_are_there_for_a_later_process_until_their_segments_are_gone(journal: Journal, tmp_path: Path) -> None:
    first, second = (SegmentKey(base, 1 << 30, 5, 1, 40 + base) for base in (0, 7))
    journal.keep_ladders({first: b"a", second: b"b"})
    journal.keep_ladders({second: b"c"})
    journal.close()
    again = opened(tmp_path / "journal")
    assert again.laddered() == {first, second}
    assert again.ladders([second, first._replace(size=3)]) == {second: b"c"}
    again.keep_ladders({}, [second])
    assert (again.laddered(), again.ladders([first, second])) == ({first}, {first: b"a"})
    again.close()


def test_a_loss_follows_what_the_first_event_in_it_followed(journal: Journal) -> None:
    journal.publish([appended(0, 10, follows=3)])
    journal.reach(0, None)
    journal.publish([appended(10, 5, follows=10)])
    assert merge(journal, 2) == 15
    ((_, event),) = everything(journal)
    assert (event.kind, event.follows, event.bytes) == (Kind.SKIPPED, 3, 15)


def test_what_is_as_old_as_the_bound_is_kept(journal: Journal) -> None:
    journal.publish([appended(0, 10)])
    with journal.database.reading() as run:
        ((_, _, published_ms),) = entries(run, 0, 1, 9)
    assert Forgetting(journal).merge(1, TrimLimits(before_ms=published_ms, max_bytes=journal.size())) == (0, False)
    assert Forgetting(journal).merge(1, TrimLimits(before_ms=published_ms + 1, max_bytes=journal.size())) == (10, False)
