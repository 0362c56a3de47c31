"""Offsets of topics that a group has left: nobody has stopped there, and nobody misses what is deleted."""

from typing import Any

from streaming.cluster.verdicts.circumstances import Circumstances
from streaming.cluster.verdicts.group_judge import judge_groups
from streaming.cluster.verdicts.incidents import problems
from streaming.cluster.view.view import view
from tests.consumers.group_agents import GROUP
from tests.consumers.group_world import STOPPED_MS, GroupJob, world
from tests.tables import each_row

WEEK_MS = 7 * 86_400_000
CLASSIC = {"type": "Classic", "protocol": "consumer"}


def played(group: dict[str, Any], script: str) -> GroupJob:
    """A group that committed 3 of ten records, and what it is now; then the job watches for longer than a group stands."""
    job = world()
    job.agents["a1"].groups_ = [GROUP | group]
    job.play(f"{script} +0 +{STOPPED_MS // 1000} +15")
    return job


def problems_of(job: GroupJob) -> set[str]:
    seen = job.table.snapshot(job.now)
    judged = judge_groups(job.round(), round(1000 * job.now))
    found = problems(Circumstances(view=view(seen), topics=seen.topic_names, now_ms=round(1000 * job.now), agents=[], groups=judged))
    return {each.kind for each in found if each.group}


@each_row(
    ("group", "verdict"),
    [
        ({"topics": ["stock"]}, "left_over"),
        ({"topics": ["stock"], "type": "Streams", "protocol": "streams"}, "left_over"),
        ({"topics": ["stock"], "state": "Reconciling"}, "left_over"),
        (CLASSIC | {"topics": ["stock"]}, "left_over"),
        ({"topics": ["stock", "orders"]}, "stopped"),
        ({"topics": []}, "stopped"),  # a regular expression of which nothing is found yet
        ({"topics": ["stock"], "state": "Unknown"}, "stopped"),
        (CLASSIC | {"topics": [], "state": "Empty", "members": 0}, "stopped"),  # nobody knows what comes back
        (CLASSIC | {"topics": [], "last_topics": ["stock"], "state": "Empty", "members": 0}, "left_over"),
        ({"topics": [], "last_topics": ["stock"], "state": "Empty", "members": 0}, "left_over"),
        ({"topics": [], "last_topics": ["orders", "stock"], "state": "Empty", "members": 0}, "stopped"),
        (CLASSIC | {"topics": ["stock"], "state": "Empty", "members": 0, "epoch": 0}, "stopped"),
        (CLASSIC | {"topics": ["stock"], "protocol": "connect", "state": "Rebalancing"}, "stopped"),
        ({"type": "Classic", "protocol": "", "topics": []}, "stopped"),
    ],
)
def test_who_reads_a_topic_is_who_subscribes_to_it(group: dict[str, Any], verdict: str) -> None:
    job = played(group, "3@990")
    left = verdict == "left_over"
    assert verdict in {each.verdict for each in job.about().findings}
    assert problems_of(job) == (set() if left else {"group_stopped"})
    assert job.page()["group_stopped_partitions{g,orders}"] == (0 if left else 1)


def test_without_members_nobody_is_asked_to_start_consumers_for_what_the_last_ones_did_not_read() -> None:
    job = played({"topics": [], "last_topics": ["stock"], "state": "Empty", "members": 0, "epoch": 7, "state_ms": 900_000}, "3@990")
    (found,) = job.about().findings
    assert (found.verdict, found.severity, found.command) == ("left_over", "", "")
    assert found.text.startswith("left over: its last members did not subscribe to the topic; its offsets ")


def test_what_is_left_over_says_when_it_expires() -> None:
    job = played({"topics": ["stock"]}, "3@990")
    (found,) = job.about().findings
    assert (found.verdict, found.severity, found.command) == ("left_over", "", "")
    assert found.text.startswith("left over: no member subscribes to the topic; its offsets expire at 1970-01-08T00:16:30Z")
    assert job.one().expiration_ms == 990_000 + WEEK_MS


@each_row("script", ["99@990", "2@990 start=5", "6@990 open=4"])
def test_nothing_else_is_the_matter_with_what_is_left_over(script: str) -> None:
    """Neither what is beyond the end, nor what is deleted, nor what waits for a transaction."""
    job = played({"topics": ["stock"]}, script)
    assert [each.verdict for each in job.about().findings] == ["left_over"]
    assert problems_of(job) == set()
    alerted = ("stopped", "held", "invalid_offset", "loss", "endangered", "last_loss")
    there = {name: value for name, value in job.page().items() if name.startswith(tuple(f"group_{each}" for each in alerted))}
    assert not any(there.values()), there


def test_a_group_that_reads_one_topic_and_has_left_another_is_judged_by_the_first() -> None:
    job = world()
    job.put("stock", end=10)
    job.agents["a1"].logs["stock", 0] = job.agents["a1"].logs["orders", 0]
    job.agents["a1"].groups_ = [GROUP | {"topics": ["stock"]}]
    job.agents["a1"].commit(10, topic="stock")
    job.play(f"3 +0 +{STOPPED_MS // 1000} +15")
    found = job.about()
    assert {each.topic: each.verdict for each in found.partitions} == {"orders": "left_over", "stock": "fine"}
    assert found.summary.verdict == "fine"
