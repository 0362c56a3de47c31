"""Which commits move an offset, by whom, and which of them somebody should know; and how a replay finds them."""

from typing import Any, Self

from hypothesis import given
from hypothesis import strategies as st

from streaming.common.log_key import LogKey
from streaming.kafka.formats.consumer_offsets import GroupKey, OffsetCommit
from streaming.kafka.formats.group_metadata import GroupMember, GroupMetadata
from streaming.kafka.groups import moved_offsets
from streaming.kafka.groups.commit_log import CommitLog
from streaming.kafka.groups.followed_groups import GroupLimit
from streaming.kafka.groups.group_rows import group_facts
from streaming.kafka.groups.offset_moves import (
    MOST_BY_HAND,
    GroupPresence,
    MoveKind,
    OffsetMove,
    counts,
    is_notable,
    kind_of,
    not_taken_back,
)
from streaming.kafka.scan.group_records import Commit, EndMarker, GroupRecord, GroupRecords
from tests.tables import each_row

NEVER, LEFT, THERE = GroupPresence
ADMIN, RESET, CONSUMER, EXTERNAL = MoveKind
HOUR_MS = 3_600_000

Record = Commit | EndMarker | GroupRecord


def move(before: int, offset: int, presence: GroupPresence = LEFT, *, commits: int = 1, step: int = 0) -> OffsetMove:
    return OffsetMove(
        topic="t",
        topic_id="",
        partition=0,
        before=before,
        offset=offset,
        before_ms=1,
        at_ms=2,
        record_offset=3,
        effective_offset=3,
        presence=presence,
        commits=commits,
        step=step,
    )


@each_row(
    "moved, from_beyond, kind, counted, notable",
    [
        # in a group that had members and is empty: by hand, unless a program goes on with it
        (move(10, 90), False, ADMIN, True, True),
        (move(90, 10), False, ADMIN, True, True),
        (move(90, 10), True, ADMIN, True, True),
        (move(10, 90, commits=MOST_BY_HAND), False, ADMIN, True, True),
        (move(10, 90, commits=MOST_BY_HAND + 1), False, EXTERNAL, False, False),
        (move(90, 10, commits=MOST_BY_HAND + 1), False, EXTERNAL, True, False),
        # in a group without any record of its own
        (move(90, 10, NEVER), False, EXTERNAL, True, False),
        (move(90, 10, NEVER), True, EXTERNAL, True, False),
        (move(10, 90, NEVER), False, EXTERNAL, False, False),
        # with members
        (move(90, 10, THERE), True, RESET, True, True),
        (move(10, 90, THERE), True, CONSUMER, False, False),
        (move(10, 90, THERE), False, CONSUMER, False, False),
        (move(90, 10, THERE), False, CONSUMER, True, False),
        (move(90, 10, THERE, step=8), False, CONSUMER, True, False),
        (move(90, 10, THERE, step=7), False, CONSUMER, True, True),
    ],
)
def test_by_whom_an_offset_was_moved(moved: OffsetMove, from_beyond: bool, kind: MoveKind, counted: bool, notable: bool) -> None:
    found = kind_of(moved, from_beyond=from_beyond)
    assert (found, counts(moved, found), is_notable(moved, found)) == (kind, counted, notable)


@each_row(
    "moves, left",
    [
        ([(10, 90)], [(10, 90)]),
        ([(10, 90), (90, 10)], []),  # set back to where it was
        ([(10, 90), (90, 5)], [(90, 5)]),  # and further
        ([(10, 90), (90, 40)], [(10, 90), (90, 40)]),  # a part of it
        ([(10, 50), (50, 90), (90, 10)], []),
        ([(90, 10), (10, 90)], []),  # a step back that was taken back
        ([(90, 10), (10, 40)], [(90, 10)]),  # a part of it: all up to 90 was read before
        ([(90, 10), (20, 40), (45, 90)], []),
        ([(90, 10), (20, 91)], [(90, 10), (20, 91)]),
        ([(10, 90), (90, 5), (5, 90)], [(90, 5), (5, 90)]),  # what was skipped before is skipped now
        ([(10, 90), (90, 40), (40, 60)], [(10, 90), (90, 40), (40, 60)]),
        ([(10, 90), (200, 150)], [(10, 90), (200, 150)]),
    ],
)
def test_what_was_taken_back(moves: list[tuple[int, int]], left: list[tuple[int, int]]) -> None:
    assert [(each.before, each.offset) for each in not_taken_back(move(*each) for each in moves)] == left


def test_who_was_set_back_by_its_own_reset_policy_had_not_read_up_to_there() -> None:
    moves = [move(90, 10, THERE), move(10, 40)]
    assert not_taken_back(moves) == moves


