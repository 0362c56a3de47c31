"""What a job makes of what agents say of coordinators' logs."""

from dataclasses import replace

import numpy as np
import pytest

from streaming.common.log_key import LogKey
from streaming.kafka.formats.names import SHARE_STATE_TOPIC
from streaming.kafka.groups.commit_log import CommitLog
from streaming.kafka.groups.commit_store import CommitStore
from streaming.kafka.groups.commit_table import Commits, Current
from streaming.kafka.groups.followed_groups import GroupLimit
from streaming.kafka.groups.group_rows import COMMITS, GROUPS, NOT_REPLICATED, PENDING, REMOVED, GroupChanges, batch_of
from streaming.kafka.scan.group_records import EndMarker
from tests.groups.test_commit_log import commit, new_log, replay

TOPIC = "__consumer_offsets"
LOG = (TOPIC, 3)


def at(high_watermark: int, agent: str = "a", log: tuple[str, int] = LOG) -> dict[tuple[str, int], Current]:
    return {log: Current(agent, high_watermark)}


def reported(commits: Commits) -> dict[tuple[str, str, int], int]:
    rows = commits.rows
    return {
        (rows.group_names[group], rows.topic_names[topic], partition): offset
        for group, topic, partition, offset in zip(
            rows.group.tolist(), rows.topic.tolist(), rows.partition.tolist(), rows.offset.tolist(), strict=True
        )
    }


def changes(log: CommitLog, store: CommitStore, agent: str = "a") -> GroupChanges:
    edition, version = store.version(agent, (log.log.topic, log.log.partition))
    return log.changes(version if edition == log.edition else 0)


def test_what_is_above_the_high_watermark_waits() -> None:
    log, store = replay(new_log(), commit(0, 10), commit(1, 20, partition=1)), CommitStore()
    store.take("a", changes(log, store))
    assert reported(store.table(at(1))) == {("g", "t", 0): 10, ("g", "t", 1): NOT_REPLICATED}
    replay(log, commit(2, 11), commit(3, None, partition=1))
    store.take("a", changes(log, store))
    assert reported(store.table(at(2))) == {("g", "t", 0): 10, ("g", "t", 1): 20}
    found = store.table(at(4))
    assert reported(found) == {("g", "t", 0): 11}
    assert (found.logs[0].waiting, found.logs[0].complete, found.logs[0].observed) == (0, True, True)
    assert not store.table(at(9)).logs[0].complete


def test_of_several_replicas_that_one_agent_has_that_of_the_leading_broker_counts() -> None:
    """The log dirs of several brokers may be on one host; one of them may be down."""
    ahead, stale, store = replay(new_log(), commit(0, 10), commit(1, 11)), replay(new_log(), commit(0, 10)), CommitStore()
    for broker, log in ((7, ahead), (8, stale)):
        store.take("a", replace(log.changes(0), broker=broker))
    assert reported(store.table({LOG: Current("a", 2, 7)})) == {("g", "t", 0): 11}
    followed = store.table({LOG: Current("a", 2, 8)})
    assert (reported(followed), followed.logs[0].broker, followed.logs[0].complete) == ({("g", "t", 0): 10}, 8, False)
    before = ahead.version
    store.take("a", replace(replay(ahead, commit(2, 12)).changes(before), broker=7))
    assert reported(store.table({LOG: Current("a", 3, 7)})) == {("g", "t", 0): 12}


def test_columns_are_the_same_objects_while_nothing_changes() -> None:
    log, store = replay(new_log(), commit(0, 10)), CommitStore()
    store.take("a", changes(log, store))
    first = store.table(at(1))
    store.take("a", changes(log, store))
    second = store.table(at(2))
    assert second.rows is first.rows
    assert second.groups is first.groups
    replay(log, commit(1, 11))
    store.take("a", changes(log, store))
    third = store.table(at(2))
    assert (first.rows.offset.tolist(), third.rows.offset.tolist()) == ([10], [11])
    assert first.rows.key.tolist() == third.rows.key.tolist()


