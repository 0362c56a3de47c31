"""Streaming queries beside consumer groups: the same lag, losses and verdicts, and what a checkpoint does not show."""

from typing import Any

from streaming.broker.protocol.group_json import GroupDetail
from streaming.cluster.consumers.group_tracker import GroupTracker
from streaming.cluster.view.family import EVERYTHING
from streaming.common.query_checkpoints import Isolation, QueryCheckpoint
from streaming.errors import QueryCheckpointError
from streaming.queries import QueryLook, QueryPosition
from tests.consumers.group_agents import GROUP, TRANSACTION
from tests.consumers.group_world import MIXED, STOPPED_MS, GroupJob, emptied, held_back, world
from tests.tables import each_row

NAME = "spark:q"


class Queries:
    """What looks at checkpoints find, by the names of the queries; every look of a round finds what is here by then."""

    def __init__(self, job: GroupJob, *checkpoints: QueryCheckpoint) -> None:
        self.job = job
        self.found: dict[str, QueryLook | QueryCheckpointError] = {}
        job.tracker = job.rounds._tracker = GroupTracker(EVERYTHING, STOPPED_MS, checkpoints=checkpoints)
        job.rounds._changes._store = job.tracker.store

    def round(self, seconds: float = 0.0) -> GroupDetail:
        """A round; returns what is answered about the query."""
        self.job.tracker.queries.take(self.found, round((self.job.now + seconds) * 1000))
        self.job.round(seconds)
        return self.job.about(NAME)


def look(*positions: tuple[str, int, int], **values: Any) -> QueryLook:
    given = {"query_id": "i", "batch": 3, "committed_ms": 900_000} | values
    return QueryLook(positions=tuple(QueryPosition(*each) for each in positions), **given)


def queries(job: GroupJob | None = None, *positions: tuple[str, int, int], **values: Any) -> Queries:
    """One query, with these positions in its checkpoint if there are any."""
    found = Queries(job or world(), QueryCheckpoint("q", "/c", **values))
    found.found = {"q": look(*positions)} if positions else {}
    return found


def texts(detail: GroupDetail) -> list[str]:
    return [each.text for each in detail.findings]


def test_a_query_has_what_a_group_has() -> None:
    job = world(kinds=MIXED)
    with_query = queries(job)
    with_query.found["q"] = look(("orders", 0, 2), commit_times=(800_000, 850_000, 900_000))
    detail = with_query.round()
    found = {name: value for name, value in job.page().items() if "spark:q" in name}
    assert found["group_lag_offsets{spark:q,orders}"] == 8
    assert found["group_lag_records{spark:q,read_committed,orders}"] == 5
    assert found["group_lag_records{spark:q,read_uncommitted,orders}"] == 5
    assert found["group_lag_bytes{spark:q,orders}"] == 700
    assert found["group_last_commit_timestamp_seconds{spark:q,orders}"] == 900
    assert found["group_info{spark:q,,Spark}"] == 1
    assert found["group_state{spark:q,Committed}"] == 1
    assert found["group_use{spark:q,in_use}"] == 1
    assert not [name for name in found if "members" in name or "expiration" in name]
    assert (detail.summary.type, detail.summary.epoch, detail.summary.members, detail.summary.isolation) == ("Spark", 3, -1, "")
    assert detail.summary.records_left == 5
    assert detail.notes == ["its checkpoint is /c; micro-batch 3 is the last one committed"]


def test_what_is_read_counts_and_what_is_deleted_before_is_lost() -> None:
    with_query = queries(None, ("orders", 0, 2))
    job = with_query.job
    with_query.round()
    with_query.found["q"] = look(("orders", 0, 5), batch=4)
    with_query.round(1)
    job.play("end=10 start=8")
    detail = with_query.round(1)
    found = job.page()
    assert found["group_committed_records_total{spark:q,orders}"] == 3
    assert found["group_lost_records_total{spark:q,orders}"] == 3
    assert detail.summary.verdict == "lost"
    assert "The query fails with its next micro-batch, unless failOnDataLoss is false" in texts(detail)[0]
    assert not detail.findings[0].command
    assert "in its checkpoint" in detail.findings[0].no_command


def test_where_only_a_marker_was_deleted_the_query_fails_all_the_same() -> None:
    job = world(end=6, kinds=TRANSACTION)
    with_query = queries(job, ("orders", 0, 5))
    assert texts(with_query.round()) == ["nothing to do: the last offset is only markers, aborted or compacted records"]
    emptied(job, TRANSACTION)
    (text,) = texts(with_query.round(15))
    assert text.startswith(
        "no record is left: the last offset is only markers, aborted or compacted records. Its next offset is deleted. The query"
    )
    assert "fails with its next micro-batch, unless failOnDataLoss is false" in text


def test_nothing_is_claimed_of_micro_batches_that_cannot_be_read() -> None:
    with_query = queries()
    for batch, known in ((-1, "its checkpoint is /c"), (2, "its checkpoint is /c; micro-batch 2 is the last one known to be committed")):
        with_query.found["q"] = look(("orders", 0, 2), batch=batch, doubts=("commits/3 cannot be read",))
        assert with_query.round().notes[0] == known


def test_a_query_that_stands_says_whether_a_micro_batch_is_planned() -> None:
    with_query = queries(None, ("orders", 0, 2))
    with_query.round()
    detail = with_query.round(700)
    assert "stopped" in [each.verdict for each in detail.findings]
    assert "No micro-batch was planned after the last one, committed at 1970-01-01T00:15:00Z" in " ".join(texts(detail))
    with_query.found["q"] = look(("orders", 0, 2), planned_batch=4, planned_ms=1_000_000)
    detail = with_query.round(1)
    assert (detail.summary.state, detail.summary.state_ms) == ("Planned", 1_000_000)
    assert "A micro-batch is planned since 1970-01-01T00:16:40Z" in " ".join(texts(detail))
    assert detail.notes[1].startswith("micro-batch 4 is planned since 1970-01-01T00:16:40Z (11m 41s ago) and not committed")
    assert "group_stopped_partitions{spark:q,orders}" in with_query.job.page()