class Log:
    """A replay, record after record; each commit is a second after the one before."""

    def __init__(self) -> None:
        self.replay = CommitLog(LogKey(1, "__consumer_offsets", 3, "id"), "e1", GroupLimit(100))
        self.offset = -1
        self.at_ms = 0

    def add(self, make: Any) -> Self:
        self.offset += 1
        self.at_ms += 1000
        self.replay.replay(GroupRecords((make(self.offset),), 0), self.offset + 1)
        return self

    def commit(self, offset: int | None, *, producer: int = -1, partition: int = 0, topic_id: str | None = None) -> Self:
        value = None if offset is None else OffsetCommit(offset=offset, metadata="", commit_timestamp=self.at_ms, topic_id=topic_id)
        return self.add(lambda at: Commit(at, producer, "g", "t", partition, value))

    def marker(self, *, producer: int, committed: bool) -> Self:
        return self.add(lambda at: EndMarker(at, producer, committed))

    def generation(self, number: int, *, members: int) -> Self:
        member = GroupMember(member_id="m", client_id="c", client_host="/h", session_timeout_ms=1, subscription=b"", assignment=b"")
        value = GroupMetadata(
            protocol_type="consumer",
            generation=number,
            protocol="range",
            leader=None,
            current_state_timestamp=self.at_ms,
            members=(member,) * members,
        )
        return self.add(lambda at: GroupRecord(at, GroupKey("g"), value, self.at_ms))

    @property
    def facts(self) -> tuple[OffsetMove, ...]:
        (group,) = group_facts(self.replay.changes(0).groups)
        assert group.moves is not None
        return group.moves

    @property
    def moves(self) -> list[tuple[int, int, MoveKind]]:
        return [(each.before, each.offset, kind_of(each, from_beyond=False)) for each in self.facts]


def worked() -> Log:
    """A group that has read 100 of two partitions, and is empty."""
    return Log().generation(1, members=1).commit(60).commit(100).commit(100, partition=1).generation(2, members=0)


def test_reading_is_no_move() -> None:
    assert Log().generation(1, members=1).commit(0).commit(60).commit(60).commit(9_000_000).moves == []
    assert Log().commit(0).commit(60).commit(9_000_000).moves == []  # of a group without members


def test_moves_by_hand_have_their_places_and_times() -> None:
    log = worked().commit(700).commit(3, partition=1)
    assert log.moves == [(100, 700, ADMIN), (100, 3, ADMIN)]
    first, second = log.facts
    assert (first.partition, first.before_ms, first.at_ms, first.record_offset, first.effective_offset) == (0, 2000, 5000, 5, 5)
    assert (second.partition, second.record_offset) == (1, 6)


def test_who_goes_on_with_it_is_a_program() -> None:
    log = worked().commit(110).commit(120).commit(130)
    assert {kind for *_, kind in log.moves} == {ADMIN}
    version = log.replay.version
    log.commit(140).commit(150).commit(20)
    assert log.moves == [(100, 110, EXTERNAL), (110, 120, EXTERNAL), (120, 130, EXTERNAL), (150, 20, EXTERNAL)]
    (changed,) = group_facts(log.replay.changes(version).groups)
    assert changed.moves == log.facts, "the job is told that the first ones were made by a program"


def test_members_begin_to_count_anew() -> None:
    log = worked().commit(110).commit(120).commit(130).generation(3, members=1).commit(140).generation(4, members=0).commit(50)
    assert log.moves[-1] == (140, 50, ADMIN)


def test_a_member_goes_back() -> None:
    log = Log().generation(1, members=1).commit(0).commit(5).commit(10).commit(8).commit(9)
    assert [(each.before, each.offset, each.step) for each in log.facts] == [(10, 8, 5)]
    assert not is_notable(log.facts[0], CONSUMER)
    log.commit(200).commit(150)
    assert is_notable(log.facts[-1], CONSUMER) is (10 * log.facts[-1].step < 50)


def test_steps_fade() -> None:
    log = Log().generation(1, members=1).commit(0).commit(1000)
    for offset in range(1001, 1061):
        log.commit(offset)
    log.commit(900)
    assert is_notable(log.facts[-1], CONSUMER)
    assert log.facts[-1].step < 16


def test_transactions_count_from_their_markers_on() -> None:
    log = Log().generation(1, members=1).commit(100, producer=7).marker(producer=7, committed=True)
    log.commit(40, producer=7)
    assert log.moves == []
    log.marker(producer=7, committed=False)
    assert log.moves == []
    log.commit(30, producer=7).marker(producer=7, committed=True)
    assert log.moves == [(100, 30, CONSUMER)]
    assert (log.facts[0].record_offset, log.facts[0].effective_offset) == (log.offset - 1, log.offset)
    log.generation(2, members=0).commit(900, producer=7).marker(producer=7, committed=True)
    assert len(log.moves) == 1, "no admin client commits in a transaction"


