"""Who reads a journal, and what may be forgotten."""

from pathlib import Path
from random import Random

import pytest

from streaming.broker.journal import forgetting
from streaming.broker.journal.consumer_states import Registration
from streaming.broker.journal.consumers import MOST_CONSUMERS, Consumers, JournalBounds
from streaming.broker.journal.journal import Journal
from streaming.common.rows import Kind
from tests.builders import CLUSTER_ID
from tests.clocks import Clock
from tests.journal.appends import appended
from tests.watcher.journalled import events_of

HOUR = 3_600_000
BOUNDS = JournalBounds(max_bytes=1 << 30, max_age_ms=7 * 24 * HOUR, consumer_expiry_ms=24 * HOUR)

OLD = JournalBounds(max_bytes=1 << 30, max_age_ms=-1, consumer_expiry_ms=24 * HOUR)
"""By which everything is too old."""


class Desk:
    """A journal of five appends of 10 bytes, and its consumers."""

    def __init__(self, directory: Path) -> None:
        self.clock = Clock()
        self.journal = Journal(directory, CLUSTER_ID, self.clock)
        self.consumers = Consumers(self.journal, self.journal.now_ms)

    def publish(self, count: int) -> None:
        for _ in range(count):
            end = self.journal.end()
            self.journal.publish([appended(end.total, 10)])
            self.journal.reach(0, None)

    def trim(self, bounds: JournalBounds) -> None:
        while self.consumers.trim(bounds):
            pass

    def sent(self, consumer: str, upto: int) -> None:
        """It was sent everything up to there, has it, and commits it."""
        self.consumers.send(consumer, upto)
        self.consumers.note_committed(consumer, upto)

    @property
    def held(self) -> list[int]:
        return [seq for seq, _ in events_of(self.journal, 0, self.journal.end().seq)]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "journal")


def test_a_consumer_is_known_once_it_was_enrolled(desk: Desk) -> None:
    assert not desk.consumers.any()
    assert not desk.consumers.note_seen("a")
    assert not desk.consumers.any()
    desk.consumers.register("a")
    assert desk.consumers.note_seen("a")
    assert desk.consumers.any()
    assert desk.consumers.committed("b") is None


def test_a_new_consumer_begins_behind_everything_and_nothing_is_merged_across(desk: Desk) -> None:
    desk.journal.publish([appended(0, 10)])
    desk.consumers.register("a")
    desk.journal.publish([appended(10, 10)])
    assert desk.consumers.committed("a") == 1
    assert [event.bytes for _, event in events_of(desk.journal, 1, 9)] == [10]


def test_enrolling_again_changes_nothing(desk: Desk) -> None:
    desk.consumers.register("a")
    desk.publish(3)
    desk.consumers.note_committed("a", 2)
    desk.consumers.register("a")
    assert desk.consumers.committed("a") == 2


def test_a_commit_never_goes_back(desk: Desk) -> None:
    desk.consumers.register("a")
    desk.publish(5)
    desk.consumers.note_committed("a", 3)
    desk.consumers.note_committed("a", 1)
    assert desk.consumers.committed("a") == 3


def test_the_journal_is_trimmed_behind_its_slowest_consumer(desk: Desk) -> None:
    for name in "ab":
        desk.consumers.register(name)
    desk.publish(5)
    for name, seq in (("a", 5), ("b", 2)):
        desk.consumers.note_committed(name, seq)
    desk.trim(BOUNDS)
    assert desk.held == [3, 4, 5]


def test_a_consumer_that_is_silent_for_too_long_holds_nothing(desk: Desk) -> None:
    for name in "ab":
        desk.consumers.register(name)
    desk.publish(5)
    desk.clock.now += BOUNDS.consumer_expiry_ms
    desk.consumers.note_committed("a", 4)
    desk.trim(BOUNDS)
    assert desk.held == [5]
    desk.consumers.note_seen("b")
    desk.publish(1)
    desk.consumers.note_committed("a", 6)
    desk.trim(BOUNDS)
    assert desk.held == [5, 6]


def test_without_any_consumer_only_the_bounds_hold(desk: Desk) -> None:
    desk.publish(5)
    desk.trim(BOUNDS)
    assert desk.held == [1, 2, 3, 4, 5]
    desk.clock.now += BOUNDS.max_age_ms + 1
    desk.publish(1)
    desk.trim(BOUNDS)
    assert desk.held == [6]
    desk.clock.now += BOUNDS.max_age_ms + 1
    desk.trim(BOUNDS)
    assert desk.held == []


