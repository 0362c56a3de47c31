"""Commits that come before the data that they are of: one is beyond the end of a log only if its leader's agent knew the log later."""

import pytest

from streaming.cluster.consumers.group_lag import LOOKED_MS, REASONS, WAITS_MS, LagReason
from streaming.cluster.consumers.group_snapshot import GroupSnapshot
from streaming.cluster.view.transaction_columns import READ_AFTER_MS
from streaming.errors import AgentError
from tests.consumers.group_agents import FakeAgent, Records
from tests.consumers.group_world import TOPIC_ID, GroupJob, row, world
from tests.tables import each_row
from tests.view.reported import Facts
from tests.view.rows import states

SURELY = READ_AFTER_MS / 1000
"""Seconds: what an agent publishes covers all that was on disk so long before."""


def reason(snapshot: GroupSnapshot) -> str:
    (code,) = snapshot.found.lags.reason.tolist()
    return "" if code < 0 else str(REASONS[code])


def summary(job: GroupJob, name: str = "g") -> tuple[str, int]:
    """The verdict about the group, and in how many partitions it is beyond the end."""
    detail = job.about(name)
    return detail.summary.verdict, detail.summary.beyond_end


def two_agents(end: int = 10) -> GroupJob:
    """The coordinator is with one agent, the log that is read with another one."""
    job = world()
    job.agents["a2"] = FakeAgent(logs={("clicks", 0): Records(["data"] * end)}, coordinator=None)
    job.put("clicks", agent="a2", end=end, topic_id=TOPIC_ID)
    job.reach("a2")
    return job


def commit(job: GroupJob, offset: int, *, share: bool = False) -> None:
    if share:
        job.agents["a1"].commit(offset, topic="", topic_id=TOPIC_ID, share=True, delivered=1, done=[offset + 1, offset + 1])
    else:
        job.agents["a1"].commit(offset, topic="clicks", commit_ms=round(1000 * job.now))


def grow(job: GroupJob, end: int) -> None:
    """The data has come."""
    records = job.agents["a2"].logs["clicks", 0]
    records.kinds += ["data"] * (end - len(records.kinds))
    job.put("clicks", agent="a2", end=end, topic_id=TOPIC_ID)


def test_a_commit_beyond_the_end_is_so_when_the_leader_s_agent_has_looked_after_it_came() -> None:
    job = world("12")
    found = [(reason(job.round(seconds)), summary(job)) for seconds in (0, SURELY - 1, 1)]
    assert found == [("commit_newer", ("unknown", 0)), ("commit_newer", ("unknown", 0)), ("beyond_end", ("beyond_end", 1))]
    assert "group_lag_offsets{g,orders}" not in job.page()


def test_until_the_data_of_a_commit_is_there_the_commit_before_counts() -> None:
    job = world("3")
    assert job.round().found.lags.read_committed.tolist() == [7]
    job.play("12")
    ahead = job.round(1)
    assert (ahead.rows.offset.tolist(), ahead.found.lags.read_committed.tolist(), summary(job)) == ([3], [7], ("fine", 0))
    job.agents["a1"].logs["orders", 0].kinds += ["data"] * 4
    job.play("end=14")
    assert (job.round(1).found.lags.read_committed.tolist(), reason(job.round(1))) == ([2], "")


def test_a_commit_that_stays_ahead_is_beyond_the_end_and_one_that_goes_on_there_is_not_known() -> None:
    job = world("3 +0")
    found = []
    for offset, seconds in ((12, 1), (12, LOOKED_MS / 1000), (12, SURELY), (13, 1), (13, SURELY - 1), (13, 1), (4, 1)):
        job.agents["a1"].commit(offset)
        found.append(reason(job.round(seconds)))
    assert found == ["", "commit_newer", "beyond_end", "", "commit_newer", "beyond_end", ""]


def test_a_log_that_is_cut_short_below_its_commits_has_not_been_read_to_the_end() -> None:
    job = world("9 +0")
    del job.agents["a1"].logs["orders", 0].kinds[6:]
    job.play("end=6")
    assert [(reason(job.round(SURELY)), summary(job)[0]) for _ in range(2)] == [("commit_newer", "unknown"), ("beyond_end", "beyond_end")]