def test_the_current_replica_counts_and_of_a_log_without_one_the_last_that_is_known() -> None:
    ahead, behind, store = replay(new_log(), commit(0, 10), commit(1, 11)), replay(new_log(), commit(0, 10)), CommitStore()
    store.take("a", changes(ahead, store))
    store.take("b", changes(behind, store, "b"))
    assert reported(store.table(at(2, "a"))) == {("g", "t", 0): 11}
    followed = store.table(at(2, "b"))
    assert (reported(followed), followed.logs[0].complete) == ({("g", "t", 0): 10}, False)
    unknown = store.table({})
    assert reported(unknown) == {("g", "t", 0): 11}
    assert (unknown.logs[0].observed, unknown.logs[0].agent, unknown.logs[0].high_watermark) == (False, "a", -1)
    of_another_agent = store.table(at(2, "c"))
    assert not of_another_agent.logs[0].observed
    store.forget("a", [LOG])
    assert len(store.table({}).rows) == 1
    store.forget("a")
    store.forget("b")
    assert len(store.table({}).rows) == 0


def test_another_edition_replaces_what_was_known() -> None:
    store = CommitStore()
    store.take("a", changes(replay(new_log(), commit(0, 10), commit(1, 5, group="h")), store))
    store.table(at(9))
    again = CommitLog(LogKey(1, TOPIC, 3, ""), "e2", GroupLimit(9))
    store.take("a", changes(replay(again, commit(0, 10)), store))
    assert reported(store.table(at(9))) == {("g", "t", 0): 10}


def test_pending_commits_below_the_high_watermark() -> None:
    log, store = replay(new_log(), commit(0, 10, producer=7), commit(1, 11, producer=8)), CommitStore()
    store.take("a", changes(log, store))
    assert [one.producer_id for one in store.table(at(1)).pending] == [7]
    replay(log, EndMarker(2, 7, True))
    store.take("a", changes(log, store))
    found = store.table(at(3))
    assert ([one.producer_id for one in found.pending], reported(found)) == ([8], {("g", "t", 0): 10})


def test_a_commit_is_pending_until_the_marker_of_its_transaction_is_below_the_high_watermark() -> None:
    log, store = replay(new_log(), commit(0, 10), commit(1, 20, producer=7), commit(2, 30, producer=8)), CommitStore()
    store.take("a", changes(log, store))
    replay(log, EndMarker(3, 7, True), EndMarker(4, 8, False), commit(5, 40, producer=7))
    store.take("a", changes(log, store))
    for high_watermark, pending, offset in ((2, [7], 10), (3, [7, 8], 10), (6, [7], 20)):
        found = store.table(at(high_watermark))
        assert ([one.producer_id for one in found.pending], reported(found)) == (pending, {("g", "t", 0): offset})
    assert [one.offset for one in found.pending] == [40]


@pytest.mark.parametrize("partition", [-1, -(2**31), 2**31 - 1])
def test_any_partition_is_reported_as_it_is(partition: int) -> None:
    log, store = replay(new_log(), commit(0, 10, partition=partition), commit(1, 11, partition=0)), CommitStore()
    store.take("a", changes(log, store))
    assert reported(store.table(at(2))) == {("g", "t", partition): 10, ("g", "t", 0): 11}


def share_changes(*rows: tuple[str, str, int, int]) -> GroupChanges:
    count = len(rows)
    commits = batch_of(
        COMMITS,
        group=[group for group, _, _, _ in rows],
        topic=[""] * count,
        topic_id=[topic_id for _, topic_id, _, _ in rows],
        partition=[partition for _, _, partition, _ in rows],
        coordinator=[0] * count,
        offset=[offset for _, _, _, offset in rows],
        effective_offset=range(count),
        share=[True] * count,
        done=[(7, 8)] * count,
        **{name: [-1] * count for name in ("commit_ms", "expire_ms", "record_offset", "delivered")},
    )
    return GroupChanges(
        broker=1,
        topic=SHARE_STATE_TOPIC,
        topic_id="",
        coordinator=0,
        edition="s",
        version=1,
        whole=True,
        upto=count,
        commits=commits,
        pending=batch_of(PENDING),
        groups=batch_of(GROUPS),
    )