def test_what_is_too_old_is_lost_to_a_consumer_that_still_waits_and_that_is_reported(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    desk.consumers.register("a")
    desk.publish(3)
    desk.clock.now += BOUNDS.max_age_ms + 1
    desk.consumers.note_seen("a")
    desk.publish(2)
    desk.trim(BOUNDS)
    (seq, lost), *rest = events_of(desk.journal, 0, 9)
    assert (seq, lost.kind, lost.reason, lost.bytes, lost.next_offset) == (3, Kind.SKIPPED, "journal_trimmed", 30, 30)
    assert [event.kind for _, event in rest] == [Kind.APPENDED] * 2
    assert [record.lost_bytes for record in caplog.records if record.levelname == "WARNING"] == [30]  # type: ignore[attr-defined]
    caplog.clear()
    desk.trim(BOUNDS)
    assert caplog.records == []


def test_what_is_too_much_is_lost_from_its_beginning(desk: Desk) -> None:
    desk.consumers.register("a")
    desk.publish(100)
    bounds = JournalBounds(max_bytes=desk.journal.size() // 2, max_age_ms=BOUNDS.max_age_ms, consumer_expiry_ms=BOUNDS.consumer_expiry_ms)
    desk.trim(bounds)
    lost = sum(event.bytes for _, event in events_of(desk.journal, 0, 100) if event.kind is Kind.SKIPPED)
    assert 490 <= lost <= 520
    assert desk.journal.size() <= bounds.max_bytes + 1000
    assert sum(event.bytes for _, event in events_of(desk.journal, 0, 100)) == 1000


def test_a_consumer_that_is_restored_from_a_copy_begins_anew_if_something_of_it_is_forgotten(desk: Desk) -> None:
    desk.consumers.register("a")
    first = desk.consumers.journal("a")
    desk.publish(3)
    desk.sent("a", 3)
    desk.publish(2)
    desk.trim(BOUNDS)
    assert desk.held == [4, 5]
    assert not desk.consumers.set_back("a", 0)
    assert desk.consumers.committed("a") is None
    desk.consumers.register("a")
    assert desk.consumers.journal("a") != first


def test_a_consumer_that_is_restored_from_a_copy_goes_on_if_everything_is_still_there(desk: Desk) -> None:
    desk.consumers.register("a")
    first = desk.consumers.journal("a")
    desk.publish(3)
    desk.sent("a", 3)
    desk.publish(2)
    desk.trim(BOUNDS)
    desk.sent("a", 5)
    assert desk.consumers.set_back("a", 3)
    desk.trim(BOUNDS)
    assert desk.held == [4, 5]
    assert (desk.consumers.send("a", 5), desk.consumers.missed("a"), desk.consumers.journal("a")) == ([], 0, first)


# --- whose they are, and how many


def test_a_consumer_belongs_to_the_principal_that_registered_it(desk: Desk) -> None:
    desk.journal.publish([], registers=Registration("a", "payments"))
    assert desk.consumers.belongs_to("a", "payments")
    assert not desk.consumers.belongs_to("a", "")
    assert not desk.consumers.belongs_to("a", "orders")
    assert desk.consumers.belongs_to("unknown", "orders")


def test_a_consumer_without_a_principal_belongs_to_the_first_that_has_a_name(desk: Desk) -> None:
    desk.consumers.register("a")
    assert [desk.consumers.belongs_to("a", principal) for principal in ("", "orders", "", "payments", "orders")] == [
        *(True, True),
        *(False, False),
        True,
    ]


def test_when_there_is_no_room_the_idle_one_that_was_silent_longest_goes(desk: Desk) -> None:
    for number in range(MOST_CONSUMERS):
        desk.clock.now += 1
        desk.consumers.register(f"c{number}")
    desk.publish(3)
    for number in range(1, MOST_CONSUMERS):
        desk.sent(f"c{number}", 3)
    assert desk.consumers.make_room("another", 1000)
    assert desk.consumers.committed("c0") is not None
    assert desk.consumers.make_room("", 1000)
    assert desk.consumers.committed("c0") is None  # it has committed nothing
    desk.consumers.register("new")
    desk.publish(1)
    desk.sent("new", 4)
    assert not desk.consumers.make_room("", 1000)
    desk.clock.now += 1000
    desk.consumers.note_seen("c1")
    assert desk.consumers.make_room("", 1000)
    assert desk.consumers.committed("c1") is not None
    left = [desk.consumers.committed(f"c{number}") for number in range(2, MOST_CONSUMERS)]
    assert left.count(None) == 1  # it was silent for too long


def test_holes_that_merging_left_are_no_loss(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    desk.consumers.register("a")
    for look in range(5):
        desk.journal.publish([appended(look * 10, 10)])
    desk.journal.reach(0, None)
    desk.trim(BOUNDS)
    assert caplog.text == ""


# --- a slice at a time


def test_whoever_wants_to_plan_waits_for_a_slice(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forgetting, "SLICE", 10)
    desk.publish(35)
    desk.clock.now += BOUNDS.max_age_ms + 1
    held = []
    while desk.consumers.trim(BOUNDS) and desk.held:
        held.append(len(desk.held))
    assert (held, desk.held) == ([25, 15, 5], [])


def test_what_is_lost_to_a_slow_consumer_is_merged_over_slices_but_not_where_somebody_may_be(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgetting, "SLICE", 10)
    for name in "ab":
        desk.consumers.register(name)
    desk.publish(35)
    desk.sent("b", 12)
    desk.consumers.send("b", 23)
    assert desk.consumers.trim(OLD)
    desk.publish(2)
    desk.trim(OLD)
    assert [(seq, event.bytes, event.base_offset, event.next_offset) for seq, event in events_of(desk.journal, 0, 99)] == [
        (12, 120, 0, 120),
        (23, 110, 120, 230),
        (37, 140, 230, 370),
    ]


def test_what_is_lost_to_a_slow_consumer_is_not_merged_over_the_end_of_what_was_published_again(desk: Desk) -> None:
    desk.consumers.register("a")
    for begin in (0, 10, 20):
        desk.journal.publish([appended(begin, 10, detail=b"again")])
    for begin in (30, 40):
        desk.journal.publish([appended(begin, 10)])
    desk.journal.reach(0, None)
    for _ in range(2):
        desk.trim(OLD)
        assert [(seq, event.bytes, event.base_offset, event.next_offset) for seq, event in events_of(desk.journal, 0, 99)] == [
            (3, 30, 0, 30),
            (5, 20, 30, 50),
        ]
        desk.consumers = Consumers(desk.journal, desk.journal.now_ms)  # the process starts again


def test_the_write_ahead_log_shrinks_again(desk: Desk, tmp_path: Path) -> None:
    wal, random = tmp_path / "journal" / "journal.db-wal", Random(1)
    desk.journal.publish([appended(number, 1, detail=random.randbytes(30_000)) for number in range(1000)])
    large = wal.stat().st_size
    for number in range(3):
        desk.journal.publish([appended(number, 1, detail=random.randbytes(9_000_000))])
    assert large > 30_000_000
    assert wal.stat().st_size <= 20_000_000


# --- time


def test_a_clock_that_was_ahead_for_a_while_makes_nothing_old_and_keeps_nothing_for_ever(tmp_path: Path) -> None:
    clock = Clock()
    journal = Journal(tmp_path / "journal", CLUSTER_ID, clock)
    consumers = Consumers(journal, journal.now_ms)
    consumers.register("a")
    journal.publish([appended(0, 10)])
    journal.close()
    clock.now += 400 * 24 * HOUR  # while no agent ran
    journal = Journal(tmp_path / "journal", CLUSTER_ID, clock)
    consumers = Consumers(journal, journal.now_ms)
    assert not consumers.trim(BOUNDS)
    assert [seq for seq, _ in events_of(journal, 0, 9)] == [1]
    journal.publish([appended(10, 10)])
    journal.close()
    clock.now -= 800 * 24 * HOUR
    journal = Journal(tmp_path / "journal", CLUSTER_ID, clock)
    consumers = Consumers(journal, journal.now_ms)
    clock.now += BOUNDS.consumer_expiry_ms + 1
    assert not consumers.trim(BOUNDS)
    clock.now += BOUNDS.max_age_ms
    consumers.trim(BOUNDS)
    assert events_of(journal, 0, 9) == []
    journal.close()
