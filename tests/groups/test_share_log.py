"""How far share groups are, by the log of their coordinator; sets of offsets, and what members are assigned."""

import json
import re
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streaming.common.log_key import LogKey
from streaming.kafka.formats.coordinator_states import ShareKey, ShareKeyType, ShareSnapshot, ShareUpdate, StateBatch
from streaming.kafka.groups.log_replay import GroupLimit
from streaming.kafka.groups.number_ranges import (
    MOST_RANGES,
    after,
    assigned,
    between,
    by_id,
    by_name,
    classic_assignment,
    existing,
    joined,
    packed,
    pairs,
    unpacked,
)
from streaming.kafka.groups.replays import ShareLog
from streaming.kafka.scan.group_records import NOT_UNDERSTOOD, ShareRecord, ShareRecords, share_records
from streaming.simulator.batch_writer import Record
from streaming.terminal.dump.row_table import plain
from tests.formats.dumped import columns
from tests.formats.segments import written
from tests.groups.coordinator import filled
from tests.groups.logs import dumped, segments
from tests.scan.coordinator import holding
from tests.tables import each_row

TOPIC = "__share_group_state"
_WORD = re.compile(r"(?:(\w+):)?([SU])(-?\d+|~|\?)(?:,(-?\d+))?(?:\(([^)]*)\))?(?:/(\d+))?")
_STATES = {"available": 0, "acked": 2, "archived": 4}


class Log(ShareLog):
    """Of a script: S5,2(6-7acked) is a snapshot from offset 5 on, with two offsets done, and this range; U an update; h:, /1, ~, ?."""

    def __init__(self, script: str = "", most: int = 10) -> None:
        self.limit = GroupLimit(most)
        super().__init__(LogKey(1, TOPIC, 3, "id"), "e", self.limit)
        self.play(script)

    def play(self, script: str) -> "Log":
        for word in script.split():
            found = _WORD.fullmatch(word)
            assert found, word
            group, kind, start, done, ranges, partition = found.groups()
            batches = [re.fullmatch(r"(\d+)-(\d+)(\w+)", each) for each in (ranges or "").split(",") if each]
            states = tuple(StateBatch(int(each[1]), int(each[2]), _STATES[each[3]], 1) for each in batches if each)
            value: Any = {"~": None, "?": NOT_UNDERSTOOD}.get(start)
            if start not in "~?":
                parts = {"start_offset": int(start), "state_batches": states, "delivery_complete_count": int(done or 0)}
                value = filled(ShareSnapshot if kind == "S" else ShareUpdate, **parts)
            key = ShareKey(
                ShareKeyType.SHARE_SNAPSHOT if kind == "S" else ShareKeyType.SHARE_UPDATE, group or "g", "t1", int(partition or 0)
            )
            self.replay(ShareRecords((ShareRecord(self.upto, 1000 + self.upto, key, value),), 0), self.upto + 1)
        return self

    def rows(self, since: int = 0) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.changes(since).commits.to_pylist()
        return found

    def shown(self, since: int = 0) -> list[tuple[object, ...]]:
        return [(row["group"], row["partition"], row["offset"], row["delivered"], row["done"] or []) for row in self.rows(since)]


@each_row(
    ("script", "offset", "delivered", "done"),
    [
        ("S5,2", 5, 2, []),
        ("S5,2 U-1,7", 5, 7, []),
        ("S5,2 U9,1", 9, 1, []),
        ("S5,2 U9,1 S3", 3, 0, []),
        ("S5,3(6-7acked,8-9available,12-12archived)", 5, 3, [6, 7, 12, 12]),
        ("S5,3(6-7acked,12-12archived) U-1,5(8-9acked)", 5, 5, [6, 9, 12, 12]),
        ("S5,3(6-9acked,12-12archived) U8,3(10-10available)", 8, 3, [8, 9, 12, 12]),  # before the start offset all is done anyway
        ("S5,3(6-9acked) S10,1(11-11archived)", 10, 1, [11, 11]),
        ("S5,3(6-9acked) S3", 3, 0, []),  # its offsets were reset
        ("S5 U~", 5, 0, []),
        ("S5,3(6-7acked) S~", -1, 0, []),
        ("S5 S~ U-1", -1, 0, []),
        ("S5 S~ S7", 7, 0, []),
        ("S5,-1", 5, 0, []),  # brokers before 4.2 wrote no count
        ("S5,-1(6-7acked)", 5, 2, [6, 7]),
        ("S5 S?", -2, 0, []),
        ("S-2", -2, 0, []),
        ("S-3", None, 0, []),
        ("S-1", None, 0, []),  # its start is not known yet
        ("S~", None, 0, []),
        ("U5,1", 5, 1, []),
    ],
)
def test_a_partition_of_a_share_group(script: str, offset: int | None, delivered: int, done: list[int]) -> None:
    log = Log(script)
    assert log.shown() == ([] if offset is None else [("g", 0, offset, delivered, done)])
    assert log.limit.used == (offset not in (None, -1))


def test_all_columns() -> None:
    assert Log("S1 U5,2").rows() == [
        {
            **{
                "group": "g",
                "topic": "",
                "topic_id": "t1",
                "partition": 0,
                "coordinator": 3,
                "offset": 5,
                "commit_ms": 1001,
                "expire_ms": -1,
            },
            **{"record_offset": 1, "effective_offset": 1, "share": True, "delivered": 2, "done": []},
            **{"leader_epoch": -1, "former_ms": -1, "resumed": -1, "moved_ms": -1, "presence": 0},
        }
    ]