def test_what_ends_a_history() -> None:
    assert worked().commit(700).commit(None).commit(3).moves == []  # deleted, or expired
    assert worked().commit(700).commit(None).commit(3).commit(9).moves == [(3, 9, ADMIN)]
    anew = worked().commit(700, topic_id="a").commit(3, topic_id="b")
    assert anew.moves == []
    assert anew.commit(9, topic_id="b").moves == [(3, 9, ADMIN)]
    gone = worked().commit(700).add(lambda at: GroupRecord(at, GroupKey("g"), None)).commit(3)
    assert gone.moves[-1][1:] == (3, EXTERNAL)  # made anew by nobody


def test_a_replay_from_the_first_byte_finds_the_same() -> None:
    records = worked().commit(700).commit(3, partition=1).commit(700, producer=7).marker(producer=7, committed=True).commit(1)
    again = worked().commit(700).commit(3, partition=1).commit(700, producer=7).marker(producer=7, committed=True).commit(1)
    assert records.facts == again.facts
    assert len(records.facts) == 3


def test_moves_survive_that_deleted_rows_are_forgotten(monkeypatch: Any) -> None:
    monkeypatch.setattr("streaming.kafka.groups.commit_log.FORGET_AT_LEAST", 0)
    log = worked().commit(700)
    for partition in range(2, 8):
        log.commit(5, partition=partition).commit(None, partition=partition)
    assert log.commit(10).moves == [(100, 700, ADMIN), (700, 10, ADMIN)]
    assert log.facts[0].commits == 2


def test_there_is_a_bound(monkeypatch: Any) -> None:
    monkeypatch.setattr(moved_offsets, "MOST_OF_GROUP", 3)
    log = worked().commit(700).generation(3, members=1)
    for _ in range(4):
        log.commit(500).commit(600)
    kept = [(before, offset) for before, offset, _ in log.moves]
    assert kept == [(100, 700), (600, 500), (600, 500)], "what somebody should know stays"


def test_moves_of_days_ago_go() -> None:
    log = worked().commit(700)
    log.at_ms += 26 * HOUR_MS
    assert log.commit(10).moves == [(700, 10, ADMIN)]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), st.integers(0, 2), st.integers(0, 9)),
        st.tuples(st.just("delete"), st.integers(0, 2), st.just(0)),
        st.tuples(st.just("generation"), st.integers(0, 1), st.just(0)),
    ),
    max_size=30,
)
"""Commits and tombstones of three partitions, and generations with and without members."""


def _key(record: Record) -> object:
    return (record.group, record.partition) if isinstance(record, Commit) else "group"


def _records(steps: list[tuple[str, int, int]]) -> list[Record]:
    log, found = Log(), list[Record]()
    log.replay.replay = lambda records, _: found.extend(records.records)  # type: ignore[assignment,method-assign]
    for number, (what, one, other) in enumerate(steps):
        if what == "generation":
            log.generation(number + 1, members=one)
        else:
            log.commit(other if what == "commit" else None, partition=one)
    return found


def _moves(records: list[Record], pieces: int) -> set[tuple[int, int, int, int]]:
    """Of a log that is replayed so many records at a time: record, from, to, who was there."""
    log = CommitLog(LogKey(1, "__consumer_offsets", 3, "id"), "e1", GroupLimit(100))
    for begin in range(0, len(records), pieces):
        some = records[begin : begin + pieces]
        log.replay(GroupRecords(tuple(some), 0), some[-1].record_offset + 1)
    groups = group_facts(log.changes(0).groups)
    return {(each.record_offset, each.before, each.offset, each.presence) for group in groups for each in group.moves or ()}


@given(STEPS, st.integers(0, 30), st.integers(1, 5))
def test_what_compaction_leaves_shows_nothing_that_was_not_so(steps: list[tuple[str, int, int]], cleaned: int, pieces: int) -> None:
    """Of what is cleaned, the last record of each key stays: whatever two commits are there have followed each other."""
    records = _records(steps)
    whole = _moves(records, len(records) + 1)
    assert _moves(records, pieces) == whole, "in whatever pieces it is read"
    last = {_key(record): record for record in records[:cleaned]}
    left = [record for record in records if record.record_offset >= cleaned or last[_key(record)] is record]
    compacted = _moves(left, pieces)
    assert {move for move in whole if move[0] >= cleaned} <= compacted, "what is not cleaned is compared with what was left"
    assert {move for move in compacted if move[2] < move[1]} <= whole
    assert {(move[0], move[1], move[2]) for move in compacted} <= _pairs(records), "a program may look like a hand, but both commits were"


def _pairs(records: list[Record]) -> set[tuple[int, int, int]]:
    """Each commit with the one before of its partition: its record, from, to."""
    offsets, found = dict[int, int](), set[tuple[int, int, int]]()
    for record in records:
        if isinstance(record, Commit) and isinstance(record.value, OffsetCommit):
            if record.partition in offsets:
                found.add((record.record_offset, offsets[record.partition], record.value.offset))
            offsets[record.partition] = record.value.offset
        elif isinstance(record, Commit):
            offsets.pop(record.partition, None)
    return found
