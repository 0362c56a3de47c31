"""A job whose data is old, because it is behind its agents or they stand still: groups are judged as of what is known of them."""

from dataclasses import replace

from streaming.broker.protocol.group_json import GroupUse
from streaming.cluster.consumers.group_counting import LASTING_MS
from streaming.cluster.consumers.group_snapshot import GroupSnapshot
from streaming.cluster.verdicts.group_judge import judge_groups
from tests.consumers.deleting import NOW, ROUND, Deleting
from tests.consumers.group_agents import GROUP, FakeAgent, Records
from tests.consumers.group_world import STOPPED_MS, GroupJob
from tests.tables import each_row
from tests.view.rows import new_table

OLD = 40
"""Seconds by which a job is behind."""

KEPT = 60
"""Seconds that records are kept where that is a minute."""

ROUNDS = LASTING_MS // 1000 // ROUND + 6
"""Until rates are known."""


@each_row("behind", [0, OLD])
def test_a_group_that_keeps_up_is_in_no_danger_where_a_minute_is_kept(behind: int) -> None:
    """Its next record is ten seconds old as of the data, and fifty are left. By the clock it is fifty old, and ten are left."""
    log = Deleting(kept=KEPT, segment=1, behind=behind)
    log.committed = log.end(NOW - behind) - 1.0
    assert {each[1:] for each in list(log.read(0.1, ROUNDS))[1:]} == {("fine", "")}
    assert not [name for name in log.job.page() if name.startswith("group_endangered")]


@each_row("behind", [0, OLD])
def test_one_that_stands_is_in_danger_all_the_same(behind: int) -> None:
    log = Deleting(kept=10 * KEPT, segment=1, behind=behind)
    log.committed = log.end(NOW - behind) - 30.0
    assert {verdict for _, verdict, _ in list(log.read(0.0, ROUNDS))[3:]} == {"will_lose"}


def two_agents() -> GroupJob:
    """The coordinator's log is of one agent, and the log that is read of the other; its last record is of this second."""
    records = Records(["data"] * 10, times={9: 1_000_000})
    agents = {"a1": FakeAgent(), "a2": FakeAgent(logs={("orders", 0): records}, coordinator=None)}
    job = GroupJob(new_table(), agents)
    job.put("__consumer_offsets", end=1000)
    job.put("orders", agent="a2", end=10)
    for agent in agents:
        job.reach(agent)
    agents["a1"].commit(9, commit_ms=1_000_000)
    return job


@each_row(("behind", "name"), [("a1", "the coordinator's agent stands still"), ("a2", "the log's agent stands still")])
def test_a_partition_has_not_stopped_while_its_data_does_not_show_it(behind: str, name: str) -> None:
    """It stands for as long as both are read. The half that stands still may hide a commit, or that nothing is there to be read."""
    job, stopped = two_agents(), []
    job.round()
    for seconds in range(60, 2 * STOPPED_MS // 1000, 60):
        job.behind[behind] = max(seconds - STOPPED_MS // 2000, 0)
        stopped.append(bool(job.round(60).found.stopped[0]))
    assert not any(stopped), name
    job.behind.clear()
    assert job.round(1).found.stopped.tolist() == [True], name


def test_the_older_half_of_what_is_known_is_the_age_of_the_data() -> None:
    job = two_agents()
    job.behind = {"a1": 25.0, "a2": OLD}
    snapshot = job.round(45)
    assert snapshot.found.data_age_ms.tolist() == [1000 * OLD]
    detail = job.about()
    assert (detail.data_age_ms, detail.at_ms) == (1000 * OLD, snapshot.at_ms)
    job.down.add("a2")
    assert job.round(10).found.data_age_ms.tolist() == [1000 * (OLD + 10)], "what was read before it went away is no newer by that"


def test_a_group_without_members_is_in_its_rhythm_as_of_the_data() -> None:
    job = two_agents()
    job.agents["a1"].groups_ = [GROUP | {"members": 0, "state": "Empty", "epoch": 0, "interval_ms": 15_000}]
    job.behind = {"a1": 0.0, "a2": OLD}
    snapshot = job.round(OLD)
    use = [judge_groups(each, each.at_ms).usage["g"].use for each in (snapshot, _as_new(snapshot))]
    assert use == [GroupUse.IN_USE, GroupUse.UNATTENDED]


def _as_new(snapshot: GroupSnapshot) -> GroupSnapshot:
    return replace(snapshot, found=replace(snapshot.found, data_age_ms=0 * snapshot.found.data_age_ms))


def stands_still(job: GroupJob, seconds: int) -> None:
    """The coordinator's agent does not go on."""
    for _ in range(0, seconds, 15):
        job.behind["a1"] = job.behind.get("a1", 0.0) + 15
        job.round(15)


def a_pause_of(seconds: int) -> GroupJob:
    """The group has read 2 of 10 records, its coordinator's agent has stood still, and goes on: the log begins with 6 now."""
    job = two_agents()
    job.play("2 +0")
    stands_still(job, seconds)
    job.play("start=6")
    return job


def losses(job: GroupJob) -> tuple[int, int, str, int]:
    """The total of lost records, the offsets that are known to be lost, the verdict, and what the group has left."""
    one = job.one()
    return int(job.page()["group_lost_records_total{g,orders}"]), one.lost_offsets, one.verdict, one.lag_records_read_committed


@each_row("away", [60, 240])
def test_what_a_group_had_perhaps_read_while_its_coordinator_s_agent_stood_still_is_not_lost(away: int) -> None:
    """That agent tells first what has been deleted: what was committed before that comes a moment later."""
    job = a_pause_of(away)
    for behind in (job.behind, {}):
        job.behind = behind
        job.round(1)
        lost_records, lost_offsets, _, left = losses(job)
        assert (lost_records, lost_offsets, left) == (0, 0, 4)
    job.play("8")
    for _ in range(10):
        job.round(15)
        lost_records, lost_offsets, verdict, left = losses(job)
        assert (lost_records, lost_offsets, left) == (0, 0, 2)
        assert verdict in ("fine", "catching_up")


def test_what_it_has_not_read_when_that_agent_has_surely_gone_on_is_lost() -> None:
    job, found = a_pause_of(60), []
    job.behind.clear()
    for _ in range(4):
        job.round(15)
        found.append(losses(job))
    assert [each[:2] for each in found] == [(0, 0), (4, 4), (4, 4), (4, 4)]
    assert [each[2] == "lost" for each in found] == [False, True, True, True]


def lost_before() -> GroupJob:
    """Three records were lost, and another one while the coordinator's agent stood still."""
    job = two_agents()
    job.play("2 +0 start=5 +15")
    stands_still(job, 60)
    job.play("start=6")
    return job


def test_what_was_lost_before_stays_known_while_that_agent_stands_still() -> None:
    job = lost_before()
    job.round(15)
    assert losses(job) == (3, 3, "lost", 4)
    job.behind.clear()
    job.play("+15*4")
    assert losses(job) == (4, 4, "lost", 4)


def test_what_the_commit_before_had_lost_is_not_what_a_newer_one_has_lost() -> None:
    """It comes while that agent reads on, and a part of what was deleted had been read."""
    job = lost_before()
    job.behind.clear()
    job.play("4")
    for _ in range(5):
        job.round(15)
        assert job.one().lost_records <= job.one().lost_offsets <= 2
