"""Which rebalances of a group its records show, and who joined and left."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from streaming.kafka.formats.consumer_offsets import GroupKey
from streaming.kafka.groups.rebalance_log import MOST_CHANGED, MOST_COMPARED, MOST_RECENT, Rebalance, packed_rebalances, unpacked_rebalances
from streaming.kafka.scan.group_records import GroupRecord
from tests.groups.coordinator import Log, generation
from tests.tables import each_row

MINUTE = 60_000


def counts(log: Log) -> tuple[int, int, int]:
    """How often the group has rebalanced, how often by metadata alone, and how often without an assignment."""
    return log.row["raised"], log.row["raised_by_metadata"], log.row["raised_unfinished"]


def recent(log: Log) -> tuple[Rebalance, ...]:
    return unpacked_rebalances(log.facts.rebalances, log.facts.rebalance_clients, log.facts.rebalance_hosts)


def changes(log: Log) -> list[str]:
    """Kind, to which generation, and who joined and left."""
    return [
        f"{each.kind} {each.raised}"
        + "".join(f" +{name.client}" for name in each.joined_names)
        + "".join(f" -{name.client}" for name in each.left_names)
        for each in recent(log)
    ]


@each_row(
    ("why", "script", "expected"),
    [
        ("who joined and left", "G0() G1(a) G2(a,b) G3(b) G4(b) G5()", (5, 0, 0)),
        ("a generation that was never assigned", "G1(a) G4(a,b)", (4, 0, 2)),
        ("what was before the first record that is left", "G41(a,b)", (41, 0, 0)),
        ("a record that says nothing was between", "G5(a) G? G8(a)", (8, 0, 0)),
        ("and the one after that is exact again", "G5(a) G? G8(a) G10(a)", (10, 0, 1)),
        ("a static member that comes back makes no generation", "G1(a/1,b/1) G1(a/1,b/2) G2(b/2)", (2, 0, 0)),
        ("a group that was made anew counts anew", "G1(a) G3(a) G~ G0() G1(b)", (1, 0, 0)),
        ("its tombstone was compacted", "G1(a) G3(a) G1(b)", (1, 0, 0)),
        ("a generation that wraps", "G2147483647(a) G-2147483648(a) G-2147483647(a)", (2**31 + 1, 0, 0)),
        ("a generation that wraps to 0", "G-1(a) G0(a) G1(a)", (1, 0, 0)),
        ("no record of its own", "60", (-1, -1, -1)),
        # newer groups
        ("epochs that only metadata raised", "M(a) E2#7 M(b) E3#7 E4#8 M~(a) E5#9", (5, 1, 0)),
        ("before Kafka 4.1 there is no hash", "M(a) E1 E2", (2, 1, 0)),
        ("a member that subscribes to other topics raises it itself", "M(a=t) E1#7 M(a=t,u) E2#8 E3#9", (3, 1, 0)),
        ("a member that describes itself as before does not", "M(a=t) E1#7 M(a=t) E2#8", (2, 1, 0)),
        ("a reason that is not on disk", "M(a) E1#7 E2#7", (2, 0, 0)),
        ("an epoch of a static member that comes back has a reason", "M(a!i) E1#7 C~(a) M~(a) M(b!i) E2#8", (2, 1, 0)),
        ("topics that a new expression finds are its members' doing", "M(a) E1#7 R(a.*=aa) E2#8 R(a.*=aa,ab) E3#9", (3, 1, 0)),
        ("and so is an expression that is gone", "M(a) E1#7 R(a.*=aa) E2#8 R~(a.*) E3#9", (3, 0, 0)),
        ("what compaction has left", "M(a) M(b) E40#7", (40, 0, 0)),
        ("one left whose description is gone", "M(a) M(b) E40#7 M~(c) E41#8", (41, 0, 0)),
        ("a member that is not understood", "M(a) E1#7 M?(b) E2#8", (2, 0, 0)),
        ("an epoch that is not understood", "M(a) E1#7 E? E3#8", (3, 0, 0)),
        ("partitions that are ready for a share group change no hash", "sM(m=t) sE2#7 sE3#7", (3, 1, 0)),
        ("a topology is no metadata", "kE1#7 kP1(in) kE2.1#8 kE3.1#9", (3, 1, 0)),
        ("a topology that becomes valid is none either", "kE1#7 kE2.1#8", (2, 0, 0)),
    ],
)
def test_how_often_and_by_what(why: str, script: str, expected: tuple[int, int, int]) -> None:
    assert counts(Log(script)) == expected, why


@each_row(
    ("script", "expected"),
    [
        ("G0() G1(a) G2(a,b) G3(b) G4(b) G5()", ["members 1 +c-a", "members 2 +c-b", "members 3 -c-a", "members 4", "members 5 -c-b"]),
        ("G1(a/1,b/1) G1(a/1,b/2) G2(b/2)", ["members 1 +c-a +c-b", "rejoined 1 +c-b", "members 2 -c-a"]),
        ("G1(a) G3(a) G~ G0() G1(b)", ["members 1 +c-b"]),
        ("M(a) E2#7 M(b) E3#7 E4#8 M~(a) E5#9", ["members 2 +c-a", "members 3 +c-b", "metadata 4", "members 5 -c-a"]),
        ("M(a!i) E1#7 C~(a) M~(a) M(b!i)", ["members 1 +c-a", "rejoined 1 +c-b"]),
        ("M(a) E1#7 M~(a) M(a) E2#7", ["members 1 +c-a", "rejoined 1 +c-a", "members 2"]),
    ],
)
def test_who_joined_and_left(script: str, expected: list[str]) -> None:
    assert changes(Log(script)) == expected


def test_what_is_kept_of_each() -> None:
    assert [each.members for each in recent(Log("G0() G1(a) G2(a,b) G3(b) G4(b) G5()"))] == [1, 2, 1, 1, 0]
    assert [each.generations for each in recent(Log("G2147483647(a) G-2147483648(a) G-2147483647(a)"))] == [1, 1, 1]
    assert [(each.generations, each.unfinished) for each in recent(Log("G1(a) G4(a,b)"))] == [(1, 0), (3, 2)]
    for script in ("G41(a,b)", "M(a) M(b) E40#7"):  # of the first record that is left nobody knows
        assert [(each.joined, each.left, each.generations) for each in recent(Log(script))] == [(-1, -1, 1)]
    assert [Log(script).row["rebalance_ms"] for script in ("G1(a)@77", "G1(a)", "G0()", "60")] == [77, 1000, -1, -1]


@each_row(
    ("why", "script", "minutes"),
    [
        ("a member that comes back", "G1(a/1,b/1) G1(a/1,b/2) G2(b/2)", [0, 1, 2]),
        ("metadata is no restlessness", "M(a) E2#7 M(b) E3#7 E4#8 M~(a) E5#9", [0, 2, 2]),
        ("nobody is interrupted by the first and the last", "G1(a,b)@0 G2(a)@300000 G3()@360000", [5, 1, 2]),
        ("a job that runs every twenty minutes", "G1(a)@0 G2()@600000 G3(a)@1200000 G4()@1800000 G5(a)@2400000", []),
        (
            "back within a minute: it has crashed",
            "G1(a)@30000 G2()@60000 G3(a)@90000 G4()@120000 G5(a)@150000 G6()@180000",
            [1, 2, 1, 2, 2, 1],
        ),
        ("back after exactly a minute, and a ms later", "G1(a)@0 G2()@60000 G3(a)@120000 G4()@180000 G5(a)@240001", [1, 1, 1, 2, 1, 1]),
        ("empty twice in a row", "G1(a)@0 G2()@60000 G3()@60001 G4(a)@60002", [1, 3, 1]),
        ("a clock that was set back", "G1(a)@0 G2(a)@540000 G3(a)@120000 G4(a)@540001", [9, 3, 1]),
        ("a clock that was far ahead hides nothing", f"G1(a)@300000 G2(a)@{2**60} G3(a)@360000 G4(a)@360000", [6, 2, 1]),
        ("half an hour", "G1(a)@0 G2(a)@60000 G3(a)@1800000 G4(a)@1860000", [30, 1, 1, 31, 1, 1]),
    ],
)
def test_by_which_members_were_interrupted_is_kept_by_the_minute(why: str, script: str, minutes: list[int]) -> None:
    assert Log(script).row["rebalance_minutes"] == minutes, why


def test_bounds() -> None:
    log = Log(" ".join(f"G{number}({'a,b' if number % 2 else 'a'})@{number * MINUTE // 2}" for number in range(1, 100)))
    flat = log.row["rebalance_minutes"]
    assert list(zip(flat[0::3], flat[1::3], flat[2::3], strict=True)) == [(minute, 2, 2) for minute in range(20, 50)]
    assert len(recent(log)) == MOST_RECENT
    day = 24 * 60 * MINUTE
    assert [each.raised for each in recent(Log(f"G1(a)@0 G2(a)@{MINUTE} G3(a)@{day + MINUTE}"))] == [2, 3]
    many, log = [f"{number:05}" for number in range(MOST_COMPARED)], Log()
    for number, members in enumerate([many, [*many, "one more"], [], ["x" * 5000]]):
        log.take(GroupRecord(number, GroupKey("g"), generation(number + 1, *members)))
    first, more, gone, last = recent(log)
    assert (first.joined, len(first.joined_names), more.joined, gone.left) == (MOST_COMPARED, MOST_CHANGED, -1, -1)
    assert (len(last.joined_names[0].client), len(last.joined_names[0].host)) == (100, 2)
    newer = Log(" ".join(f"M(m{number})" for number in range(MOST_COMPARED + 1)) + " E1")
    assert recent(newer)[0].joined == MOST_COMPARED


def test_packed_rebalances_come_back_and_what_is_not_known_is_left_out() -> None:
    log = Log("G1(a,b) G2(c)")
    numbers, clients, hosts = packed_rebalances(recent(log))
    assert unpacked_rebalances(numbers, clients, hosts) == recent(log)
    assert clients == ["c-a", "c-b", "c-c", "c-a", "c-b"]
    assert unpacked_rebalances(numbers + b"more", clients, hosts) == recent(log)
    for kind in (-1, 99):  # of a later version
        assert unpacked_rebalances(struct.pack("<8q", 1, 2, kind, *[0] * 5), [], []) == ()


@given(st.lists(st.one_of(st.none(), st.tuples(st.integers(0, 3), st.sets(st.sampled_from("abcd"), max_size=4))), max_size=20))
def test_all_kinds_together_are_the_generation(records: list[tuple[int, set[str]] | None]) -> None:
    log, number = Log(), -1
    for each in records:
        number = -1 if each is None else max(number, 0) + each[0]
        log.play("G~" if each is None else f"G{number}({','.join(sorted(each[1]))})")
    rows = [row for row in log.rows() if row["members"] >= 0]
    assert [row["raised"] for row in rows] == ([number] if number >= 0 else [])
    assert all(0 <= row["raised_unfinished"] <= row["raised"] for row in rows)
