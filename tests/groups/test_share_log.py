"""How far share groups are, by the log of their coordinator."""

import json
import re
from typing import Any

import numpy as np

from streaming.common.log_key import LogKey
from streaming.kafka.formats.share_group_state import ShareKey, ShareKeyType, ShareSnapshot, ShareUpdate, StateBatch
from streaming.kafka.groups.followed_groups import GroupLimit
from streaming.kafka.groups.group_rows import NOT_UNDERSTOOD as NOT_UNDERSTOOD_OFFSET
from streaming.kafka.groups.group_rows import REMOVED
from streaming.kafka.groups.share_log import ShareLog
from streaming.kafka.scan.group_records import NOT_UNDERSTOOD
from streaming.kafka.scan.share_records import ShareRecord, ShareRecords, share_records
from streaming.simulator.batch_writer import Record
from streaming.terminal.dump.plain import plain
from tests.formats.dumped import columns
from tests.formats.segments import written
from tests.groups.logs import dumped, segments
from tests.scan.test_group_records import holding
from tests.tables import each_row

TOPIC = "__share_group_state"


def snapshot(offset: int, done: int = 0, *batches: StateBatch) -> ShareSnapshot:
    return ShareSnapshot(
        snapshot_epoch=0,
        state_epoch=0,
        leader_epoch=0,
        start_offset=offset,
        delivery_complete_count=done,
        create_timestamp=1,
        write_timestamp=2,
        state_batches=batches,
    )


def update(offset: int, done: int = 0, *batches: StateBatch) -> ShareUpdate:
    return ShareUpdate(snapshot_epoch=0, leader_epoch=0, start_offset=offset, delivery_complete_count=done, state_batches=batches)


AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4


def batch(first: int, last: int, state: int) -> StateBatch:
    return StateBatch(first, last, state, 1)


class Log(ShareLog):
    def __init__(self, most: int = 10) -> None:
        self.limit = GroupLimit(most)
        super().__init__(LogKey(1, TOPIC, 3, "id"), "e", self.limit)

    def add(self, value: Any, group: str = "g", partition: int = 0, of: ShareKeyType | None = None) -> "Log":
        kind = of if of is not None else ShareKeyType.SHARE_UPDATE if isinstance(value, ShareUpdate) else ShareKeyType.SHARE_SNAPSHOT
        record = ShareRecord(self.upto, 1000 + self.upto, ShareKey(kind, group, "t1", partition), value)
        self.replay(ShareRecords((record,), 0), self.upto + 1)
        return self

    def reported(self, after: int = 0) -> dict[tuple[str, int], tuple[int, int]]:
        return {(row["group"], row["partition"]): (row["offset"], row["delivered"]) for row in self.changes(after).commits.to_pylist()}


def test_a_snapshot_replaces_and_an_update_adds() -> None:
    log = Log().add(snapshot(5, 2))
    assert log.reported() == {("g", 0): (5, 2)}
    assert log.add(update(-1, 7)).reported() == {("g", 0): (5, 7)}
    assert log.add(update(9, 1)).reported() == {("g", 0): (9, 1)}
    assert log.add(snapshot(3, 0)).reported() == {("g", 0): (3, 0)}
    (row,) = log.changes(0).commits.to_pylist()
    assert (row["topic"], row["topic_id"], row["share"], row["coordinator"], row["commit_ms"], row["record_offset"]) == (
        "",
        "t1",
        True,
        3,
        1003,
        3,
    )


def done(log: Log) -> list[int]:
    (row,) = log.changes(0).commits.to_pylist()
    ranges: list[int] = row["done"]
    return ranges


def test_what_is_done_after_the_start_offset_adds_up() -> None:
    log = Log().add(snapshot(5, 3, batch(6, 7, ACKNOWLEDGED), batch(8, 9, AVAILABLE), batch(12, 12, ARCHIVED)))
    assert done(log) == [6, 7, 12, 12]
    assert done(log.add(update(-1, 5, batch(8, 9, ACKNOWLEDGED)))) == [6, 9, 12, 12]
    assert done(log.add(update(8, 3, batch(10, 10, AVAILABLE)))) == [8, 9, 12, 12], "what is before the start offset is done anyway"
    assert done(log.add(snapshot(10, 1, batch(11, 11, ARCHIVED)))) == [11, 11]
    assert done(log.add(snapshot(3))) == [], "its offsets were reset"


