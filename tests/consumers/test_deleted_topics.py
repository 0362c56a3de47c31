"""Topics that are deleted while groups have records of them to read: each group is told of, with what it had left."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from streaming.broker.protocol.history_json import DeletedTopic
from streaming.broker.protocol.status_json import Problem
from streaming.cluster.consumers.deleted_topics import NOTICED_MS
from streaming.cluster.consumers.group_counting import LOST_LATELY_MS
from streaming.cluster.verdicts.circumstances import Circumstances
from streaming.cluster.verdicts.group_judge import judge_groups
from streaming.cluster.verdicts.incidents import problems
from streaming.cluster.view.view import view
from tests.consumers.group_agents import GROUP, Records
from tests.consumers.group_world import GroupJob, restarted, row, world
from tests.view.rows import removed, states

OLD_ID, NEW_ID = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"


def put(job: GroupJob, topic_id: str = OLD_ID, **values: Any) -> None:
    """The log of orders-0, of the topic with this id."""
    job.table.apply(states(row("orders", topic_id=topic_id, **values)))


def drop(job: GroupJob, topic_id: str = OLD_ID) -> None:
    job.table.apply(states(removed("orders", topic_id=topic_id)))


def topic_world(script: str) -> GroupJob:
    job = world()
    drop(job, "")
    put(job, end=10)
    job.topics = {"orders": 1, "__consumer_offsets": 1}
    job.play(script)
    return job


def deleted(job: GroupJob) -> list[DeletedTopic]:
    assert job.board.last is not None
    return list(job.board.last.deleted_topics)


def problems_of(job: GroupJob) -> list[Problem]:
    seen = job.table.snapshot(job.now)
    judged = judge_groups(job.round(), round(1000 * job.now))
    of = Circumstances(view=view(seen), topics=seen.topic_names, now_ms=round(1000 * job.now), agents=[], groups=judged)
    return [each for each in problems(of) if each.group]


def gone(job: GroupJob, *, commits: bool = True) -> GroupJob:
    """The topic goes: its log, its commits, and the metadata log says when."""
    drop(job)
    job.topics = {"__consumer_offsets": 1}
    if commits:
        job.play("-1")
    job.deletions[OLD_ID] = round(1000 * job.now)
    return job


def test_a_group_that_had_records_to_read_is_told_of_on_every_face() -> None:
    job = gone(topic_world("3 +15"))
    at_ms = round(1000 * job.now)
    (found,) = job.round(15).deleted_topics
    assert (found.group, found.topic, found.topic_id, found.records, found.offsets, found.at_ms) == ("g", "orders", OLD_ID, 7, 0, at_ms)
    assert found.counted_ms == at_ms
    assert job.page()["group_deleted_topic_records{g,orders}"] == 7
    assert job.page()["group_last_loss_timestamp_seconds{g,orders}"] == at_ms / 1000
    (problem,) = problems_of(job)
    assert (problem.kind, problem.severity, problem.topic, problem.group) == ("group_lost", "warning", "orders", "g")
    assert (
        "topic orders was deleted at 1970-01-01T00:16:55Z (15s ago) with at least 7 records that the group had still to read"
        in problem.what
    )


def test_what_is_left_of_the_group_says_it_in_a_sentence() -> None:
    job = topic_world("3 3/1 +15")
    job.put("stock", end=5)
    gone(job)
    job.agents["a1"].commit(5, topic="stock")
    job.play("+15")
    finding = job.about().findings[0]
    assert (finding.verdict, finding.severity, finding.topic) == ("lost", "warning", "")
    assert finding.text.startswith("topic orders was deleted at ")


@given(
    committed=st.integers(0, 10),
    order=st.permutations(["log", "commits", "notice", "topics"]),
    rounds=st.lists(st.sampled_from(["", "+3", "+15"]), min_size=4, max_size=4),
    again=st.booleans(),
    restart=st.booleans(),
)
def test_in_whatever_order_the_traces_of_a_deletion_arrive_it_counts_once(
    committed: int, order: list[str], rounds: list[str], again: bool, restart: bool
) -> None:
    job = topic_world(f"{committed} +15")
    at_ms = round(1000 * job.now) + 1
    for what, between in zip(order, rounds, strict=True):
        match what:
            case "log":
                drop(job)
            case "commits":
                job.play("-1")
            case "topics":
                job.topics = {"__consumer_offsets": 1}
            case "notice":
                job.deletions[OLD_ID] = at_ms
        job.play(between)
    if again:  # the topic is made anew, and its first commit has nothing left
        job.topics = {"orders": 1, "__consumer_offsets": 1}
        put(job, NEW_ID, end=2)
        job.play("2")
    job.play("+15")
    if restart:
        job = restarted(job)
    left = 10 - committed
    assert [(each.group, each.topic_id, each.records, each.at_ms) for each in deleted(job)] == (
        [("g", OLD_ID, left, at_ms)] if left else []
    )
    job.round(LOST_LATELY_MS / 1000 + 15)
    assert deleted(job) == []


def test_a_commit_that_expires_or_is_deleted_by_hand_is_no_loss() -> None:
    job = topic_world("3 +15 -1 +15")
    assert deleted(job) == []
    job.round(NOTICED_MS / 1000 + 1)
    gone(job, commits=False)
    assert job.round(15).deleted_topics == ()


def test_what_was_deleted_before_the_job_began_was_not_counted_by_it() -> None:
    job = topic_world("3")
    job.deletions[OLD_ID] = 1
    assert job.round(15).deleted_topics == ()


def test_a_topic_that_the_group_has_left_is_no_loss() -> None:
    job = topic_world("3")
    job.agents["a1"].groups_ = [GROUP | {"topics": ["stock"]}]
    job.play("+15")
    assert job.about().findings[0].verdict == "left_over"
    assert gone(job).round(15).deleted_topics == ()


def test_what_was_counted_last_counts_while_nobody_knows_more() -> None:
    job = topic_world("3 +15")
    counted_ms = round(1000 * job.now)
    job.agents["a1"].logs["orders", 0].state = "UNCOUNTED"
    job.play("away +80 +80 back")
    (found,) = gone(job).round(15).deleted_topics
    assert (found.records, found.offsets, found.counted_ms) == (7, 0, counted_ms)
    assert "that the group had still to read, as of 1970-01-01T00:16:55Z (" in problems_of(job)[0].what


def test_where_records_are_not_counted_their_offsets_are_told_and_partitions_add_up() -> None:
    job = topic_world("")
    job.table.apply(states(row("orders", 1, topic_id=OLD_ID, end=6)))
    job.agents["a1"].logs["orders", 0].state = "FILLING"
    job.agents["a1"].logs["orders", 1] = Records(["data"] * 6)
    job.play("3 4/1 z:9/1 +15")
    job.topics = {"__consumer_offsets": 1}
    drop(job)
    job.table.apply(states(removed("orders", 1, topic_id=OLD_ID)))
    job.deletions[OLD_ID] = round(1000 * job.now)
    job.play("-1 -1/1 z:-1/1 +15")
    assert [(each.group, each.records, each.offsets) for each in deleted(job)] == [("g", 2, 7)]
    assert "with at least 2 records and 7 offsets whose records were not counted that the group" in problems_of(job)[0].what
