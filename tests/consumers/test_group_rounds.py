"""Rounds over consumer groups: what agents say of commits and positions, held against the table, and what a page shows of it."""

import threading
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.broker.protocol.group_messages import FollowedLog, Following, GroupsRequest, RecordsRequest
from streaming.broker.protocol.group_stream import GroupsAnswer, RecordsAnswer
from streaming.broker.protocol.problems import Reason as Problem
from streaming.cluster.consumers.group_ends import CHECKED_ROUNDS
from streaming.cluster.consumers.group_lag import REASONS, LagReason
from streaming.cluster.consumers.group_places import RETRIED_ROUNDS
from streaming.cluster.consumers.group_rounds import FIRST_ASKED, HEARD_SECONDS, KEPT_SECONDS, REFUSED_SECONDS
from streaming.cluster.consumers.group_snapshot import GroupSnapshot
from streaming.cluster.consumers.group_tracker import UNREAD_MS
from streaming.cluster.view.exported import RetentionResults
from streaming.errors import AgentError
from tests.consumers.group_agents import GROUP, WAITING, FakeAgent, Records
from tests.consumers.group_world import STOPPED_MS, TOPIC_ID, world
from tests.exposition.reading import named
from tests.limits import SECONDS
from tests.processes import until
from tests.tables import each_row


def reasons(snapshot: GroupSnapshot) -> list[str]:
    return ["" if code < 0 else str(REASONS[code]) for code in snapshot.found.lags.reason.tolist()]


def test_the_lag_of_a_group_is_on_the_page() -> None:
    job = world(kinds=["data", "aborted", "control", "data", "gone", "data", "data", "control", "data", "data"])
    job.agents["a1"].commit(2, commit_ms=900_000)
    job.agents["a1"].groups_ = [GROUP]
    job.round()
    found = job.page()
    assert found["group_lag_offsets{g,orders}"] == 8
    assert found["group_lag_records{g,read_committed,orders}"] == 5
    assert found["group_lag_records{g,read_uncommitted,orders}"] == 5
    assert found["group_lag_bytes{g,orders}"] == 700
    assert found["group_lag_seconds{record,g,orders}"] == 1000 - 3
    assert "group_lag_seconds{append,g,orders}" not in found
    assert found["group_last_commit_timestamp_seconds{g,orders}"] == 900
    assert found["group_members{g}"] == 2
    assert found["group_info{g,consumer,Consumer}"] == 1
    assert found["group_state{g,Stable}"] == 1
    assert found["group_pending_transactional_commits{g,orders}"] == 0
    assert found["group_partition_lag_records{g,read_committed,0,orders}"] == 5
    assert not [name for name in found if name.startswith("group_lag_unknown")]


def test_a_commit_counts_when_the_data_that_it_is_held_against_has_arrived() -> None:
    job = world()
    agent = job.agents["a1"]
    agent.commit(2)
    job.round()
    agent.commit(9)
    agent.seq = 2
    assert job.round(1).rows.offset.tolist() == [2]
    job.reach(seq=2)
    agent.commit(10)
    agent.seq = 3
    assert job.round(1).rows.offset.tolist() == [9]
    job.reach(seq=3)
    assert job.round(1).rows.offset.tolist() == [10]


def test_positions_are_asked_once_and_then_only_for_what_has_moved() -> None:
    job = world()
    agent = job.agents["a1"]
    agent.commit(2)
    agent.commit(4, partition=1)
    agent.logs["orders", 1] = Records(["data"] * 10)
    job.put("orders", 1, end=10)
    job.round()
    assert [set(asked) for asked in agent.asked] == [{("orders", 0, 10), ("orders", 1, 10)}, {("orders", 0, 2), ("orders", 1, 4)}]
    job.round(1)
    agent.asked.clear()
    agent.commit(3)
    job.round(1)
    assert [("orders", 0, 3)] in [[one for one in asked if one[2] < 10] for asked in agent.asked]


