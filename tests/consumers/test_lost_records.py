"""What of the offsets between a committed one and the log start a job takes for lost records."""

from tests.consumers.group_agents import TRANSACTION
from tests.consumers.group_world import TOPIC_ID, GroupJob, emptied, world
from tests.tables import each_row


def lost(job: GroupJob) -> tuple[int, str]:
    found = job.about()
    return found.partitions[0].lost_records, found.summary.verdict


@each_row(("committed", "records", "verdict"), [(5, 0, "only_markers"), (3, 2, "lost")])
def test_a_job_that_has_watched_knows_what_was_deleted(committed: int, records: int, verdict: str) -> None:
    job = world(end=6, kinds=TRANSACTION)
    job.agents["a1"].commit(committed)
    job.play("+0")
    emptied(job, TRANSACTION)
    job.play("+15")
    assert lost(job) == (records, verdict)
    assert job.about().partitions[0].lost_offsets == 6 - committed
    job.play("+15")
    assert lost(job) == (records, verdict)
    job.play("1 +15")
    assert lost(job)[0] == -1  # the job has not seen what was there


@each_row(("first", "records"), [(3, -1), (4, -1), (7, 3)])
def test_what_a_transaction_that_is_open_had_there_is_perhaps_aborted_later(first: int, records: int) -> None:
    job = world(f"3 open={first} +0")
    job.play("start=6 +15")
    assert lost(job) == (records, "lost")


def test_one_that_comes_later_does_not_count_it_either() -> None:
    assert lost(world("3 open=3 start=6 +0")) == (-1, "held")


@each_row(
    ("bounds", "records", "verdict"),
    [((-1, -1), -1, "perhaps_lost"), ((0, 0), 0, "only_markers"), ((0, 2), -1, "perhaps_lost"), ((1, 1), 1, "lost"), ((1, 2), -1, "lost")],
)
def test_one_that_comes_later_knows_what_a_producer_snapshot_shows(bounds: tuple[int, int], records: int, verdict: str) -> None:
    job = world(end=6, kinds=TRANSACTION)
    emptied(job, TRANSACTION, bounds)
    job.play("4 +0")
    assert lost(job) == (records, verdict)


def test_where_records_without_a_marker_follow_there_are_no_transactions() -> None:
    for following, verdict in ((["data"], "lost"), (["data", "control"], "perhaps_lost"), (["control"], "perhaps_lost")):
        job = world(end=6 + len(following), kinds=TRANSACTION + following)
        emptied(job, TRANSACTION)
        job.agents["a1"].logs["orders", 0].kinds += following
        job.put(end=6 + len(following), log_start_offset=6)
        job.play("5 +0")
        assert lost(job) == (-1, verdict)


@each_row(("bounds", "verdict"), [((0, 0), "fine"), ((0, 1), "perhaps_lost"), ((1, 1), "lost"), ((-1, -1), "perhaps_lost")])
def test_what_a_share_group_was_not_done_with_may_have_been_a_marker(bounds: tuple[int, int], verdict: str) -> None:
    """It was done with all five records. The job comes when the marker after them is deleted, too."""
    job = world(end=6, kinds=TRANSACTION, topic_id=TOPIC_ID)
    job.put("__share_group_state", end=1000)
    emptied(job, TRANSACTION, bounds)
    agent = job.agents["a1"]
    agent.commit(0, group="s", share=True, topic="", topic_id=TOPIC_ID, delivered=5, done=[0, 4], commit_ms=round(1000 * job.now))
    job.play("+15")
    found = job.about("s")
    assert found.summary.verdict == verdict
    assert [row for row in agent.asked[-1] if row[2] == 5], "the first offset that it was not done with is asked for"
