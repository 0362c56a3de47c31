"""Groups of a real broker, reported as by Kafka's own tools."""

import re

from streaming.common.short_names import short_name
from streaming.kafka.groups.commit_store import CommitStore
from streaming.kafka.groups.commit_table import Commits, Current
from streaming.kafka.groups.log_replay import GroupLimit
from streaming.kafka.groups.number_ranges import pairs
from tests.groups.logs import dumped, replayed, reported, segments, stated

OFFSETS, SHARE = "__consumer_offsets", "__share_group_state"
HIGH = 2**62


def everything(limit: GroupLimit) -> Commits:
    store, currents = CommitStore(), {}
    for partition, data in segments(OFFSETS).items():
        store.take("a", replayed(OFFSETS, partition, data, limit).changes(0))
        currents[OFFSETS, partition] = Current("a", HIGH)
    for partition, data in segments(SHARE).items():
        store.take("a", replayed(SHARE, partition, data, GroupLimit(100)).changes(0))
        currents[SHARE, partition] = Current("a", HIGH)
    return store.table(currents)


def test_a_log_is_replayed_up_to_the_offset_behind_its_last_record() -> None:
    for topic in (OFFSETS, SHARE):
        for partition, data in segments(topic).items():
            last = max((int(offset) for line in dumped(topic, partition) for offset in re.findall(r"lastOffset: (\d+)", line)), default=-1)
            if last >= 0:
                assert replayed(topic, partition, data, GroupLimit(100)).upto == last + 1


def test_the_offsets_are_those_of_kafka_consumer_groups() -> None:
    found = everything(GroupLimit(100))
    assert {key: offset for key, offset in reported(found).items() if key[1]} == {
        (short_name(group), topic, partition): offset for group, topic, partition, offset in stated("commits")
    }
    assert [log.unreadable for log in found.logs] == [0] * 5


def test_types_and_protocols_are_those_of_kafka_groups() -> None:
    found = everything(GroupLimit(100)).groups
    assert {(name, one.type, one.protocol) for name, one in found.items()} == {
        (short_name(name), kind, protocol) for name, kind, protocol in stated("groups")
    }


def test_states_and_members_are_those_that_kafka_describes() -> None:
    found = everything(GroupLimit(100)).groups
    assert {(name, one.state, one.members) for name, one in found.items()} == {
        (short_name(name), state, members) for name, state, members in stated("states")
    }
    assert (found["newer"].clients, found["newer"].hosts) in ((("c-1", "c-2"), ("/127.0.0.1",) * 2), (("c-2", "c-1"), ("/127.0.0.1",) * 2))
    assert [found[name].topics for name in ("newer", "classic", "sharing", "simple")] == [("orders",), ("orders",), ("shared",), ()]
    assert (found["newer"].state, found["newer"].state_ms) == ("Stable", -1), "only of an empty one is stored since when"
    assert found["classic"].state_ms > 1_700_000_000_000


def test_what_share_groups_have_left_is_what_kafka_share_groups_shows() -> None:
    rows, end = everything(GroupLimit(100)).rows, 100
    found = [
        ("sharing", partition, offset, end - offset - delivered)
        for partition, offset, delivered, share in zip(
            rows.partition.tolist(), rows.offset.tolist(), rows.delivered.tolist(), rows.share.tolist(), strict=True
        )
        if share
    ]
    assert sorted(found) == [(group, partition, start, lag) for group, _, partition, start, lag in stated("share")]
    counted = [sum(last - first + 1 for first, last in pairs(ranges)) for ranges in rows.done[rows.share]]
    assert counted == rows.delivered[rows.share].tolist(), "what is done is as much as the broker has counted"
    assert sum(counted) > 0


def test_the_limit_holds_for_all_logs_together() -> None:
    limit = GroupLimit(3)
    found = everything(limit)
    assert limit.used == 3
    assert sum(log.omitted for log in found.logs if log.topic == OFFSETS) == 9  # the one that was deleted no longer counts
    assert len({name for name, _, _ in reported(found) if name != "sharing"}) <= 3


def test_what_was_cleaned_is_passed_over() -> None:
    for topic in (OFFSETS, SHARE):
        log = replayed(topic, 0, segments(topic)[0], GroupLimit(100))
        before = log.upto
        log.advance(before + 10)
        log.advance(3)
        assert log.upto == before + 10