def test_the_records_of_logs_are_of_the_round_though_an_agent_needs_a_moment_for_them() -> None:
    class Slow(FakeAgent):
        def records(self, request: RecordsRequest | None = None) -> RecordsAnswer:
            threading.Event().wait(0.02)
            return super().records(request)

    job = world()
    key = {"broker": 1, "topic": "orders", "topic_id": "", "partition": 0, "log_start": 0, "next_offset": 10}
    job.agents["a1"] = Slow(logs=job.agents["a1"].logs, counted=[key | {"data": 9, "aborted": 2, "control": 1}])
    job.round()
    found = named(job.table, "segtail_partition_records")
    assert {dict(series)["kind"]: value for series, value in found.items()} == {"data": 9, "aborted": 2, "control": 1}


def test_an_answer_that_comes_a_round_later_still_says_where_a_commit_is() -> None:
    job = world()
    job.agents["a1"].commit(3)
    job.round()
    job.agents["a1"].commit(5)
    job.rounds.take_groups(job.agents, job.now)
    job.tracker.begin(job.rounds.view(job.now))
    (late,) = job.tracker.ask()
    job.tracker.begin(job.rounds.view(job.now))
    job.tracker.answer(late, job.agents["a1"].positions(late.asked))
    assert job.tracker.finish().found.lags.read_committed.tolist() == [5]
    job.tracker.begin(job.rounds.view(job.now))
    assert job.tracker.ask() == []


def test_a_log_that_was_compacted_is_counted_anew_in_the_same_round() -> None:
    job = world(kinds=["data"] * 20)
    records = job.agents["a1"].logs["orders", 0]
    job.agents["a1"].commit(3)
    assert job.round().found.lags.read_committed.tolist() == [7]
    records.kinds[4:8], records.edition = ["gone"] * 4, "e2"
    job.put(end=11)
    assert job.round(15).found.lags.read_committed.tolist() == [4]


def test_a_log_that_does_not_grow_is_counted_again_now_and_then() -> None:
    job = world(kinds=["data"] * 10)
    agent = job.agents["a1"]
    agent.commit(3)
    job.round()
    agent.asked.clear()
    for _ in range(2 * CHECKED_ROUNDS):
        assert job.round(1).found.lags.read_committed.tolist() == [7]
    assert [{offset for _, _, offset in asked} for asked in agent.asked] == [{10}, {10}]
    records = agent.logs["orders", 0]
    records.kinds[4:8], records.edition = ["gone"] * 4, "e2"
    assert [job.round(1).found.lags.read_committed.tolist() for _ in range(CHECKED_ROUNDS)][-1] == [3]


def test_an_agent_is_asked_for_no_more_at_once_than_it_answers_in_a_moment() -> None:
    job = world(end=3000)
    agent = job.agents["a1"]
    for number in range(2000):
        agent.commit(number, group=str(number))
    known = [(int((job.round(2).found.lags.reason < 0).sum()), job.tracker.left) for _ in range(3)]
    assert known == [(FIRST_ASKED, 2000 - FIRST_ASKED), (2000, 0), (2000, 0)]
    assert [len(asked) for asked in agent.asked if len(asked) > 2] == [FIRST_ASKED, 2000 - FIRST_ASKED]


def test_a_group_at_the_end_asks_for_nothing_but_the_end() -> None:
    job = world()
    job.agents["a1"].commit(10)
    snapshot = job.round()
    assert {offset for asked in job.agents["a1"].asked for _, _, offset in asked} == {10}
    assert snapshot.found.lags.read_committed.tolist() == [0]
    assert job.page()["group_lag_seconds{append,g,orders}"] == 0


@each_row(
    ("reason", "break_it"),
    [
        (LagReason.NOT_UNDERSTOOD, lambda job: job.agents["a1"].commit(-2)),
        (LagReason.LEADER, lambda job: job.agents["a1"].commit(1, partition=7)),
        (LagReason.TOPIC_GONE, lambda job: job.topics.update(orders=0)),
        (LagReason.FILLING, lambda job: setattr(job.agents["a1"].logs["orders", 0], "state", "FILLING")),
        (LagReason.DAMAGED, lambda job: setattr(job.agents["a1"].logs["orders", 0], "state", "DAMAGED")),
    ],
)
def test_what_is_not_known_has_its_reason(reason: LagReason, break_it: Any) -> None:
    job = world()
    job.topics = {"orders": 10}
    if reason in (LagReason.TOPIC_GONE, LagReason.FILLING, LagReason.DAMAGED):
        job.agents["a1"].commit(3, topic="gone" if reason is LagReason.TOPIC_GONE else "orders")
    break_it(job)
    snapshot = job.round()
    assert reasons(snapshot) == [str(reason)]
    found = job.page()
    (name,) = [name for name in found if name.startswith("group_lag_unknown_partitions")]
    assert str(reason) in name
    assert not [name for name in found if name.startswith(("group_lag_records", "group_lag_bytes", "group_lag_seconds"))]