def test_changes_since_a_version_what_is_forgotten_and_the_limit() -> None:
    log = Log("S1/1")
    seen = log.version
    assert log.play("S2/2").shown(seen) == [("g", 2, 2, 0, [])]
    log.play(" ".join(f"h:S1/{number} h:S~/{number}" for number in range(100)))
    assert (log.changes(seen).whole, len(log.rows()) < 70, log.limit.used) == (True, True, 1)
    log.close()
    assert log.limit.used == 0
    log = Log("S1 h:S1 h:S1/4", most=1)
    assert (log.shown(), log.omitted) == ([("g", 0, 1, 0, [])], 1)


def test_records_are_what_kafka_prints() -> None:
    (data,) = segments(TOPIC).values()
    found = share_records(columns(data), np.frombuffer(data, np.uint8))
    printed = [match for line in dumped(TOPIC, 0) if (match := re.search(r" key: (.*?\}\}) payload: (.*)$", line))]
    assert (found.unreadable, len(found.records)) == (0, len(printed)) > (0, 2)
    for one, line in zip(found.records, printed, strict=True):
        key, value = json.loads(line[1])["data"], {"deliveryCompleteCount": -1} | json.loads(line[2])["data"]
        assert (one.key.group, one.key.topic_id, one.key.partition) == (key["groupId"], key["topicId"], key["partition"])
        shown: Any = plain(one.value)
        states, batches = shown.pop("state_batches"), value.pop("stateBatches")
        assert {re.sub("_(.)", lambda found: found[1].upper(), name): each for name, each in shown.items()} == value
        names = ("firstOffset", "lastOffset", "deliveryState", "deliveryCount")
        assert [list(each.values()) for each in states] == [[each[name] for name in names] for each in batches]


@each_row(
    ("key", "unreadable", "records"),
    [(b"", 1, 0), (b"\0\7abc", 1, 0), (b"\0\0\0\1g" + bytes(19), 1, 0), (b"\0\0\0\1g" + bytes(20), 1, 1)],
)
def test_what_is_not_understood_is_counted(key: bytes, unreadable: int, records: int) -> None:
    content = written([holding(Record(key, b"\0\1later"))])
    found = share_records(columns(content.data), content.buffer)
    assert (found.unreadable, len(found.records)) == (unreadable, records)


RANGES = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5)).map(lambda of: (of[0], of[0] + of[1])), max_size=6)
TOPICS = st.text(max_size=5).map(by_name) | st.text(max_size=5).map(by_id)


@given(RANGES, st.integers(0, 25), st.integers(0, 25))
def test_ranges_are_what_sets_are(some: list[tuple[int, int]], start: int, end: int) -> None:
    offsets = {offset for first, last in some for offset in range(first, last + 1)}
    ranges = joined(some)
    assert {offset for first, last in pairs(ranges) for offset in range(first, last + 1)} == offsets
    assert all(following > last + 1 for last, following in zip(ranges[1::2], ranges[2::2], strict=False)), "as few as there can be"
    assert between(ranges, start, end) == len(offsets & set(range(start, end)))
    assert after(ranges, start) == next(offset for offset in range(start, 50) if offset not in offsets)


@given(st.lists(st.tuples(TOPICS, st.lists(st.integers(0, 40), max_size=8)), max_size=6))
def test_assignments_that_are_packed_come_out_again_whatever_the_names_hold(parts: list[tuple[str, list[int]]]) -> None:
    entries = packed(assigned(*each) for each in parts)
    found = {(topic, each) for topic, ranges in map(unpacked, entries) for first, last in pairs(ranges) for each in range(first, last + 1)}
    assert found == {(topic, partition) for topic, partitions in parts for partition in partitions}


@each_row("entry", ["", "orders", "0-5orders", "5-0:orders", "-1:orders", "0-9999999999:orders", "1,:orders"])
def test_what_is_no_entry_has_no_partitions(entry: str) -> None:
    assert unpacked(entry)[1] == ()


def test_assignments() -> None:
    members = [assigned(by_name("orders"), range(number, 100_000, 3)) for number in range(3)]
    assert packed(members) == ("0-99999:orders",)
    assert len(unpacked(packed([assigned(by_name("orders"), range(0, 100_000, 2))])[0])[1]) == 2 * MOST_RANGES, "no more than are sent"
    of_two = bytes.fromhex("0003 00000002 0001 61 00000002 00000000 00000001 0001 62 00000001 00000007 ffffffff")
    assert classic_assignment(of_two) == ((":a", (0, 1)), (":b", (7, 7)))
    assert classic_assignment(b"") == classic_assignment(of_two[:20]) == classic_assignment(b"\0\0\x7f\xff\xff\xff") == ()
    entries = ("1-7#id1", "0,2,5:orders", "3:orders", "0#id2", "0:b")
    found = [existing(each, {"id1": "orders"}.get, lambda topic: 3 if topic == "orders" else 0) for each in entries[:3]]
    assert found == [("orders", (1, 2)), ("orders", (0, 0, 2, 2)), ("orders", ())]
    assert [existing(each, lambda _: "", lambda _: 0) for each in entries[3:]] == [("", ()), ("b", ())]