def test_rows_of_share_groups_are_distinguished_by_topic_id() -> None:
    log, store = replay(new_log(), commit(0, 10)), CommitStore()
    store.take("a", changes(log, store))
    store.take("a", share_changes(("g", "id1", 0, 5), ("g", "id2", 0, 6)))
    rows = store.table({**at(9), (SHARE_STATE_TOPIC, 0): Current("a", 9)}).rows
    assert sorted(
        (rows.topic_names[topic], rows.topic_ids[number], share, offset)
        for topic, number, share, offset in zip(
            rows.topic.tolist(), rows.topic_id.tolist(), rows.share.tolist(), rows.offset.tolist(), strict=True
        )
    ) == [("", "id1", True, 5), ("", "id2", True, 6), ("t", "", False, 10)]


def test_what_waits_is_bounded_while_no_high_watermark_is_known() -> None:
    log, store = new_log(), CommitStore()
    for number in range(300):
        replay(log, commit(number, number))
        store.take("a", changes(log, store))
    assert store.table({}).logs[0].waiting < 200
    assert reported(store.table(at(300))) == {("g", "t", 0): 299}


def test_of_a_key_that_is_reported_twice_the_last_counts() -> None:
    store = CommitStore()
    store.take("a", share_changes(("g", "id", 0, 5), ("g", "id", 0, 6)))
    rows = store.table({(SHARE_STATE_TOPIC, 0): Current("a", 9)}).rows
    assert rows.offset.tolist() == [6]
    assert np.all(np.diff(rows.key) > 0)


def test_a_removal_of_what_is_not_known_is_nothing() -> None:
    store = CommitStore()
    store.take("a", share_changes(("g", "id", 0, REMOVED)))
    assert len(store.table({(SHARE_STATE_TOPIC, 0): Current("a", 9)}).rows) == 0
    store.take("a", replace(share_changes(("g", "id", 0, 7)), whole=False, version=2))
    assert len(store.table({(SHARE_STATE_TOPIC, 0): Current("a", 9)}).rows) == 1


def test_names_of_groups_that_are_gone_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streaming.kafka.groups.commit_store._FEW_PAIRS", 50)
    log, store = replay(new_log(1000), commit(0, 7, group="stays"), commit(1, 8, group="a")), CommitStore()
    store.take("a", changes(log, store))
    first = store.table(at(10**6)).rows
    for number in range(300):
        replay(log, commit(log.upto, 1, group=f"console-{number}"), commit(log.upto + 1, None, group=f"console-{number}"))
        replay(log, commit(log.upto, 2, group=f"open-{number}", producer=5))
        replay(log, EndMarker(log.upto, 5, False))
        replay(log, commit(log.upto, number, group="last"))
        store.take("a", changes(log, store))
        found = store.table(at(log.upto - 1))
        assert len(found.rows.group_names) < 200
        assert np.all(np.diff(found.rows.key) > 0)
    assert reported(store.table(at(log.upto))) == {("stays", "t", 0): 7, ("a", "t", 0): 8, ("last", "t", 0): 299}
    assert set(first.key[:2].tolist()) < set(found.rows.key.tolist())
    assert len(log.changes(0).commits) < 100


def test_of_a_log_without_a_current_replica_the_one_that_was_read_furthest_counts_whoever_sent_first() -> None:
    ahead, behind, store = replay(new_log(), commit(0, 10), commit(1, 11)), replay(new_log(), commit(0, 10)), CommitStore()
    store.take("b", changes(behind, store, "b"))
    store.take("a", changes(ahead, store))
    for current in ({}, at(2, "gone")):
        store.table(at(2))  # until then what it has sent waits
        (log,) = store.table(current).logs
        assert (log.agent, log.upto, log.observed, log.high_watermark) == ("a", 2, False, -1)