def test_a_position_that_is_not_counted_yet_is_asked_for_now_and_then_until_it_is() -> None:
    job = world()
    agent = job.agents["a1"]
    agent.logs["orders", 0].state = "FILLING"
    agent.commit(3)
    for _ in range(1 + 2 * RETRIED_ROUNDS):
        assert reasons(job.round(1)) == [str(LagReason.FILLING)]
    assert sum(offset == 3 for asked in agent.asked for _, _, offset in asked) == 1 + 2
    agent.logs["orders", 0].state = "KNOWN"
    assert [reasons(job.round(1)) for _ in range(RETRIED_ROUNDS)][-1] == [""]


def test_a_position_that_was_known_and_is_not_for_a_moment_is_asked_for_in_the_next_round() -> None:
    """A file is deleted while its agent looks: the next listing shows it."""
    job = world()
    agent = job.agents["a1"]
    agent.commit(3)
    job.round()
    for offset in range(4, 4 + RETRIED_ROUNDS):  # whichever round it is
        agent.logs["orders", 0].state = "FILLING"
        agent.commit(offset)
        assert reasons(job.round(1)) == [str(LagReason.FILLING)]
        agent.logs["orders", 0].state = "KNOWN"
        assert reasons(job.round(1)) == [""]


def test_a_group_stands_still_at_the_earliest_since_it_is_known_that_a_record_is_readable() -> None:
    job = world()
    job.agents["a1"].logs["orders", 0].state = "FILLING"
    job.agents["a1"].commit(3, commit_ms=900_000)
    assert job.round().progress.stopped_since_ms.tolist() == [-1]
    job.agents["a1"].logs["orders", 0].state = "KNOWN"
    snapshots = [job.round(1) for _ in range(RETRIED_ROUNDS)]
    first = next(each for each in snapshots if reasons(each) == [""])
    assert first.progress.stopped_since_ms.tolist() == [first.at_ms] == snapshots[-1].progress.stopped_since_ms.tolist()


def test_a_topic_made_anew_is_reported_by_its_id() -> None:
    job = world(topic_id=TOPIC_ID)
    job.agents["a1"].commit(3, topic_id="other")
    assert reasons(job.round()) == [str(LagReason.MADE_ANEW)]
    job.agents["a1"].commit(3, topic_id=TOPIC_ID)
    assert reasons(job.round(1)) == [""]


def test_nothing_is_known_of_an_agent_that_does_not_answer_for_long() -> None:
    job = world()
    job.agents["a1"].commit(3)
    job.round()
    job.agents["a1"].error = AgentError("away")
    assert reasons(job.round(5)) == [""]
    assert reasons(job.round(HEARD_SECONDS)) == [str(LagReason.NOT_OBSERVED)]
    assert "group_lag_records{g,read_committed,orders}" not in job.page()
    job.agents["a1"].error = None
    assert reasons(job.round(5)) == [""]


def test_since_when_a_group_stands_is_known_over_the_absence_of_its_agent() -> None:
    job = world()
    job.agents["a1"].commit(3)
    since = job.round().progress.stopped_since_ms.tolist()
    away = job.agents.pop("a1")
    for _ in range(3):
        assert reasons(job.round(HEARD_SECONDS)) == [str(LagReason.NOT_OBSERVED)]
    job.agents["a1"] = away
    found = job.round(5)
    assert (reasons(found), found.progress.stopped_since_ms.tolist()) == ([""], since)


def test_what_an_agent_has_sent_is_forgotten_when_it_is_away_for_good() -> None:
    job = world()
    job.agents["a1"].commit(3)
    job.round()
    del job.agents["a1"]
    assert len(job.round(KEPT_SECONDS - 1).rows) == 1
    assert len(job.round(1).rows) == 0


