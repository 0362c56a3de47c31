"""Which commits move an offset, by whom, and which of them somebody should know; how a replay finds them, and the history of a group."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.broker.protocol.group_json import RebalancedMember
from streaming.kafka.groups import offset_moves
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
from streaming.kafka.scan.group_records import Commit, GroupRecords
from streaming.terminal.offline import group_history
from streaming.terminal.offline.group_history import GroupEvents
from tests.groups.coordinator import LOG, Log, Record, filled, record
from tests.tables import each_row

NEVER, LEFT, THERE = GroupPresence
ADMIN, RESET, CONSUMER, EXTERNAL = MoveKind


def move(before: int, offset: int, presence: GroupPresence = LEFT, *, commits: int = 1, step: int = 0) -> OffsetMove:
    return filled(OffsetMove, before=before, offset=offset, presence=presence, commits=commits, step=step)


@each_row(
    "moved, from_beyond, kind, counted, notable",
    [
        # in a group that had members and is empty: by hand, unless a program goes on with it
        (move(10, 90), False, ADMIN, True, True),
        (move(90, 10), True, ADMIN, True, True),
        (move(10, 90, commits=MOST_BY_HAND), False, ADMIN, True, True),
        (move(10, 90, commits=MOST_BY_HAND + 1), False, EXTERNAL, False, False),
        (move(90, 10, commits=MOST_BY_HAND + 1), False, EXTERNAL, True, False),
        # in a group without any record of its own
        (move(90, 10, NEVER), True, EXTERNAL, True, False),
        (move(10, 90, NEVER), False, EXTERNAL, False, False),
        # with members
        (move(90, 10, THERE), True, RESET, True, True),
        (move(10, 90, THERE), True, CONSUMER, False, False),
        (move(90, 10, THERE), False, CONSUMER, True, False),
        (move(90, 10, THERE, step=8), False, CONSUMER, True, False),
        (move(90, 10, THERE, step=7), False, CONSUMER, True, True),
        (move(10, 90, THERE, step=1), False, CONSUMER, False, False),
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
        ([(90, 10, THERE), (10, 40)], [(90, 10), (10, 40)]),  # its own reset policy: it had not read up to there
    ],
)
def test_what_was_taken_back(moves: list[Any], left: list[tuple[int, int]]) -> None:
    assert [(each.before, each.offset) for each in not_taken_back(move(*each) for each in moves)] == left


WORKED = "G1(a) 60 100 100/1 G2() "
"""A group that has read 100 of two partitions, and is empty."""


def moves(log: Log) -> list[str]:
    return [f"{each.before}-{each.offset} {kind_of(each, from_beyond=False)}" for each in log.facts.moves or ()]


@each_row(
    ("why", "script", "expected"),
    [
        ("reading is no move", "G1(a) 0 60 60 9000000", []),
        ("nor in a group without members", "0 60 9000000", []),
        ("by hand", WORKED + "700 3/1", ["100-700 admin", "100-3 admin"]),
        ("three times by hand", WORKED + "110 120 130", ["100-110 admin", "110-120 admin", "120-130 admin"]),
        ("a program", WORKED + "110 120 130 140 150 20", ["100-110 external", "110-120 external", "120-130 external", "150-20 external"]),
        (
            "members begin to count anew",
            WORKED + "110 120 130 G3(a) 140 G4() 50",
            [*(f"{at}-{at + 10} admin" for at in (100, 110, 120)), "140-50 admin"],
        ),
        ("a member goes back", "G1(a) 0 5 10 8 9", ["10-8 consumer"]),
        ("a transaction counts at its marker", "G1(a) 100^7 +7 40^7", []),
        ("or never", "G1(a) 100^7 +7 40^7 -7", []),
        ("and by its member", "G1(a) 100^7 +7 30^7 +7", ["100-30 consumer"]),
        ("no admin client commits in a transaction", "G1(a) 100^7 +7 30^7 +7 G2() 900^7 +7", ["100-30 consumer"]),
        ("deleted, or expired", WORKED + "700 ~ 3", []),
        ("and moved again", WORKED + "700 ~ 3 9", ["3-9 admin"]),
        ("a topic that was made anew", WORKED + "700=a 3=b", []),
        ("and moved again there", WORKED + "700=a 3=b 9=b", ["3-9 admin"]),
        ("the id of a topic becomes known", WORKED + "700 3=b", ["100-700 admin", "700-3 admin"]),
        ("a group that was made anew by nobody", WORKED + "700 G~ 3", ["100-700 admin", "700-3 external"]),
        ("what is not understood", WORKED + "? 3", []),
        ("a group whose record is not understood may have members", "G1(a) 60 G? 3", ["60-3 consumer"]),
        ("a newer group", "M(a) E1 60 M~(a) E2 3", ["60-3 admin"]),
        ("a newer group whose epoch is not understood", "M(a) E1 60 M~(a) E? 3", ["60-3 consumer"]),
        ("those of days ago go", WORKED + "700@1 10@93600000", ["700-10 admin"]),
        ("those of a day stay", WORKED + "700@1 10@90000000", ["100-700 admin", "700-10 admin"]),
    ],
)
def test_moves(why: str, script: str, expected: list[str]) -> None:
    assert moves(Log(script)) == expected, why


def test_what_is_noted_of_a_move() -> None:
    log = Log(WORKED + "700 3/1")
    first, second = log.facts.moves or ()
    assert (first.partition, first.before_ms, first.at_ms, first.record_offset, first.effective_offset) == (0, 1002, 1005, 5, 5)
    assert (second.partition, second.record_offset, first.topic, first.topic_id) == (1, 6, "t", "")
    log = Log(WORKED + "110 120 130")
    version = log.replay.version
    (changed,) = group_facts(log.play("140").replay.changes(version).groups)
    assert changed.moves == log.facts.moves, "the job gets to know that the first ones were made by a program"
    in_transaction = Log("G1(a) 100^7 +7 30^7 +7").facts.moves or ()
    assert [(each.record_offset, each.effective_offset) for each in in_transaction] == [(3, 4)]


def test_steps_fade() -> None:
    assert [each.step for each in Log("G1(a) 0 5 10 8 9").facts.moves or ()] == [5]
    (faded,) = Log("G1(a) 0 1000 " + " ".join(map(str, range(1001, 1061))) + " 900").facts.moves or ()
    assert (is_notable(faded, CONSUMER), faded.step < 16) == (True, True)
    assert [each.step for each in Log("G1(a) ? 50 0 60 0").facts.moves or ()] == [0, 60]  # from what is not understood nobody knows how far


def test_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offset_moves, "MOST_OF_GROUP", 3)
    log = Log(WORKED + "700 G3(a)" + " 500 600" * 4)
    assert moves(log) == ["100-700 admin", "600-500 consumer", "600-500 consumer"], "what somebody should know stays"
    monkeypatch.setattr(offset_moves, "MOST_OF_LOG", 3)
    log = Log(WORKED + "700 3/1 10 h:G1(a) h:60 h:3")
    assert [row["group"] for row in log.rows() if row["moves"]] == ["g"]
    monkeypatch.undo()
    monkeypatch.setattr("streaming.kafka.groups.commit_log.FORGET_AT_LEAST", 0)  # deleted rows are forgotten
    log = Log(WORKED + "700" + "".join(f" 5/{partition} ~/{partition}" for partition in range(2, 8)) + " 10")
    assert (moves(log), (log.facts.moves or ())[0].commits) == (["100-700 admin", "700-10 admin"], 2)


STEPS = st.lists(
    st.sampled_from([*(f"{at}/{partition}" for at in range(10) for partition in range(3)), *["~/0", "~/1", "~/2", "G(a)", "G()"] * 3]),
    max_size=30,
)


def _key(one: Record) -> object:
    return (one.group, one.partition) if isinstance(one, Commit) else "group"


def _moves(records: list[Record], pieces: int) -> set[tuple[int, int, int, int]]:
    """Of a log that is replayed so many records at a time: record, from, to, who was there."""
    log = Log().replay
    for begin in range(0, len(records), pieces):
        some = tuple(records[begin : begin + pieces])
        log.replay(GroupRecords(some, 0), some[-1].record_offset + 1)
    groups = group_facts(log.changes(0).groups)
    return {(each.record_offset, each.before, each.offset, each.presence) for group in groups for each in group.moves or ()}


@given(STEPS, st.integers(0, 30), st.integers(1, 5))
def test_what_compaction_leaves_shows_nothing_that_was_not_so(steps: list[str], cleaned: int, pieces: int) -> None:
    """Of what is cleaned, the last record of each key stays: whatever two commits are there have followed each other."""
    records = [record(word.replace("G", f"G{at + 1}"), at) for at, word in enumerate(steps)]
    whole = _moves(records, len(records) + 1)
    assert _moves(records, pieces) == whole, "in whatever pieces it is read"
    last = {_key(one): one for one in records[:cleaned]}
    left = [one for one in records if one.record_offset >= cleaned or last[_key(one)] is one]
    compacted = _moves(left, pieces)
    assert {each for each in whole if each[0] >= cleaned} <= compacted, "what is not cleaned is compared with what was left"
    assert {each for each in compacted if each[2] < each[1]} <= whole
    offsets, both = dict[int, int](), set[tuple[int, int, int]]()  # each commit with the one before of its partition
    for one in records:
        if isinstance(one, Commit) and (before := offsets.pop(one.partition, None), one.value)[1] is not None:
            both.add((one.record_offset, -1 if before is None else before, one.value.offset))  # type: ignore[union-attr]
            offsets[one.partition] = one.value.offset  # type: ignore[union-attr]
    assert {each[:3] for each in compacted} <= both, "a program may look like a hand, but both commits were"


def history(script: str, group: str = "g") -> GroupEvents:
    made = GroupEvents(group, LOG)
    for offset, word in enumerate(script.split()):
        made.take(record(word, offset))
    return made


def lines(found: GroupEvents) -> str:
    return " ".join(
        each.event + ("" if each.topic == "" else f":{each.before}:{each.committed}") + (f"!{each.moved}" if each.moved else "")
        for each in found.events
    )


@each_row(
    ("script", "expected"),
    [
        (
            "G1(a,b) 60 60 G2() 700 3",
            "generation commit:-1:60 commit:60:60 generation commit:60:700!admin commit:700:3!admin",
        ),
        ("G1(a) 0 G2() 1 2 3 4 2", "generation commit:-1:0 generation commit:0:1 commit:1:2 commit:2:3 commit:3:4 commit:4:2!external"),
        ("50^7 +7 40^7 -7", "pending:-1:50 commit:-1:50 pending:50:40 aborted:50:40"),
        ("50^7 ~ +7", "pending:-1:50"),
        ("50 ~ ~ 3 G~", "commit:-1:50 deleted:50:-1 commit:-1:3 gone"),
        ("50 ? 60", "commit:-1:50 commit:50:-1 commit:-1:60"),
        ("M(a=t) E1 9 M~(a) E2 2", "generation commit:-1:9 generation commit:9:2!admin"),
        ("E1 E~", "generation gone"),
        ("h:50 h:G1(a) 60", "commit:-1:60"),
    ],
)
def test_the_history_of_a_group(script: str, expected: str) -> None:
    assert lines(history(script)) == expected


def test_the_columns_of_a_history(monkeypatch: pytest.MonkeyPatch) -> None:
    first, empty = (each for each in history("G1(a,b)@77 G2()").events)
    a, b = (RebalancedMember(client=f"c-{each}", host="/h") for each in "ab")
    assert (first.epoch, first.members, first.first_members, first.at_ms) == (1, 2, [a, b], 77)
    assert (empty.epoch, empty.members, empty.first_members, empty.at_ms) == (2, 0, [], 1001)
    newer = history("M(a) E1 E? M~(a) E2").events
    assert [(each.epoch, each.members, each.first_members) for each in newer] == [(1, 1, [a]), (-1, -1, []), (2, 0, [])]
    ended = history("50^7 +7").events
    assert [(each.record_offset, each.at_ms, each.partition) for each in ended] == [(0, 1000, 0), (1, 1001, 0)]
    aborted = history("50^7 -7").events
    assert [(each.record_offset, each.at_ms) for each in aborted] == [(0, 1000), (1, 1001)]
    monkeypatch.setattr(group_history, "MOST_EVENTS", 3)
    found = history("0 1 2 3 4")
    assert ([each.committed for each in found.events], found.omitted) == ([2, 3, 4], 2)