def test_of_an_agent_all_is_forgotten_but_the_logs_that_it_still_has() -> None:
    store, log = CommitStore(), replay(new_log(), commit(0, 10))
    for agent in ("a", "b"):
        store.take(agent, log.changes(0))
        store.take(agent, replace(log.changes(0), coordinator=4))
    store.forget("a", {LOG})
    assert [store.version(agent, (TOPIC, partition)) for agent in ("a", "b") for partition in (3, 4)] == [
        ("e1", 1),
        ("", 0),
        ("e1", 1),
        ("e1", 1),
    ]


def test_what_is_not_understood_or_left_out_of_a_log_is_counted_apart() -> None:
    store = CommitStore()
    store.take("a", replace(replay(new_log(), commit(0, 10)).changes(0), unreadable=2, omitted=3))
    (log,) = store.table(at(1)).logs
    assert (log.unreadable, log.omitted) == (2, 3)


def states(commits: Commits) -> dict[str, tuple[str, int]]:
    return {name: (group.state, group.members) for name, group in commits.groups.items()}


WAITS = ("Unknown", NOT_REPLICATED)


def test_a_group_counts_from_the_high_watermark_on_and_what_was_sent_before_waits_with_what_comes() -> None:
    log, store = replay(new_log(), commit(0, 10), commit(1, 20, group="h")), CommitStore()
    store.take("a", changes(log, store))
    replay(log, commit(2, 30, group="i"))
    store.take("a", changes(log, store))
    empty = ("Empty", 0)
    assert [states(store.table(at(high_watermark))) for high_watermark in (0, 1, 2, 3)] == [
        {"g": WAITS, "h": WAITS, "i": WAITS},
        {"g": empty, "h": WAITS, "i": WAITS},
        {"g": empty, "h": empty, "i": WAITS},
        {"g": empty, "h": empty, "i": empty},
    ]


def test_the_newest_commit_below_the_high_watermark_counts_whatever_is_above_it() -> None:
    log, store = new_log(), CommitStore()
    for number in range(40):
        replay(log, commit(number, 100 + number, partition=number % 2))
        store.take("a", changes(log, store))
    for high_watermark in (7, 8, 20, 33, 40):
        newest = [high_watermark - 1 - (high_watermark - 1 - partition) % 2 for partition in (0, 1)]
        assert reported(store.table(at(high_watermark))) == {("g", "t", each % 2): 100 + each for each in newest}


def test_a_tombstone_above_the_high_watermark_deletes_nothing_yet() -> None:
    log, store = replay(new_log(), commit(0, 10)), CommitStore()
    store.take("a", changes(log, store))
    replay(log, commit(1, None))
    store.take("a", changes(log, store))
    assert [reported(store.table(at(high_watermark))) for high_watermark in (1, 2)] == [{("g", "t", 0): 10}, {}]


def test_of_a_log_that_was_read_anew_what_is_above_the_high_watermark_is_not_known_nor_what_was_before_it() -> None:
    """An agent that was started again sends the newest commits alone, and so the tombstone of what may count still."""
    log, store = replay(new_log(), commit(0, 10), commit(1, 20, partition=1), commit(2, 11), commit(3, None, partition=1)), CommitStore()
    store.take("a", changes(log, store))
    assert reported(store.table(at(2))) == {("g", "t", 0): NOT_REPLICATED, ("g", "t", 1): NOT_REPLICATED}
    replay(log, commit(4, 12))
    store.take("a", changes(log, store))
    assert reported(store.table(at(2))) == {("g", "t", 0): NOT_REPLICATED, ("g", "t", 1): NOT_REPLICATED}
    assert reported(store.table(at(3))) == {("g", "t", 0): 11, ("g", "t", 1): NOT_REPLICATED}
    assert reported(store.table(at(4))) == {("g", "t", 0): 11}
    assert reported(store.table(at(5))) == {("g", "t", 0): 12}


def test_what_was_left_out_because_too_much_waits_makes_a_doubt_and_no_older_answer() -> None:
    log, store = replay(new_log(), commit(0, 10), commit(1, 20, partition=1)), CommitStore()
    store.take("a", changes(log, store))
    assert len(store.table(at(2)).rows) == 2
    for number in range(2, 100):
        replay(log, commit(number, number))
        store.take("a", changes(log, store))
    assert reported(store.table(at(2))) == {("g", "t", 0): 10, ("g", "t", 1): 20}
    assert reported(store.table(at(50))) == {("g", "t", 0): NOT_REPLICATED, ("g", "t", 1): 20}
    assert reported(store.table(at(100))) == {("g", "t", 0): 99, ("g", "t", 1): 20}