def test_an_agent_that_the_job_has_no_client_of_is_not_asked_and_the_others_are() -> None:
    job = world()
    job.agents["a1"].commit(3)
    job.round()
    gone = job.agents.pop("a1")
    job.put(end=12)
    gone.asked.clear()
    assert reasons(job.round(5)) == [str(LagReason.LEADER)]
    assert gone.asked == []


def test_what_an_agent_does_not_answer_about_is_not_being_counted() -> None:
    class Stopped(FakeAgent):
        def groups(self, request: GroupsRequest | None = None) -> GroupsAnswer:
            go_on.wait(SECONDS)
            return super().groups(request)

        def positions(self, asked: pa.Table) -> pa.Table:
            go_on.wait(SECONDS)
            return super().positions(asked)

    go_on, job = threading.Event(), world(kinds=["data"] * 12, end=10)
    agent = job.agents["a1"]
    agent.commit(3)
    before = reasons(job.round())
    job.agents["a1"] = Stopped(logs=agent.logs, commits=agent.commits, _version=1)
    job.put(end=12)
    found = [reasons(job.round(5, places_seconds=0.0, seconds_of_others=0.0)) for _ in range(2)]
    offsets = job.page()["group_lag_offsets{g,orders}"]
    go_on.set()
    assert (before, found) == ([""], [[str(LagReason.LEADER)]] * 2)
    assert offsets == 9, "that needs no counting"
    until("the agent's answers count again", lambda: reasons(job.round(1)) == [""])


@each_row(
    ("following", "coordinator", "reason"),
    [
        (Following.READ, 0, ""),
        (Following.READING, 1, ""),
        (Following.READING, 0, str(LagReason.NOT_OBSERVED)),
    ],
)
def test_commits_of_a_log_that_its_agent_reads_again_are_not_known_now(following: Following, coordinator: int, reason: str) -> None:
    job = world()
    agent = job.agents["a1"]
    agent.commit(3)
    assert reasons(job.round()) == [""]
    agent.others = [FollowedLog(broker=1, topic="__consumer_offsets", topic_id="", coordinator=coordinator, following=following)]
    assert reasons(job.round(1)) == [reason]
    agent.others = []
    assert reasons(job.round(1)) == [""]


def test_an_agent_of_an_earlier_version_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    job = world()
    agent, old = job.agents["a1"], FakeAgent(coordinator=None, error=AgentError("what?", Problem.AGENT_VERSION))
    job.agents["a2"] = old
    agent.commit(3, topic="other")
    job.put("other", agent="a2", end=10)
    job.round()
    assert reasons(job.round(1)) == [str(LagReason.VERSION)]
    assert caplog.text.count("earlier version") == 1
    assert job.page()["group_lag_offsets{g,other}"] == 7


def test_an_agent_that_is_behind_with_the_coordinator_s_log_is_reported_after_a_while() -> None:
    job = world()
    job.agents["a1"].commit(3)
    job.agents["a1"].upto = 999
    assert reasons(job.round()) == [""]
    assert reasons(job.round(UNREAD_MS / 1000 + 1)) == [str(LagReason.UNREAD)]
    assert job.page()["group_coordinators_unread{__consumer_offsets}"] == 1


def test_a_coordinator_s_log_that_has_lost_its_end_is_reported_after_a_while() -> None:
    """Its broker has noted a higher one: it writes that anew within seconds, unless it is gone."""
    job = world()
    job.put("__consumer_offsets", end=900, high_watermark=1000)
    job.agents["a1"].commit(3)
    job.agents["a1"].upto = 900
    assert reasons(job.round()) == [""]
    assert reasons(job.round(UNREAD_MS / 1000 + 1)) == [str(LagReason.UNREAD)]
    assert job.page()["group_coordinators_unread{__consumer_offsets}"] == 1
    job.put("__consumer_offsets", end=900, high_watermark=900)
    assert reasons(job.round(1)) == [""]


def test_an_agent_that_follows_a_coordinator_s_log_which_grows_all_the_time_is_not_behind() -> None:
    job = world()
    job.agents["a1"].commit(3)
    for end in range(1000, 1500, 100):
        job.put("__consumer_offsets", end=end)
        job.agents["a1"].upto = end - 100  # the high watermark of the round before
        assert reasons(job.round(UNREAD_MS / 1000 + 1)) == [""]
    assert job.page()["group_coordinators_unread{__consumer_offsets}"] == 0
    for end in range(1500, 1800, 100):
        job.put("__consumer_offsets", end=end)
        found = reasons(job.round(UNREAD_MS / 1000 / 2))
    assert found == [str(LagReason.UNREAD)]  # it stands still, and the log does not


