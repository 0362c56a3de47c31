"""Groups and their states, as the records about them say."""

import struct

from streaming.kafka.formats.consumer_offsets import GroupKey
from streaming.kafka.formats.stored_groups import GroupMember, GroupMetadata
from streaming.kafka.scan.group_records import GroupRecord
from tests.groups.coordinator import Log, filled, generation
from tests.tables import each_row


def shown(log: Log) -> str:
    """State and members, and since when where that is known; -1 members: removed, -2: not understood."""
    return ", ".join(f"{row['state']} {row['members']}" + (f" @{row['state_ms']}" if row["state_ms"] >= 0 else "") for row in log.rows())


@each_row(
    ("why", "steps"),
    [
        ("a classic group", [("G4(b,a)@99", "Stable 2 @99"), ("G5()", "Empty 0"), ("G~", "Empty -1")]),
        ("states of a consumer group", [("M(a=t) E3", "Assigning 1"), ("T3", "Reconciling 1"), ("C3.1(a)", "Reconciling 1")]),
        ("it is stable, then has nothing any more", [("M(a) E3 T3 C3(a)", "Stable 1"), ("C~(a)", "Reconciling 1"), ("C3(a)", "Stable 1")]),
        ("another epoch, and its end", [("M(a) E3 T3 C3(a) E4", "Assigning 1"), ("C~(a) M~(a)", "Empty 0 @1006"), ("T~ E~", "Empty -1")]),
        ("one member of two", [("M(a) M(b) E3 T3 C3(a) C2(b)", "Reconciling 2"), ("C3(b)", "Stable 2"), ("M~(b)", "Stable 1")]),
        ("empty since its last member left", [("M(a) M(b) E3 T3 M~(a) M~(b)", "Empty 0 @1005"), ("E4 E5", "Empty 0 @1005")]),
        ("of one with a member since when is not stored", [("M(a) M~(a) M(c)", "Stable 1"), ("M~(c)", "Empty 0 @1003")]),
        ("compacted: the epoch was raised with the tombstone", [("M~(a) E4", "Empty 0 @1001")]),
        ("compacted: an epoch after a target", [("T3 E4", "Empty 0 @1001")]),
        ("compacted: nothing shows since when", [("T3", "Empty 0")]),
        ("what has left was there until then", [("E4 M~(a)", "Empty 0 @1001")]),
        ("compaction leaves a description for later", [("C3(a) T3 E3 M(a)", "Stable 1")]),
        ("an epoch that is not understood", [("E3 M(a) E?", "Unknown 1"), ("E4", "Assigning 1")]),
        ("a member whose state is not understood", [("E3 M(a) C?(a)", "Unknown 1"), ("C3(a)", "Assigning 1")]),
        ("a classic group that is not understood", [("G?", "Unknown -2")]),
        ("one leaves that is not known", [("E3 M(a) C~(b)", "Assigning 1")]),
        ("a share group is empty or stable", [("sE2#9", "Empty 0 @1000"), ("sM(m=t)", "Stable 1")]),
        ("a share group whose member is not understood", [("sM?(m)", "Stable 1"), ("sM~(m)", "Empty 0 @1001")]),
        ("a streams group needs a valid topology", [("kM(m) kE1", "NotReady 1"), ("kP1(in)", "NotReady 1"), ("kE1.1", "Assigning 1")]),
        ("a stable streams group", [("kM(m) kP1(in) kE1.1 kT1 kC1.2(m)", "Reconciling 1"), ("kC1.1(m)", "Stable 1")]),
        ("a streams group whose member is not understood", [("kM?(m)", "NotReady 1"), ("kM~(m)", "Empty 0 @1001")]),
        ("commits alone", [("60", "Empty 0"), ("G~", "Empty -1")]),
        ("tombstones of what is not known, and records of no interest, make no group", [("E~ M~(m) G~ N?(m)", "")]),
        ("a tombstone of a newer group that is gone", [("E3 E~ M~(m)", "Empty -1"), ("E~", "Empty -1")]),
    ],
)
def test_states(why: str, steps: list[tuple[str, str]]) -> None:
    log = Log()
    assert [shown(log.play(words)) for words, _ in steps] == [expected for _, expected in steps], why
    if steps[-1][1].endswith("-1") and "60" not in steps[0][0]:
        assert log.limit.used == 0