def test_a_log_whose_reader_is_too_far_behind_loses_nothing_that_counts() -> None:
    """Who missed deletions that are forgotten gets everything: nothing of it shows when the rest was removed."""
    log, store = replay(new_log(1000), commit(0, 10), commit(1, 11, group="h"), commit(2, 12, group="i")), CommitStore()
    store.take("a", changes(log, store))
    store.table(at(3))
    replay(log, commit(3, 13, group="h"), commit(4, None, group="i"))
    for number in range(200):
        replay(log, commit(log.upto, 1, group=f"console-{number}"), commit(log.upto + 1, None, group=f"console-{number}"))
    assert changes(log, store).whole
    store.take("a", changes(log, store))
    assert reported(store.table(at(3))) == {("g", "t", 0): 10, ("h", "t", 0): 11, ("i", "t", 0): 12}
    assert reported(store.table(at(log.upto))) == {("g", "t", 0): 10, ("h", "t", 0): 13}


def test_of_a_log_without_any_high_watermark_groups_are_known_and_their_offsets_are_not() -> None:
    log, store = replay(new_log(), commit(0, 10), commit(1, 20, partition=1), commit(2, None, partition=1)), CommitStore()
    store.take("a", changes(log, store))
    found = store.table({})
    assert (reported(found), states(found)) == ({("g", "t", 0): NOT_REPLICATED}, {"g": WAITS})


def test_what_counts_is_not_known_below_a_high_watermark_of_long_ago() -> None:
    """A broker that starts has the high watermarks of its end, and the others have gone on. The times of commits show that."""
    log, store = (
        replay(new_log(), commit(0, 10), commit(1, 20, partition=1), commit(2, 30, partition=2), commit(3, 40, partition=3)),
        CommitStore(),
    )
    store.take("a", changes(log, store))
    before = {("g", "t", 0): 10, ("g", "t", 1): 20, ("g", "t", 2): 30, ("g", "t", 3): 40}
    assert reported(store.table(at(4))) == before
    for number, (offset, partition) in enumerate([(1_000, 0), (1_001, 1), (8_999, 0)], 4):
        replay(log, commit(number, offset, partition=partition))
        store.take("a", changes(log, store))
    replay(log, commit(7, None, partition=2))
    store.take("a", changes(log, store))
    assert reported(store.table(at(4))) == before
    replay(log, commit(8, 9_001))
    store.take("a", changes(log, store))
    unknown = dict.fromkeys([("g", "t", 0), ("g", "t", 1), ("g", "t", 2)], NOT_REPLICATED)
    assert reported(store.table(at(4))) == before | unknown
    assert reported(store.table(at(7))) == before | unknown | {("g", "t", 0): 8_999, ("g", "t", 1): 1_001}
    assert reported(store.table(at(9))) == {("g", "t", 0): 9_001, ("g", "t", 1): 1_001, ("g", "t", 3): 40}


def test_a_transaction_that_was_open_for_long_makes_no_high_watermark_old() -> None:
    log, store = replay(new_log(), commit(0, 10), commit(1, 11, producer=7)), CommitStore()
    store.take("a", changes(log, store))
    replay(log, EndMarker(2, 7, True), commit(3, 60_000, partition=1))
    store.take("a", changes(log, store))
    assert reported(store.table(at(2)))["g", "t", 0] == 10


def test_how_old_a_high_watermark_is_stays_known_though_much_waits() -> None:
    log, store = replay(new_log(), commit(0, 10)), CommitStore()
    store.take("a", changes(log, store))
    store.table(at(1))
    for number in range(1, 100):
        replay(log, commit(number, 200 * number))
        store.take("a", changes(log, store))
    assert reported(store.table(at(1))) == {("g", "t", 0): NOT_REPLICATED}