def test_records_that_are_deleted_before_they_are_read_are_counted_once() -> None:
    job = world(kinds=["data", "control", "data", "data", "data", "data"], end=6)
    job.agents["a1"].commit(1)
    assert job.round().counters.lost_records.tolist() == [0]
    job.put(end=6, log_start_offset=4)
    for _ in range(2):
        assert job.round(15).progress.rate.tolist() == [0]  # nobody has read them
        found = job.page()
        assert (found["group_lost_records_total{g,orders}"], found["group_lost_offsets_total{g,orders}"]) == (2, 0)
    job.put(end=6, log_start_offset=5)
    job.round(15)
    assert job.page()["group_lost_records_total{g,orders}"] == 3


def test_what_cannot_be_counted_in_records_is_counted_in_offsets() -> None:
    job = world(end=10)
    job.agents["a1"].commit(1)
    job.round()
    job.agents["a1"].logs["orders", 0].edition = "e2"
    job.put(end=10, log_start_offset=4)
    for _ in range(10):
        job.round(15)
    found = job.page()
    assert (found["group_lost_records_total{g,orders}"], found["group_lost_offsets_total{g,orders}"]) == (0, 3)


def test_records_that_a_group_passes_are_counted() -> None:
    job = world(kinds=["data", "aborted", "control", "data", "gone", "data", "data", "control", "data", "data"])
    agent = job.agents["a1"]
    agent.commit(0)
    job.round()
    for offset in (3, 6, 6, 10):
        agent.commit(offset)
        job.round(5)
    assert job.page()["group_committed_records_total{g,orders}"] == 6
    agent.commit(3)  # set back
    job.round(5)
    agent.commit(10)
    job.round(5)
    assert job.page()["group_committed_records_total{g,orders}"] == 6 + 5


def test_groups_and_partitions_that_come_and_go_leave_the_counts_of_the_others() -> None:
    job = world()
    agent = job.agents["a1"]
    agent.logs["orders", 1] = Records(["data"] * 10)
    agent.commit(0)
    job.round()
    agent.commit(3)
    job.round(5)
    job.put(partition=1, end=10)
    agent.commit(5, partition=1)
    agent.commit(1, group="a")
    agent.commit(1, group="z")
    job.round(5)
    found = {name: value for name, value in job.page().items() if name.startswith("group_committed_records_total")}
    assert found == {f"group_committed_records_total{{{group},orders}}": value for group, value in (("a", 0), ("g", 3), ("z", 0))}
    agent.commit(4)
    agent.commit(7, partition=1)
    agent.commit(9, group="z")
    agent.commits = [row for row in agent.commits if row["group"] != "a"]
    agent.edition = "c2"
    job.round(5)
    found = {name: value for name, value in job.page().items() if name.startswith("group_committed_records_total")}
    assert found == {f"group_committed_records_total{{{group},orders}}": value for group, value in (("g", 6), ("z", 8))}


def test_a_group_has_stopped_when_its_offset_stays_although_a_record_is_readable() -> None:
    job = world()
    agent = job.agents["a1"]
    agent.commit(3, commit_ms=1_000_000)
    job.round()
    for _ in range(20):
        agent.commit(3, commit_ms=round(job.now * 1000))  # auto-commit repeats one offset
        job.round(STOPPED_MS / 1000 / 20 - 0.01)
    assert job.page()["group_stopped_partitions{g,orders}"] == 0
    job.round(1)
    assert job.page()["group_stopped_partitions{g,orders}"] == 1
    agent.commit(4)
    job.round(1)
    assert job.page()["group_stopped_partitions{g,orders}"] == 0