@each_row(
    ("script", "columns"),
    [
        (
            "M(a=t) E3 T3",
            {"type": "Consumer", "protocol": "consumer", "epoch": 3, "topics": ["t"], "clients": ["c-a"], "effective_offset": 2},
        ),
        ("G4(a)%connect", {"type": "Classic", "protocol": "connect", "topics": [], "assigned": []}),
        ("60", {"type": "Classic", "protocol": "", "epoch": 0}),
        ("sE2 sM(m=t)", {"type": "Share", "protocol": "share", "clients": ["c-m"], "topics": ["t"]}),
        ("kM(m) kE1 kP1(in)", {"type": "Streams", "protocol": "streams", "topics": ["in"]}),
        ("kM(m) kP1(in) kP~", {"topics": []}),
        # what members are assigned
        ("E3 M(a) C3(a=0,2) M(b) C3(b=1)", {"assigned": ["0-2#id"]}),
        ("E3 M(a) C3(a=0,2) M(b) C3(b=1) C~(a)", {"assigned": ["1#id"]}),
        ("E3 M(a) C3(a=0,2) M~(a)", {"assigned": []}),
        ("E3 M(a) C3(a=0) C?(a)", {"assigned": []}),
        ("sC1(m=4,5)", {"assigned": ["4-5#id"]}),
        # topics that a regular expression has found
        ("E3 R(a.*=ab,aa)", {"topics": ["aa", "ab"]}),
        ("E3 R(a.*=ab,aa) R?(a.*)", {"topics": []}),
        ("E3 R(a.*=ab,aa) R(a.*=ac)", {"topics": ["ac"]}),
        ("E3 R(a.*=ab,aa) R~(a.*)", {"topics": []}),
        # what the last members subscribed to
        ("G4(b,a)", {"last_topics": []}),
        ("G4(b,a) G5()", {"last_topics": ["a", "b"]}),
        ("G4() G? G5()", {"last_topics": []}),
        ("M(a=t) E3 M(b=u) E4 M~(a) E5 M~(b) E6", {"last_topics": ["t", "u"], "topics": []}),
        ("M(a=t) E3 M~(a) E4 M(b=u) E5 M~(b) E6", {"last_topics": ["u"]}),
        ("M(a) E3 R(a.*=ab) R~(a.*) M~(a) E4", {"last_topics": ["ab"]}),
        ("M(a) E3 R(a.*=ab) M~(a) R~(a.*) E4", {"last_topics": ["ab"]}),
        ("M(a=t) E3 M~(b) M~(a) E4", {"last_topics": []}),  # compaction has left nothing of one of them
        ("kM(m) kP1(in) kE1 kM~(m)", {"last_topics": ["in"]}),
        # from one protocol to the other
        ("G4(a) G~ E5", {"type": "Consumer"}),
        ("G4(a) E5 G~", {"type": "Consumer"}),  # it may be read after what is left of the newer one
        ("E5 G4(a)", {"type": "Classic"}),
    ],
)
def test_columns(script: str, columns: dict[str, object]) -> None:
    log = Log(script)
    assert {name: log.row[name] for name in columns} == columns
    assert log.limit.used == 1


def test_all_columns_of_a_classic_group() -> None:
    assert Log("G4(b,a)@99").row == {
        **{
            "group": "g",
            "coordinator": 3,
            "effective_offset": 0,
            "type": "Classic",
            "protocol": "consumer",
            "state": "Stable",
            "members": 2,
        },
        **{"epoch": 4, "state_ms": 99, "clients": ["c-b", "c-a"], "hosts": ["/h", "/h"], "topics": ["a", "b"], "assigned": ["0-1,7:a"]},
        **{"interval_ms": -1, "moves": [], "raised": 4, "raised_by_metadata": 0, "raised_unfinished": 0, "rebalance_ms": 99},
        **{
            "last_topics": [],
            "rebalance_minutes": [],
            "rebalances": struct.pack("<8q", 4, 99, 0, 1, 0, 2, -1, -1),
            "rebalance_clients": [],
        },
        "rebalance_hosts": [],
    }
    broken, value = Log(), filled(GroupMetadata, protocol_type="consumer", members=(filled(GroupMember, member_id="a"),))
    broken.take(GroupRecord(0, GroupKey("g"), value))  # what a member has subscribed to and has is not understood
    assert (broken.row["members"], broken.row["topics"], broken.row["assigned"]) == (1, [], [])
    many = Log()
    many.take(GroupRecord(0, GroupKey("g"), generation(1, *(f"{number:02}" for number in range(30)))))
    assert (many.row["members"], many.row["clients"][-1], len(many.row["clients"]), len(many.row["hosts"])) == (30, "c-09", 10, 10)


@each_row(
    ("generations", "last"),
    [
        ([{"m": "old", "n": "new"}, {"n": "new"}, {}], ["new", "old"]),  # they leave one after the other
        ([{"m": "old"}, {"n": "new"}, {}], ["new"]),
        ([{"m": "old"}, {}, {"m": "new"}, {}, {}], ["new"]),
        ([{"m": "old"}, {"m": "new"}, {}], ["new"]),
        ([{"m": "old", "n": "old"}, {"n": "old"}, {"n": "old", "o": "new"}, {"o": "new"}, {}], ["new", "old"]),
        ([{"m": "old", "n": "old"}, {"n": "old"}, {"o": "new"}, {}], ["new"]),
        ([{"m": "old"}], []),
    ],
)
def test_the_last_members_of_a_classic_group_are_those_that_only_left(generations: list[dict[str, str]], last: list[str]) -> None:
    log = Log()
    for number, members in enumerate(generations):
        subscribed = {name: struct.pack(">hih", 0, 1, len(topic)) + topic.encode() for name, topic in members.items()}
        those = tuple(filled(GroupMember, member_id=name, subscription=each) for name, each in subscribed.items())
        log.take(GroupRecord(number, GroupKey("g"), filled(GroupMetadata, protocol_type="consumer", generation=number + 1, members=those)))
    assert log.row["last_topics"] == last


def test_no_more_groups_than_the_limit_and_changes_since_a_version() -> None:
    log = Log("G1(a) h:G1(a) h:M(b) h:60", most=1)
    assert ([row["group"] for row in log.rows()], log.limit.used, log.replay.omitted) == (["g"], 1, 1)
    assert log.play("h:G~").replay.omitted == 0  # a group that is gone is not left out any more
    log = Log("G1(a)")
    seen = log.replay.version
    assert [row["group"] for row in log.play("h:G1(a)").rows(seen)] == ["h"]
    assert log.play("G~").rows(log.replay.version) == []