@each_row(("share", "name"), [(False, "a consumer group, or assign()"), (True, "a share group")])
def test_a_group_goes_on_while_the_agent_of_its_log_stands_still(share: bool, name: str) -> None:
    """It answers nothing, and its log ends for the job where it did. When it goes on, all is known at once."""
    job = two_agents()
    if share:
        job.put("__share_group_state", end=1000)
    commit(job, 4, share=share)
    before = job.round().found.lags.read_committed.tolist()
    for seconds in range(3, 49, 3):
        job.behind["a2"] = seconds
        commit(job, 10 + 2 * seconds, share=share)
        snapshot = job.round(3)
        assert (snapshot.rows.offset.tolist(), reason(snapshot), snapshot.found.lags.read_committed.tolist()) == ([4], "", before), name
        assert summary(job)[1] == 0
    job.behind.clear()
    grow(job, 110)
    snapshot = job.round(1)
    assert (snapshot.rows.offset.tolist(), reason(snapshot), snapshot.found.lags.offsets.tolist()) == ([106], "", [3 if share else 4])


def test_nothing_is_known_of_a_group_when_the_agent_of_its_log_has_stood_still_for_long() -> None:
    job = two_agents()
    commit(job, 4)
    job.play("+0")
    for seconds in (5, 40, WAITS_MS / 1000 + 5, 250):
        job.behind["a2"] = seconds
        commit(job, round(10 + seconds))
        found = reason(job.round(seconds + 1000 - job.now))
        assert found == ("" if seconds < WAITS_MS / 1000 else "commit_newer")
        assert summary(job)[1] == 0


def test_a_group_goes_on_while_the_agent_of_its_log_is_away() -> None:
    job = two_agents()
    commit(job, 4)
    job.play("+0")
    job.down.add("a2")
    job.agents["a2"].error = AgentError("away")
    found = []
    for number in range(12):
        commit(job, 20 + number // 3)  # the same one comes again, too
        found.append(reason(job.round(6)))
    assert found == [""] * 9 + [str(LagReason.LEADER)] * 3
    job.down.clear()
    job.agents["a2"].error = None
    assert reason(job.round(1)) == "commit_newer"
    grow(job, 30)
    assert reason(job.round(1)) == ""


def test_a_job_that_is_behind_with_all_agents_takes_no_commit_for_one_beyond_the_end() -> None:
    """A micro-batch takes twenty seconds, and what came of the coordinator's agent is a little newer each time."""
    job = two_agents()
    commit(job, 4)
    job.play("+0")
    counted = []
    for batch in range(1, 8):
        for _ in range(5):
            job.behind = {"a1": 19.0, "a2": 20.0}
            commit(job, 10 * batch + 5)
            snapshot = job.round(4)
            assert (reason(snapshot), summary(job)[1]) == ("", 0)
        counted += snapshot.rows.offset.tolist()
        grow(job, 10 * batch + 10)
    assert counted == [4, 15, 25, 35, 45, 55, 65]


def test_what_was_beyond_the_end_stays_so_while_the_agent_of_its_log_stands_still() -> None:
    job = two_agents()
    commit(job, 4)
    job.play("+0")
    commit(job, 12)
    assert [reason(job.round(seconds)) for seconds in (1, SURELY)] == ["", "beyond_end"]
    job.behind["a2"] = 40.0
    assert reason(job.round(40)) == "beyond_end"
    job.behind.clear()
    grow(job, 14)
    assert reason(job.round(1)) == ""


def test_the_end_of_a_follower_s_log_is_not_that_of_the_partition() -> None:
    """Nobody reads the leader; a follower is in sync, and a little behind."""
    job = world()
    job.table.apply(states(row("clicks", end=10, facts=Facts(replicas=(1, 2), isr=(1, 2)).encode()) | {"leader": 2}))
    job.agents["a1"].logs["clicks", 0] = Records(["data"] * 10)
    commit(job, 12)
    snapshot = job.round()
    assert snapshot.logs.item.tolist() != [-1], "the follower's counts"
    assert {reason(job.round(SURELY)) for _ in range(5)} == {"commit_newer"}


@pytest.mark.parametrize("step", [-600.0, 600.0], ids=["back", "ahead"])
def test_what_is_newer_is_so_whatever_the_clock_is_set_to(step: float) -> None:
    job = two_agents()
    commit(job, 4)
    job.play("+0")
    commit(job, 12)
    job.behind["a2"] = SURELY
    job.ahead = step
    assert [reason(job.round(seconds)) for seconds in (1, SURELY)] == ["", ""]
    job.behind.clear()
    assert reason(job.round(1)) == "beyond_end"