def test_a_group_that_has_stopped_has_while_a_compacted_log_is_counted_anew() -> None:
    """The records that are left change with each compaction, and are not known until they are counted. It stands since the same time."""
    job = world()
    agent, log = job.agents["a1"], job.agents["a1"].logs["orders", 0]
    agent.commit(3, commit_ms=1_000_000)
    job.round()
    found = []
    for number in range(4):
        log.kinds[3 + number], log.state, log.edition = "gone", "FILLING", f"e{number + 2}"
        job.put(end=10 + number)
        for state in ("FILLING", "KNOWN"):
            log.state = state
            log.kinds += ["data"] * (11 + number - len(log.kinds))
            job.put(end=11 + number)
            snapshot = [job.round(STOPPED_MS / 1000) for _ in range(RETRIED_ROUNDS)][-1]
            found.append((reasons(snapshot)[0], bool(snapshot.found.stopped[0]), snapshot.progress.stopped_since_ms.tolist()))
    since = [1_000_000]
    assert found == [("filling", True, since), ("", True, since)] * 4


def test_a_group_that_has_moved_since_it_was_counted_has_not_stopped_while_a_log_is_counted_anew() -> None:
    job = world()
    agent, log = job.agents["a1"], job.agents["a1"].logs["orders", 0]
    agent.commit(3, commit_ms=1_000_000)
    job.round()
    log.state, log.edition = "FILLING", "e2"
    agent.commit(9, commit_ms=1_001_000)
    assert [job.round(STOPPED_MS / 1000).progress.stopped_since_ms.tolist() for _ in range(3)] == [[-1]] * 3


def test_a_group_without_a_readable_record_has_not_stopped() -> None:
    job = world(kinds=["data", "data", "control", "control"], end=4)
    job.agents["a1"].commit(2)
    for _ in range(3):
        job.round(STOPPED_MS / 1000)
    assert job.page()["group_stopped_partitions{g,orders}"] == 0


def test_commits_that_wait_for_their_transaction_are_counted() -> None:
    job = world()
    job.agents["a1"].commit(3)
    job.agents["a1"].pending = [WAITING]
    job.round()
    assert job.page()["group_pending_transactional_commits{g,orders}"] == 1


def test_offsets_of_a_group_that_nobody_uses_expire() -> None:
    job = world()
    job.agents["a1"].commit(3, commit_ms=1_000)
    job.agents["a1"].groups_ = [GROUP | {"state": "Empty", "topics": [], "members": 0}]
    job.round()
    assert job.page()["group_offset_expiration_timestamp_seconds{g,orders}"] == 1 + 7 * 86_400
    job.agents["a1"].edition = "c2"
    job.agents["a1"].groups_ = [GROUP]
    job.round()
    assert "group_offset_expiration_timestamp_seconds{g,orders}" not in job.page()


def test_a_page_is_of_no_round_of_long_ago() -> None:
    job = world()
    job.agents["a1"].commit(3)
    job.round()
    assert job.page()
    job.now += 100
    assert job.page() == {}


def test_a_share_group_has_no_isolation_and_what_it_is_done_with_is_not_left() -> None:
    job = world(topic_id=TOPIC_ID)
    job.put("__share_group_state", end=1000)
    job.agents["a1"].commit(4, group="s", share=True, topic="", topic_id=TOPIC_ID, delivered=2)
    job.round()
    found = job.page()
    assert found["group_lag_records{s,,orders}"] == 4
    assert found["group_lag_offsets{s,orders}"] == 4, "what kafka-share-groups calls LAG"
    assert not [name for name in found if "read_committed" in name]
    assert found["group_coordinators_unread{__share_group_state}"] == 0


def test_records_that_are_not_understood_are_counted_by_the_topic_that_they_are_in() -> None:
    job = world(topic_id=TOPIC_ID)
    job.put("__share_group_state", end=1000)
    job.agents["a1"].unreadable = 3
    job.agents["a1"].commit(4, group="s", share=True, topic="", topic_id=TOPIC_ID)
    job.round()
    found = job.page()
    name = "group_records_not_understood"
    assert (found[f"{name}{{__consumer_offsets}}"], found[f"{name}{{__share_group_state}}"]) == (3, 0)