def test_a_tombstone_of_the_snapshot_deletes() -> None:
    log = Log().add(snapshot(5)).add(None, of=ShareKeyType.SHARE_UPDATE)
    assert log.reported() == {("g", 0): (5, 0)}
    assert log.add(None).reported() == {("g", 0): (REMOVED, 0)}
    assert log.limit.used == 0
    assert log.add(update(-1)).reported() == {("g", 0): (REMOVED, 0)}


def test_a_partition_whose_start_is_not_known_yet_is_not_reported() -> None:
    assert Log().add(snapshot(-1)).reported() == {}
    assert Log().add(None).reported() == {}


def test_what_brokers_before_4_2_wrote_has_no_count() -> None:
    assert Log().add(snapshot(5, -1)).reported() == {("g", 0): (5, 0)}
    assert Log().add(snapshot(5, -1, batch(6, 7, ACKNOWLEDGED))).reported() == {("g", 0): (5, 2)}


def test_what_is_not_understood_replaces_what_was_known() -> None:
    assert Log().add(snapshot(5)).add(NOT_UNDERSTOOD).reported() == {("g", 0): (NOT_UNDERSTOOD_OFFSET, 0)}


def test_changes_since_a_version_and_what_is_forgotten() -> None:
    log = Log().add(snapshot(1), partition=1)
    seen = log.version
    assert log.add(snapshot(2), partition=2).reported(seen) == {("g", 2): (2, 0)}
    for number in range(100):
        log.add(snapshot(1), group="h", partition=number).add(None, group="h", partition=number)
    assert log.changes(seen).whole
    assert len(log.reported()) < 70
    assert log.limit.used == 1
    log.close()
    assert log.limit.used == 0


def test_no_more_groups_than_the_limit() -> None:
    log = Log(most=1).add(snapshot(1)).add(snapshot(1), group="h").add(snapshot(1), group="h", partition=4)
    assert (log.reported(), log.omitted) == ({("g", 0): (1, 0)}, 1)


def test_records_are_what_kafka_prints() -> None:
    (data,) = segments(TOPIC).values()
    found = share_records(columns(data), np.frombuffer(data, np.uint8))
    printed = [match for line in dumped(TOPIC, 0) if (match := re.search(r" key: (.*?\}\}) payload: (.*)$", line))]
    assert found.unreadable == 0
    assert len(found.records) == len(printed) > 2
    for record, line in zip(found.records, printed, strict=True):
        key, value = json.loads(line[1])["data"], {"deliveryCompleteCount": -1} | json.loads(line[2])["data"]
        assert (record.key.group, record.key.topic_id, record.key.partition) == (key["groupId"], key["topicId"], key["partition"])
        assert record.value is not None
        shown = plain(record.value)
        assert isinstance(shown, dict)
        assert {
            re.sub("_(.)", lambda found: found[1].upper(), name): values for name, values in shown.items() if name != "state_batches"
        } == {name: values for name, values in value.items() if name != "stateBatches"}
        batches = [[one[name] for name in ("firstOffset", "lastOffset", "deliveryState", "deliveryCount")] for one in value["stateBatches"]]
        assert [list(one.values()) for one in shown["state_batches"]] == batches


@each_row(
    ("key", "unreadable", "records"),
    [(b"", 1, 0), (b"\0\7abc", 1, 0), (b"\0\0\0\1g" + bytes(19), 1, 0), (b"\0\0\0\1g" + bytes(20), 1, 1)],
)
def test_what_is_not_understood_is_counted(key: bytes, unreadable: int, records: int) -> None:
    content = written([holding(Record(key, b"\0\1later"))])
    found = share_records(columns(content.data), content.buffer)
    assert (found.unreadable, len(found.records)) == (unreadable, records)
