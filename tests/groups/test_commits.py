"""Commits in a coordinator's log, replayed as the coordinator does it, and what a job makes of what agents send of them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.kafka.formats.names import SHARE_STATE_TOPIC
from streaming.kafka.groups import log_replay
from streaming.kafka.groups.commit_store import CommitStore
from streaming.kafka.groups.commit_table import Commits, Current
from streaming.kafka.groups.group_rows import COMMITS, GROUPS, NOT_REPLICATED, PENDING, REMOVED, GroupChanges, batch_of
from streaming.kafka.groups.log_replay import GroupLimit
from streaming.kafka.scan.group_records import Commit, GroupRecords
from tests.groups.coordinator import LOG as LOG_KEY
from tests.groups.coordinator import Log, record
from tests.groups.coordinator_model import Coordinator, Counted, History, Key, compactions, histories
from tests.groups.logs import reported
from tests.tables import each_row

TOPIC = "__consumer_offsets"
LOG = (TOPIC, LOG_KEY.partition)
SHARED = (SHARE_STATE_TOPIC, 0)
WAITS = NOT_REPLICATED


def log_of(history: History) -> Log:
    log = Log()
    for one in history:
        log.take(one)
    return log


def counted(known: dict[Key, Counted], changes: GroupChanges) -> dict[Key, Counted]:
    """What a reader knows after some changes."""
    known = {} if changes.whole else dict(known)
    for row in changes.commits.to_pylist():
        assert (row["coordinator"], row["share"], row["delivered"], row["done"]) == (LOG_KEY.partition, False, 0, None)
        known.pop(key := (row["group"], row["topic"], row["partition"]), None)
        if row["offset"] != REMOVED:
            known[key] = tuple(row[name] for name in ("offset", "topic_id", "commit_ms", "expire_ms", "record_offset", "effective_offset"))  # type: ignore[assignment]
    return known


def pending(log: Log) -> set[tuple[int, Key, int]]:
    rows: list[Any] = log.replay.changes(0).pending.to_pylist()
    return {(row["producer_id"], (row["group"], row["topic"], row["partition"]), row["offset"]) for row in rows}


@given(histories(), st.sets(st.integers(0, 40)))
def test_the_log_is_replayed_as_the_coordinator_does_it(history: History, cuts: set[int]) -> None:
    log, begin = Log(), 0
    for end in [*sorted(cut for cut in cuts if cut < len(history)), len(history)]:
        log.replay.replay(GroupRecords(history[begin:end], 0), end)
        begin = end
    expected = Coordinator.of(history)
    assert counted({}, log.replay.changes(0)) == expected.offsets
    assert (pending(log), log.replay.upto) == (expected.waiting, len(history))
    for group, topic, partition in ("g", "t", 0), ("h", "u", 1):
        assert log.replay.committed(group, topic, partition) == expected.reported.get((group, topic, partition), REMOVED)
    used = {key[0] for key in expected.offsets} | {key[0] for _, key, _ in expected.waiting}
    assert (log.limit.used, log.replay.groups) == (len(used), len(used))
    log.replay.close()
    assert log.limit.used == 0


@given(histories(), st.sets(st.integers(0, 40)))
def test_changes_one_after_the_other_are_the_whole(history: History, looks: set[int]) -> None:
    log, known, version = Log(), dict[Key, Counted](), 0
    for at, one in enumerate(history):
        log.take(one)
        if at in looks or at == len(history) - 1:
            changes = log.replay.changes(version)
            known, version = counted(known, changes), changes.version
            assert known == Coordinator.of(history[: at + 1]).offsets
            assert not log.commits(version)


@given(compactions())
def test_a_compacted_log_shows_the_same(both: tuple[History, History]) -> None:
    history, left = both
    whole, log = Coordinator.of(history), log_of(left)
    assert {key: value[:5] for key, value in counted({}, log.replay.changes(0)).items()} == {
        key: value[:5] for key, value in whole.offsets.items()
    }
    assert pending(log) == whole.waiting == set()


def test_what_is_left_out_and_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log("10 11")
    log.replay.replay(GroupRecords((record("10", 0),), 1), 1)  # replayed before
    assert (log.offsets(), log.replay.upto, log.replay.unreadable) == ({("g", 0): (11, 1)}, 2, 1)
    assert Log("~").replay.version == 0
    for number in range(100):
        log.play(f"1/{number} 2/{1000 + number}^5")
    seen = log.replay.version
    for number in range(100):
        log.play(f"~/{number}")
    assert log.replay.changes(seen).whole
    assert (len(log.commits(seen)) < 40, len(pending(log))) == (True, 100)
    log.play("+5")
    assert sum(offset == 2 for offset, _ in log.offsets().values()) == 100


def test_groups_beyond_the_limit_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = GroupLimit(1)
    log, other = Log("1 h:2 h:3 i:4^9", limit=limit), Log("x:1", limit=limit)
    assert (log.replay.omitted, other.replay.omitted, limit.used, log.offsets()) == (2, 1, 1, {("g", 0): (1, 0)})
    version = log.replay.version
    assert (log.play("h:5").replay.version, log.replay.upto) == (version, 5)
    log.play("~ h:9 j:1")
    assert log.offsets() == {("g", 0): (REMOVED, 5), ("j", 0): (1, 7)}  # of h it does not have all commits
    assert Log("1 2 ~").limit.used == 0  # the first record of a log takes room once
    limit = GroupLimit(1)
    log = Log("1 ~", limit=limit)
    Log("x:1", limit=limit)
    assert (log.play("3").offsets(), limit.used, log.replay.omitted) == ({("g", 0): (REMOVED, 1)}, 1, 1)  # it needs room again
    monkeypatch.setattr(log_replay, "MOST_REMEMBERED", 2)
    log = Log("1 a:1 b:1 ~ c:1", most=1)  # no more can be distinguished
    assert (log.limit.used, log.replay.omitted, log.offsets()) == (0, 2, {("g", 0): (REMOVED, 3)})
    log, other = Log("1 h:1 h:1/1", most=9), Log("x:1 y:1", most=9)
    assert log.limit.beside(2).most == 9
    log.replay.replace(other.replay)
    assert (log.limit.used, other.limit.used) == (2, 2)


class Job:
    """A store that takes what changed in a log, as an agent is asked for it."""

    def __init__(self) -> None:
        self.store, self.log = CommitStore(), Log(most=10_000)

    def take(self, words: str = "", agent: str = "a", log: Log | None = None, **others: Any) -> "Job":
        log = log or self.log
        log.play(words)
        edition, version = self.store.version(agent, LOG)
        changes = log.replay.changes(version if edition == log.replay.edition else 0)
        self.store.take(agent, replace(changes, **others))
        return self

    def table(self, high_watermark: int | None = None, agent: str = "a", broker: int = -1) -> Commits:
        return self.store.table({} if high_watermark is None else {LOG: Current(agent, high_watermark, broker)})

    def at(self, high_watermark: int | None = None, agent: str = "a", broker: int = -1) -> dict[int, int]:
        """What counts in the partitions of topic t, of group g."""
        return {key[2]: offset for key, offset in reported(self.table(high_watermark, agent, broker)).items()}


FOUR = {0: 10, 1: 20, 2: 30, 3: 40}
LATER = "10 20/1 | " + "".join(f"{number} | " for number in range(2, 100))


@each_row(
    ("why", "script", "expected"),
    [
        ("what is above it waits", "10 20/1 :1 | 11 ~/1 :2 :4", [{0: 10, 1: WAITS}, {0: 10, 1: 20}, {0: 11}]),
        ("a tombstone above it deletes nothing yet", "10 :0 | ~ :1 :2", [{0: WAITS}, {0: 10}, {}]),
        ("the newest below it", f"{'1 | 2/1 | ' * 9}3 :18 :19", [{0: 1, 1: 2}, {0: 3, 1: 2}]),
        ("without any", "10 20/1 ~/1 :", [{0: WAITS}]),
        (
            "read anew: nobody knows what was before",
            "10 20/1 11 ~/1 :2 | 12 :2 :3 :4",
            [dict.fromkeys((0, 1), WAITS)] * 2 + [{0: 11, 1: WAITS}, {0: 11}],
        ),
        ("any partition", "1/-1 2/2147483647 3/-2147483648 :3", [{-1: 1, 2**31 - 1: 2, -(2**31): 3}]),
        ("too much waits", "10 20/1 :2 | " + LATER[10:] + ":2 :50 :100", [{0: 10, 1: 20}] * 2 + [{0: WAITS, 1: 20}, {0: 99, 1: 20}]),
        ("8 s old, by the times of commits", "10 20/1 30/2 40/3 :4 | 50@2000 | 51/1@2001 | 52@10000 ~/2 :4", [FOUR, FOUR]),
        ("older", "10 20/1 30/2 40/3 :4 | 50@2000 51/1@2001 | 52@10001 ~/2 :4", [FOUR, {**dict.fromkeys(range(3), WAITS), 3: 40}]),
        ("a transaction that was open for long", "10 11^7 :2 | +7 9/1@60000 :2", [{0: 10}, {0: 10, 1: WAITS}]),
        ("old though much waits", "10 :1 | " + "".join(f"1@{200 * at} | " for at in range(5, 105)) + ":1", [{0: 10}, {0: WAITS}]),
    ],
)
def test_what_counts_at_a_high_watermark(why: str, script: str, expected: list[dict[int, int]]) -> None:
    """A script in which an agent answers at each bar; after a colon the high watermark at which the job looks."""
    job, found = Job(), []
    for part in script.split("|"):
        words, *looks = part.split(":")
        job.take(words)
        found += [job.at(int(each) if each.strip() else None) for each in looks]
    assert found == expected, why


@given(histories(), st.lists(st.integers(0, 5), max_size=41))
def test_the_store_shows_what_is_below_the_high_watermark(history: History, lags: list[int]) -> None:
    job, high = Job(), 0
    for at, one in enumerate(history):
        job.log.take(one)
        job.take()
        high = max(high, at + 1 - (lags[at] if at < len(lags) else 0))
        then, found = Coordinator.of(history[:high]), job.table(high)
        stated = reported(found)
        waiting = {key for key, offset in stated.items() if offset == NOT_REPLICATED}
        assert {key: offset for key, offset in stated.items() if key not in waiting} == then.reported
        above = {(each.group, each.topic, each.partition) for each in history[high : at + 1] if isinstance(each, Commit)}
        assert waiting <= above | {key for _, key, _ in then.waiting}
        assert {(each.producer_id, (each.group, each.topic, each.partition), each.offset) for each in found.pending} == then.waiting
        (log,) = found.logs
        assert (log.observed, log.complete, log.high_watermark, log.upto) == (True, True, high, at + 1)
    assert reported(job.table(len(history))) == Coordinator.of(history).reported


@given(histories(), histories(), st.integers(0, 40))
def test_after_a_truncation_the_new_edition_counts_alone(first: History, second: History, kept: int) -> None:
    job, cut = Job(), min(kept, len(first))
    job.take(log=log_of(first)).table(len(first))
    history = (*first[:cut], *(one for one in second if one.record_offset >= cut))
    again = log_of(history)
    again.replay.edition = "e2"
    assert reported(job.take(log=again).table(1000)) == Coordinator.of(history).reported


def test_a_commit_is_pending_until_its_marker_is_below_the_high_watermark() -> None:
    job = Job().take("10 20^7 30^8").take("+7 -8 40^7")
    for high_watermark, producers, offset in ((2, [7], 10), (3, [7, 8], 10), (6, [7], 20)):
        found = job.table(high_watermark)
        assert ([one.producer_id for one in found.pending], reported(found)) == (producers, {("g", "t", 0): offset})
    assert [one.offset for one in found.pending] == [40]


def test_which_replica_counts() -> None:
    """The current one; of a log without one that which was read furthest. The log dirs of several brokers may be on one host."""
    job, ahead, behind = Job(), Log("10 11"), Log("10")
    for agent, log in (("b", behind), ("a", ahead)):
        job.take(agent=agent, log=log)
    assert ([job.at(2, agent)[0] for agent in "ab"], job.table(2, "b").logs[0].complete) == ([11, 10], False)
    for current in ((), (2, "gone")):
        (seen,) = job.table(*current).logs
        assert (seen.agent, seen.upto, seen.observed, seen.high_watermark, job.at(*current)) == ("a", 2, False, -1, {0: 11})
    job.store.forget("a", [LOG])
    assert len(job.table().rows) == 1
    job.store.forget("a")
    assert job.at() == {0: 10}
    job.store.forget("b")
    assert job.at() == {}
    for broker, log in ((7, ahead), (8, behind)):
        job.store.take("a", replace(log.replay.changes(0), broker=broker, unreadable=2, omitted=3))
    assert (job.at(2, broker=7), job.at(2, broker=8), job.table(2, broker=8).logs[0].broker) == ({0: 11}, {0: 10}, 8)
    assert [(log.unreadable, log.omitted) for log in job.table(2).logs] == [(2, 3)]
    job.store.take("b", replace(behind.replay.changes(0), coordinator=4))
    job.store.forget("a", {(TOPIC, 4)})
    assert [job.store.version(agent, (TOPIC, each)) for agent in "ab" for each in (3, 4)] == [("", 0), ("", 0), ("", 0), ("e1", 1)]
    assert (job.store.has_group("g", without="x"), job.store.has_group("g", without=TOPIC), job.store.has_group("h", without="x")) == (
        True,
        False,
        False,
    )


def test_columns_are_the_same_objects_while_nothing_changes() -> None:
    job = Job().take("10")
    first, second = job.table(1), job.take().table(2)
    assert (second.rows is first.rows, second.groups is first.groups) == (True, True)
    third = job.take("11").table(2)
    assert (first.rows.offset.tolist(), third.rows.offset.tolist()) == ([10], [11])
    assert first.rows.key.tolist() == third.rows.key.tolist()


def states(commits: Commits) -> Mapping[str, tuple[str, int]]:
    return {name: (group.state, group.members) for name, group in commits.groups.items()}


def test_a_group_counts_from_the_high_watermark_on() -> None:
    job, waits, empty = Job().take("10 h:20").take("i:30"), ("Unknown", NOT_REPLICATED), ("Empty", 0)
    for high_watermark in range(4):
        known = "ghi"[:high_watermark]
        assert states(job.table(high_watermark)) == {name: empty if name in known else waits for name in "ghi"}
    assert states(Job().take("10").table()) == {"g": waits}
    job = Job().take("G1(a) h:G1(a)")
    assert sorted(states(job.table(2))) == ["g", "h"]
    assert (sorted(states(job.take("h:G~").table(2))), sorted(states(job.table(3)))) == (["g", "h"], ["g"])


def test_a_log_whose_reader_is_too_far_behind_loses_nothing_that_counts() -> None:
    """Who missed deletions that are forgotten gets everything: nothing of it shows when the rest was removed."""
    job = Job().take("10 h:11 i:12")
    job.table(3)
    job.log.play("h:13 i:~" + " ".join(f" c{number}:1 c{number}:~" for number in range(200)))
    assert job.log.replay.changes(job.store.version("a", LOG)[1]).whole
    job.take()
    assert reported(job.table(3)) == {("g", "t", 0): 10, ("h", "t", 0): 11, ("i", "t", 0): 12}
    assert reported(job.table(job.log.replay.upto)) == {("g", "t", 0): 10, ("h", "t", 0): 13}
    assert {"g", "h", "i"} & {*job.table(job.log.replay.upto).groups} == {"g", "h"}


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job()
    for number in range(300):
        job.take(f"{number}@{1000 + number}")
    assert job.table().logs[0].waiting < 200
    assert job.at(300) == {0: 299}
    monkeypatch.setattr("streaming.kafka.groups.commit_store._FEW_PAIRS", 50)
    job = Job().take("stays:7 a:8")
    first = job.table(10**6).rows
    for number in range(100):
        job.take(f"c{number}:1 c{number}:~ o{number}:2^5 -5 last:{number}")
        found = job.table(job.log.replay.upto - 1)
        assert len(found.rows.group_names) < 150
        assert np.all(np.diff(found.rows.key) > 0)
    assert reported(job.table(job.log.replay.upto)) == {("stays", "t", 0): 7, ("a", "t", 0): 8, ("last", "t", 0): 99}
    assert set(first.key[:2].tolist()) < set(found.rows.key.tolist())
    assert len(job.log.commits()) < 100


def share_changes(*rows: tuple[str, int], **others: Any) -> GroupChanges:
    """Rows of group g: id of a topic, and offset."""
    count = len(rows)
    none = ("commit_ms", "expire_ms", "record_offset", "delivered", "leader_epoch", "former_ms", "resumed", "moved_ms", "presence")
    columns: dict[str, Any] = {name: [-1] * count for name in none}
    columns |= {"group": ["g"] * count, "topic": [""] * count, "topic_id": [each for each, _ in rows], "partition": [0] * count}
    columns |= {"coordinator": [0] * count, "offset": [each for _, each in rows], "effective_offset": range(count), "share": [True] * count}
    commits = batch_of(COMMITS, done=[(7, 8)] * count, **columns)
    values: dict[str, Any] = {"broker": 1, "topic": SHARE_STATE_TOPIC, "topic_id": "", "coordinator": 0, "edition": "s", "version": 1}
    values |= {"whole": True, "upto": count, "commits": commits, "pending": batch_of(PENDING), "groups": batch_of(GROUPS)}
    return GroupChanges(**values | others)


def test_rows_of_share_groups_are_distinguished_by_topic_id() -> None:
    job = Job().take("10")
    job.store.take("a", share_changes(("id1", 5), ("id2", 6), ("id2", 7)))
    rows = job.store.table({LOG: Current("a", 9), SHARED: Current("a", 9)}).rows
    assert np.all(np.diff(rows.key) > 0)
    columns = (each.tolist() for each in (rows.topic, rows.topic_id, rows.share, rows.offset, rows.done))
    found = [(rows.topic_names[topic], rows.topic_ids[each], *others) for topic, each, *others in zip(*columns, strict=True)]
    assert sorted(found) == [("", "id1", True, 5, (7, 8)), ("", "id2", True, 7, (7, 8)), ("t", "", False, 10, None)]
    job = Job()
    for changes, count in ((share_changes(("id", REMOVED)), 0), (share_changes(("id", 7), whole=False, version=2), 1)):
        job.store.take("a", changes)
        assert len(job.store.table({SHARED: Current("a", 9)}).rows) == count