KINDS = st.sampled_from(["data", "data", "aborted", "control", "gone"])
STEPS = st.lists(st.tuples(st.lists(KINDS, max_size=4), st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=8)
"""In each round: what is appended, the committed offset, and the log start, as far as they are possible."""


@settings(max_examples=25, deadline=None)
@given(st.lists(KINDS, max_size=10), STEPS)
def test_lag_and_counters_are_what_a_count_of_single_records_gives(kinds: list[str], steps: list[tuple[list[str], int, int]]) -> None:
    job = world(kinds=[*kinds], end=len(kinds))
    records, log_start, before = job.agents["a1"].logs["orders", 0], 0, -1
    passed = lost = lost_offsets = 0
    for appended, offset, begin in steps:
        records.kinds += appended
        end = len(records.kinds)
        committed, log_start = min(offset, end), max(log_start, min(begin, end))
        job.put(end=end, log_start_offset=log_start)
        job.agents["a1"].commit(committed)
        snapshot = job.round(15)
        start = max(committed, log_start)
        between = records.count(start, "data") - records.count(max(before, 0), "data")
        if 0 <= before < start and committed < log_start:
            lost += between if committed <= before else 0
            lost_offsets += start - committed if committed > before else 0
        elif 0 <= before < start:
            passed += between
        before = start
        lags, counters = snapshot.found.lags, snapshot.counters
        assert lags.read_committed.tolist() == [records.count(end, "data") - records.count(start, "data")]
        assert lags.read_uncommitted.tolist() == [records.count(end, "data", "aborted") - records.count(start, "data", "aborted")]
        assert lags.offsets.tolist() == [end - committed]
        found = (counters.committed_records, counters.lost_records, counters.lost_offsets)
        assert [int(each[0]) for each in found] == [passed, lost, lost_offsets]


def test_commits_that_wait_are_counted_of_groups_without_any_other_offset() -> None:
    job = world()
    job.agents["a1"].commit(3, group="other")
    job.agents["a1"].pending = [WAITING, WAITING | {"partition": 4}]
    job.round()
    assert job.page()["group_pending_transactional_commits{g,orders}"] == 2
    assert job.page()["group_pending_transactional_commits{other,orders}"] == 0


@pytest.mark.parametrize("step", [-3600.0, 3600.0], ids=["back", "ahead"])
def test_what_an_agent_has_sent_counts_for_as_long_whatever_the_clock_is_set_to(step: float) -> None:
    job = world()
    job.agents["a1"].commit(3)
    job.round()
    job.agents["a1"].error = AgentError("away")
    job.ahead = step
    assert reasons(job.round(5)) == [""]
    assert reasons(job.round(HEARD_SECONDS)) == [str(LagReason.NOT_OBSERVED)]


@pytest.mark.parametrize("step", [-3600.0, 3600.0], ids=["back", "ahead"])
def test_an_agent_of_an_earlier_version_is_asked_again_as_soon_whatever_the_clock_is_set_to(step: float) -> None:
    job = world()
    agent = job.agents["a1"]
    agent.commit(3)
    agent.error = AgentError("what?", Problem.AGENT_VERSION)
    job.round()
    agent.error, job.ahead = None, step
    job.round(REFUSED_SECONDS - 1)
    assert not job.page().get("group_lag_offsets{g,orders}")
    job.round(2)
    job.round(1)
    assert job.page()["group_lag_offsets{g,orders}"] == 7


def test_a_group_that_stops_after_the_clock_is_set_back_is_found_as_soon() -> None:
    job = world()
    job.ahead = 3600.0
    agent = job.agents["a1"]
    agent.commit(3)
    job.round()
    agent.commit(4)
    job.round(1)
    job.ahead = 0.0
    job.round(1)
    job.round(STOPPED_MS / 1000 + 1)
    assert job.page()["group_stopped_partitions{g,orders}"] == 1


def test_what_retention_keeps_is_worked_out_where_a_group_has_committed_and_once_in_a_round() -> None:
    job = world()
    looked: list[int] = []

    def rounds_look() -> None:
        view = job.rounds.view(job.now)

        def retention() -> RetentionResults:
            looked.append(len(view.observed.names))
            return view.retention()

        assert view.retention() is view.retention()
        job.rounds.take_groups(job.agents, job.now)
        job.tracker.begin(replace(view, retention=retention))
        job.tracker.ask()
        job.tracker.finish()

    rounds_look()
    assert looked == [], "nobody has committed"
    job.agents["a1"].commit(3)
    rounds_look()
    assert looked == [2]