@each_row(
    ("isolation", "left", "word"),
    [(None, 2, ""), (Isolation.READ_COMMITTED, 2, "read_committed"), (Isolation.READ_UNCOMMITTED, 8, "read_uncommitted")],
)
def test_the_isolation_is_what_is_given(isolation: Isolation | None, left: int, word: str) -> None:
    with_query = queries(held_back(4), ("orders", 0, 2), isolation=isolation)
    detail = with_query.round()
    assert (detail.summary.records_left, detail.summary.isolation, detail.partitions[0].isolation) == (left, word, word)
    of = detail.summary
    assert (of.lag_records_read_committed, of.lag_records_read_uncommitted) == (2, 8)


def test_a_topic_that_is_not_there_and_an_offset_beyond_the_end_may_be_of_another_cluster() -> None:
    job = world()
    job.topics = {"orders": 1}
    with_query = queries(job)
    with_query.found["q"] = look(("orders", 0, 50), ("clicks", 0, 7))
    with_query.round()
    detail = with_query.round(120)
    by_topic = {each.topic: each for each in detail.partitions}
    assert {topic: each.unknown for topic, each in by_topic.items()} == {"orders": "beyond_end", "clicks": "not_in_cluster"}
    assert {each.lag for each in by_topic.values()} == {-1}
    assert all("perhaps the query reads another" in text for text in texts(detail))


def test_nothing_is_shown_of_a_checkpoint_that_was_never_read() -> None:
    with_query = queries()
    detail = with_query.round()
    assert (detail.summary.verdict, detail.summary.state, detail.partitions) == ("unknown", "Unknown", [])
    assert texts(detail) == ["not known: it has not been looked at yet"]
    assert with_query.job.page()["group_checkpoints_unread{}"] == 0
    with_query.found["q"] = QueryCheckpointError("c is no checkpoint")
    assert texts(with_query.round(1)) == ["not known: c is no checkpoint"]
    with_query.round(60)
    assert with_query.job.page()["group_checkpoints_unread{}"] == 1


def test_what_was_read_last_counts_for_a_minute_and_then_there_is_no_lag() -> None:
    with_query = queries(None, ("orders", 0, 2))
    assert with_query.round().summary.lag == 8
    with_query.found["q"] = QueryCheckpointError("no access")
    detail = with_query.round(30)
    assert (detail.summary.lag, detail.data_age_ms) == (8, 30_000)
    assert "not known: no access" in texts(detail)
    detail = with_query.round(31)
    assert [(each.lag, each.unknown) for each in detail.partitions] == [(-1, "checkpoint_unread")]
    with_query.found.clear()
    assert texts(with_query.round(1))[0] == "not known: no access"
    with_query.found["q"] = look(("orders", 0, 2))
    assert with_query.round(1).summary.lag == 8


def test_a_file_system_that_does_not_answer_is_named() -> None:
    with_query = queries(None, ("orders", 0, 2))
    with_query.round()
    with_query.found.clear()
    assert "not known: its file system does not answer" in texts(with_query.round(61))


def test_another_checkpoint_in_its_place_is_not_compared_with_the_one_before() -> None:
    with_query = queries(None, ("orders", 0, 2))
    with_query.round()
    with_query.found["q"] = look(("orders", 0, 9), query_id="j", generation=1, notes=("another checkpoint is in its place",))
    detail = with_query.round(1)
    assert (detail.partitions, detail.notes[1]) == ([], "another checkpoint is in its place")
    assert with_query.round(1).summary.lag == 1
    assert with_query.job.page()["group_committed_records_total{spark:q,orders}"] == 0


def test_two_names_of_one_query_are_reported() -> None:
    both = Queries(world(), QueryCheckpoint("q", "/c"), QueryCheckpoint("r", "/d"))
    both.found = {"q": look(("orders", 0, 2)), "r": look(("orders", 0, 2))}
    assert texts(both.round())[0] == "not known: q and r are checkpoints of one query, i: name it once"


def test_a_group_of_kafka_s_may_have_the_name_of_a_query() -> None:
    with_query = queries(None, ("orders", 0, 2))
    job = with_query.job
    assert with_query.round().summary.lag == 8
    job.agents["a1"].groups_ = [GROUP | {"group": NAME}]
    job.agents["a1"].commit(7, group=NAME)
    job.play("+1 +1")
    own, query = job.about(NAME), job.about("spark:q (query)")
    assert (own.summary.type, own.summary.lag) == ("Consumer", 3)
    assert (query.summary.type, query.summary.lag) == ("Spark", 8)
    page = job.page()
    assert (page["group_lag_records{spark:q,read_committed,orders}"], page["group_lag_records{spark:q (query),read_committed,orders}"]) == (
        3,
        8,
    )


def test_queries_change_nothing_of_what_is_reported_of_coordinators() -> None:
    with_query = queries(world(), ("orders", 0, 2))
    with_query.round()
    found = with_query.job.page()
    assert not [name for name in found if "spark checkpoints" in name]
    assert found["group_coordinators_unread{__consumer_offsets}"] == 0
    assert found["group_checkpoints_unread{}"] == 0


def test_a_position_that_is_held_up_says_so() -> None:
    with_query = queries(held_back(2), ("orders", 0, 2))
    with_query.round()
    assert with_query.round(60).summary.verdict == "held"
