"""One group in detail: what its agents add to a snapshot."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from streaming.broker.protocol.group_json import BatchCheck, GroupPartition, GroupSummary
from streaming.cluster.consumers import group_details
from streaming.common.rows import SEGMENTS
from streaming.pages.api.listed_groups import GroupResults
from streaming.pages.api.paging import PageRequest
from streaming.rules.transaction_verdicts import NEVER_MS
from tests.consumers.group_agents import BATCH_BYTES, GROUP, WAITING, Records, Row
from tests.consumers.group_world import MIXED, STOPPED_MS, TOPIC_ID, GroupJob, opened, world
from tests.tables import each_row
from tests.view.reported import Facts
from tests.view.rows import states
from tests.worlds.transactions import coordinator


def listed(job: GroupJob) -> list[GroupSummary]:
    answers = job.answers()
    assert answers is not None
    return answers.page(PageRequest(sort="group", order="asc")).rows


def test_a_group_has_its_members_and_the_lag_of_its_partitions() -> None:
    job = world("2@900", kinds=MIXED)
    job.agents["a1"].groups_ = [GROUP]
    job.play("+0")
    found = job.about()
    assert (found.summary.type, found.summary.members, found.clients, found.hosts) == ("Consumer", 2, ["c"], ["/h"])
    assert (found.summary.lag_records_read_committed, found.summary.lag_offsets, found.summary.partitions) == (5, 8, 1)
    one = job.one()
    assert (one.topic, one.partition, one.broker, one.committed, one.high_watermark) == ("orders", 0, 1, 2, 10)
    assert (one.lag_records_read_committed, one.lag_bytes, one.next_offset, one.next_batch_bytes) == (5, 700, 3, 100)
    assert one.batch is None


def test_a_group_that_is_not_there_or_of_which_nothing_is_known_has_no_details() -> None:
    job = world("2 +0")
    assert job.detail("other") is None
    assert world().detail() is None


def test_the_next_batch_of_a_partition_that_has_stopped_is_checked() -> None:
    job = world("3@1000 +0")
    assert job.one().batch is None
    job.round(STOPPED_MS / 1000)
    one = job.one()
    assert (one.stopped_since_ms, one.stopped_earlier) == (1_000_000, True)
    assert one.batch == BatchCheck(sound=False, error="crc", size=77, last_offset=3)
    assert job.agents["a1"].checked == [("orders", 0, 3)]


LONG = '{"topic":{"retention.ms":"1000000000"}}'
TWO = [(0, 600, 1_000, 2_000), (6, 400, 900_000, 900_000)]
"""Segments from 0 and from 6 on, of which retention deletes the first before long."""


def kept(segments: list[tuple[int, int, int, int]] = TWO, configs: str = LONG) -> dict[str, Any]:
    """A log of these segments, of which the last one is active."""
    made = np.array(segments, SEGMENTS)
    base, size, *_ = made[-1].item()
    return {"facts": Facts(segments=made, configs=configs).encode(), "active_segment": base, "active_position": size}


def stake(script: str = "", **values: Any) -> GroupJob:
    return world(script, **kept(), **values)


def test_what_is_at_stake_is_what_retention_deletes_with_the_next_record() -> None:
    job = stake("2 +0")
    one = job.one()
    assert one.loss_ms > 0
    assert (one.loss_records, one.loss_bytes) == (4, 400)
    job.play("0 +0")
    assert (job.one().loss_records, job.one().loss_bytes) == (6, 600)


def test_a_danger_that_nobody_can_see_any_more_stays_as_of_when_it_was_seen_until_the_offset_moves() -> None:
    job = world("2@990 +15", **kept(configs='{"topic":{"retention.ms":"10000000"}}'))
    job.round(STOPPED_MS / 1000)

    def told() -> tuple[set[str], int, int, list[str]]:
        one = job.one()
        series = [name for name in job.page() if name.startswith(("group_endangered", "group_loss", "group_stopped_partitions{"))]
        return {each.verdict for each in job.about().findings} & {"will_lose", "stopped"}, one.loss_ms, one.stopped_since_ms, sorted(series)

    before = told()
    assert before[:2] == ({"will_lose", "stopped"}, 10_001_001)
    assert len(before[3]) == 3
    job.play("away +60*10")
    assert (job.one().unknown, job.one().lag) == ("coordinator_not_observed", -1)
    assert told() == before
    texts = [each.text for each in job.about().findings]
    assert "as of when its logs were read last" in texts[0]
    assert not [each for each in texts if "-1" in each]
    job.play("9 back +15*2")
    assert told()[::2] == (set(), -1)


def late(committed: int, *, retention_ms: int = 100_000, log_start: int = 0, **run: int) -> GroupPartition:
    """A group's partition in a log of ten records, of which those from 1 to 8 came when they were some 900 s old."""
    configs = f'{{"static":{{}},"topic":{{"retention.ms":"{retention_ms}"}}}}'
    expired = {"expired_since_offset": 1, "expired_offset": 8, "expired_since_ms": 900_000, "expired_ms": 950_000, "expired_before": 0}
    run = expired | {"share_expired_records": 8} | run
    return world(f"{committed} +0", log_start_offset=log_start, **kept(configs=configs), **run).one()


def test_a_next_record_that_was_past_its_retention_when_it_came_is_known_by_its_age() -> None:
    assert [late(committed).next_expired_ms for committed in (0, 1, 2, 8, 9)] == [-1, 899_000, 898_000, 892_000, -1]
    assert [late(2, retention_ms=kept).next_expired_ms for kept in (897_999, 898_000, -1)] == [898_000, -1, -1]
    assert late(2, expired_ms=-1).next_expired_ms == -1, "none was seen"


def test_what_was_lost_had_come_past_its_retention_if_nothing_else_was_there() -> None:
    assert [late(committed, log_start=4).lost_expired for committed in (0, 1, 3, 4)] == [False, True, True, False]
    assert not late(1, log_start=4, share_expired_records=7).lost_expired, "one between them was not late"
    assert late(1, log_start=4).lost_offsets == 3


def test_at_stake_is_what_is_due_at_the_first_and_at_the_last_moment_of_a_check() -> None:
    segments = [(0, 600, 1_000, 2_000), (6, 200, 200_000, 2_000), (8, 200, 900_000, 900_000)]
    for interval, most in (("1000", (4, 400)), ("250000", (6, 600))):
        configs = f'{{"static":{{"log.retention.check.interval.ms":"{interval}"}},"topic":{{"retention.ms":"1000000000"}}}}'
        job = world("2 +0", **kept(segments, configs))
        one = job.one()
        assert (one.loss_ms, one.loss_latest_ms) == (1_000_001_001, 1_000_001_001 + int(interval))
        assert (one.loss_records_least, one.loss_bytes_least) == (4, 400)
        assert (one.loss_records, one.loss_bytes) == most


def dated(job: GroupJob) -> list[str]:
    """The series with a time at which something is lost."""
    return [name for name in job.page() if name.startswith(("group_loss_", "group_endangered_", "group_partition_loss_"))]


def losing(job: GroupJob) -> list[str]:
    """How severe it is that the group will lose records, of each partition where it will."""
    detail = job.about()
    return [each.severity for each in detail.findings if each.verdict == "will_lose"]


def test_what_a_broker_without_a_process_would_delete_waits_for_its_start() -> None:
    """When the limit has passed, its first check takes it; before that nothing is said of it but where it waits."""
    job = stake("2 +0")
    runs = job.one()
    assert dated(job)
    job.table.set_context(away=frozenset({1}))
    job.play("+60")
    early = job.one()
    assert (early.loss_ms, early.loss_latest_ms, early.loss_start_of, early.loss_records_least) == (-1, -1, 1, -1)
    assert not losing(job)
    job.round(runs.loss_ms / 1000 - job.now)
    due = job.one()
    assert (due.loss_ms, due.loss_start_of, losing(job)) == (-1, 1, ["info"])
    assert (due.loss_records_least, due.loss_bytes_least, due.loss_records) == (4, 400, -1)
    assert not dated(job)
    detail = job.about()
    assert (detail.summary.loss_ms, detail.summary.loss_start_of) == (-1, 1)
    job.table.set_context(away=frozenset())
    job.play("+0")
    assert (job.one().loss_ms, job.one().loss_start_of) == (runs.loss_ms, -1)


def grows(bytes_a_second: int, seconds: int, *, every: int) -> tuple[GroupJob, float]:
    """A log that had 1,000 bytes for a day, and grows since then; and when its first segment is beyond its size, Unix milliseconds.

    The group has read nothing.
    """
    marks = kept([TWO[0], (6, 400, 2_000, 2_000)], '{"topic":{"retention.bytes":"20000","retention.ms":"-1"}}')
    job = world(kinds=["data"] * 1000, **marks)
    job.now = 86_400.0
    job.play("2 +0")
    for second in range(every, seconds + 1, every):
        grown = second * bytes_a_second
        job.put(end=10 + grown // BATCH_BYTES, **marks | {"active_position": 400 + grown})
        job.round(every)
    return job, 1000 * (86_400 + (20_000 - 400) / bytes_a_second)


@each_row(("bytes_a_second", "every"), [(100, 1), (20, 5), (20, 15), (10, 30)])
def test_by_its_size_a_log_loses_what_it_does_at_the_rate_of_the_last_minutes(bytes_a_second: int, every: int) -> None:
    job, due_ms = grows(bytes_a_second, 120, every=every)
    one = job.one()
    assert one.loss_by_size
    assert abs(one.loss_ms - due_ms) <= 2000
    silent = [int(job.round(seconds).found.loss_ms[0]) for seconds in (200, 200)]
    assert one.loss_ms < silent[0]
    assert silent[1] == -1  # by what its segments show: it has stopped


def test_a_list_of_groups_says_that_limits_are_assumed_as_each_of_them_does() -> None:
    for configs, there in (("", True), (LONG, False)):
        job = world("2 +0", **kept(configs=configs))
        (row,) = listed(job)
        found = job.about()
        assert (row.limits_assumed, found.summary.limits_assumed, job.one().limits_assumed) == (there,) * 3


def test_a_log_that_commits_name_by_its_name_and_by_its_topic_id_is_one_log() -> None:
    job = world("2", topic_id=TOPIC_ID)
    job.agents["a1"].commit(3, group="other", topic="", topic_id=TOPIC_ID)
    assert job.round().logs.topics == ["orders", "orders"]
    for group, committed in (("g", 2), ("other", 3)):
        found = job.about(group)
        assert [(each.topic, each.committed) for each in found.partitions] == [("orders", committed)]


def test_an_agent_that_does_not_answer_takes_nothing_away_that_the_job_knows() -> None:
    job = world("2 +0 away")
    one = job.one()
    assert (one.lag_records_read_committed, one.next_batch_bytes, one.batch) == (8, BATCH_BYTES, None)


def test_of_what_is_below_the_log_start_records_alone_are_lost_as_far_as_they_are_on_disk() -> None:
    for log_start, lost in ((2, 0), (4, 2)):
        job = world("0 +0", kinds=["aborted", "control", *["data"] * 8], log_start_offset=log_start)
        one = job.one()
        assert (one.lost_offsets, one.lost_records) == (log_start, lost)
    job = world(log_start_offset=4)
    job.agents["a1"].logs["orders", 0] = Deleted(["data"] * 10)
    job.play("0 +0")
    assert (job.one().lost_offsets, job.one().lost_records) == (4, -1)


class Deleted(Records):
    """A log whose segments from before the log start are not on disk any more."""

    def position(self, offset: int, upto: int, *, reads_uncommitted: bool = False) -> Row:
        return super().position(offset, upto, reads_uncommitted=reads_uncommitted) | ({"state": "BELOW"} if offset < 4 else {})


class BegunAgain(Records):
    """A log whose counts begin anew at some offset: those before it and those after it have nothing in common."""

    anew = 0

    def position(self, offset: int, upto: int, *, reads_uncommitted: bool = False) -> Row:
        return super().position(offset, upto, reads_uncommitted=reads_uncommitted) | {"edition": "e2" if offset >= self.anew else "e1"}


def begins_again(job: GroupJob, offset: int) -> None:
    records = BegunAgain(job.agents["a1"].logs["orders", 0].kinds)
    records.anew = offset
    job.agents["a1"].logs["orders", 0] = records


def test_counts_that_have_nothing_in_common_make_no_number() -> None:
    for offset, lost in ((5, 4), (3, -1), (0, 4), (11, 4)):
        job = world(log_start_offset=4)
        begins_again(job, offset)
        job.play("0 +0")
        assert (job.one().lost_offsets, job.one().lost_records) == (4, lost)
    job = stake("2 +0")
    for offset, at_stake in ((7, (4, 400)), (6, (-1, -1)), (4, (-1, -1)), (2, (4, 400))):
        begins_again(job, offset)
        assert (job.one().loss_records, job.one().loss_bytes) == at_stake


def test_commits_that_wait_are_shown_with_their_partition() -> None:
    job = world("3")
    job.agents["a1"].pending = [WAITING]
    job.play("+0")
    (waits,) = job.one().pending
    assert (waits.producer_id, waits.offset, waits.coordinator) == (9, 5, 0)


def test_rates_show_who_is_faster() -> None:
    job = world(end=10, kinds=["data"] * 1000)
    agent = job.agents["a1"]
    job.play("0 +0")
    for step in range(1, 90):
        job.put(end=10 + 10 * step)
        agent.commit(5 * step)
        job.play("+10")
    one = job.one()
    assert one.appended_rate > 1.9 * one.consumed_rate
    assert abs(one.consumed_rate - 0.5) < 0.05


def test_partitions_that_have_only_commits_of_an_open_transaction_are_shown() -> None:
    job = world()
    job.agents["a1"].pending = [WAITING, WAITING | {"partition": 4, "offset": 7}]
    job.play("+0")
    found = job.about()
    assert (found.summary.partitions, found.summary.unknown, found.summary.pending) == (2, 2, 2)
    rows = [(each.topic, each.partition, each.committed, each.unknown, [of.offset for of in each.pending]) for each in found.partitions]
    assert rows == [("orders", 0, -1, "not_committed", [5]), ("orders", 4, -1, "not_committed", [7])]
    job.play("3 +0")
    found = job.about()
    assert [(each.partition, each.committed, len(each.pending)) for each in found.partitions] == [(0, 3, 1), (4, -1, 1)]


def test_since_when_a_group_has_stopped_is_known_if_it_was_seen_to_move() -> None:
    job = world("3@1000 +0 4@1005 +10")
    job.round(STOPPED_MS / 1000)
    one = job.one()
    assert (one.stopped_since_ms, one.stopped_earlier) == (1_005_000, False)


def test_since_when_a_record_is_readable_is_known_if_there_was_none_before() -> None:
    job = world("3@900 +0 end=10 +10", end=3, kinds=["data"] * 10)
    job.round(STOPPED_MS / 1000)
    one = job.one()
    assert (one.stopped_since_ms, one.stopped_earlier) == (1_010_000, False)


def test_a_group_that_had_read_everything_stands_still_only_since_there_is_a_record_again() -> None:
    job = world(kinds=["data"] * 12)
    job.play("3@900 +0 10@1005")
    assert job.round(10).progress.stopped_since_ms.tolist() == [-1]
    job.round(STOPPED_MS / 1000)
    job.play("end=12")
    progress = job.round(10).progress
    assert (progress.stopped_since_ms.tolist(), progress.stopped_earlier.tolist()) == ([1_020_000 + STOPPED_MS], [False])
    assert job.page()["group_stopped_partitions{g,orders}"] == 0


@each_row(
    ("commit_ms", "since_ms"),
    [
        (900_000, 1_000_000),  # older than the round before, which did not have it: it came late
        (1_005_000, 1_005_000),
        (9_000_000, 1_010_000),  # by a clock that is ahead
        (-1, 1_010_000),
    ],
)
def test_a_group_stands_still_since_a_time_between_two_rounds(commit_ms: int, since_ms: int) -> None:
    job = world("3@800 +0")
    job.agents["a1"].commit(4, commit_ms=commit_ms)
    assert job.round(10).progress.stopped_since_ms.tolist() == [since_ms]


NOW_MS = 1_000_000
TIMEOUT_MS = 60_000


def test_the_transaction_that_holds_a_partition_is_named_however_young_it_is_and_whether_it_has_a_timeout_or_none() -> None:
    for seconds, timeout_ms, deadline_ms in (
        (1, TIMEOUT_MS, NOW_MS - 2000 + TIMEOUT_MS),
        (400, TIMEOUT_MS, NOW_MS - 2000 + TIMEOUT_MS),
        (1, NEVER_MS, -1),
    ):
        job = world("4", end=10, transactional=True, transactions=opened(4, seconds))
        entry = {"transactional_id": "pay", "producer_id": 9, "state": "Ongoing", "timeout_ms": timeout_ms, "start_ms": NOW_MS - 2000}
        job.table.apply(states(coordinator(entry, agent="a1", broker=1)))
        job.play("+0")
        one = job.one()
        assert one.held
        assert one.held_by is not None
        assert (one.held_by.producer_id, one.held_by.first_offset, one.held_by.transactional_id) == (9, 4, "pay")
        assert (one.held_by.start_ms, one.held_by.deadline_ms) == (NOW_MS - 2000, deadline_ms)


def test_counts_up_to_an_earlier_last_stable_offset_make_no_lag() -> None:
    job = world("2", end=10, transactional=True, transactions=opened(4, 10))
    assert job.round().found.lags.read_committed.tolist() == [2]
    job.put(end=10, transactional=True)
    job.play("away")
    assert job.round(1).found.lags.read_committed.tolist() == [-1]
    job.play("back")
    assert job.round(1).found.lags.read_committed.tolist() == [8]


def test_an_open_transaction_holds_up_no_share_group() -> None:
    job = world(end=10, topic_id=TOPIC_ID, transactional=True, transactions=opened(4, 1))
    job.put("__share_group_state", end=1000)
    job.play("4")
    job.agents["a1"].commit(4, group="s", share=True, topic="", topic_id=TOPIC_ID)
    job.play("+0")
    found = job.page()
    assert (found["group_held_partitions{g,orders}"], found["group_held_partitions{s,orders}"]) == (1, 0)
    shared = job.about("s")
    assert [(each.held, each.held_by, each.lag_records_read_uncommitted) for each in shared.partitions] == [(False, None, 6)]


def test_since_when_commits_wait_is_that_of_their_transactions_first_batch_else_their_own() -> None:
    job = world("3")
    job.agents["a1"].pending = [WAITING | {"commit_ms": NOW_MS - 500}]
    job.play("+0")
    (waits,) = job.one().pending  # its transaction has ended already, as the table has it
    assert (waits.since_ms, waits.start_ms) == (NOW_MS - 500, -1)
    job.put("__consumer_offsets", end=1000, transactional=True, transactions=opened(20, 30))
    (waits,) = job.one().pending
    assert (waits.since_ms, waits.start_ms, waits.first_offset) == (NOW_MS - 30_000, NOW_MS - 30_000, 20)
    found = job.about()
    assert found.summary.oldest_pending_ms == NOW_MS - 500


@pytest.mark.parametrize(("large_bytes", "checked"), [(BATCH_BYTES - 1, True), (BATCH_BYTES, False)])
def test_a_next_batch_is_checked_that_may_be_too_large(large_bytes: int, checked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_details, "LARGE_BYTES", large_bytes)
    job = world("3 +0")
    assert (job.one().batch is not None) == checked


def test_of_a_log_that_is_damaged_the_batch_is_checked_that_the_group_stands_at() -> None:
    for committed, log_start, offset in ((3, 0, 3), (3, 5, 5)):
        job = world(log_start_offset=log_start)
        job.agents["a1"].commit(committed)
        job.play("state=DAMAGED +0")
        assert job.one().unknown == "damaged"
        assert job.agents["a1"].checked[-1] == ("orders", 0, offset)


def test_one_record_that_was_deleted_unread_is_looked_up_too() -> None:
    job = world("0 +0", log_start_offset=1)
    one = job.one()
    assert (one.lost_offsets, one.lost_records) == (1, 1)


def test_records_of_an_open_transaction_are_at_stake_and_none_above_the_high_watermark() -> None:
    job = stake("2 +0", transactional=True, transactions=opened(4, 10))
    one = job.one()
    assert (one.lag_records_read_committed, one.loss_records, one.loss_bytes) == (2, 4, 400)


def test_records_above_the_high_watermark_are_not_at_stake() -> None:
    job = world("2 +0", **kept([TWO[0], (6, 400, 2_000, 2_000)]), high_watermark=8)
    one = job.one()
    assert (one.high_watermark, one.loss_records, one.loss_bytes) == (8, 6, 600)


def test_the_sums_of_a_group_are_those_of_its_partitions() -> None:
    job = world()
    agent = job.agents["a1"]
    agent.logs["orders", 1] = Records(["data"] * 8)
    job.put(partition=1, end=8, log_start_offset=3)
    job.play("4@900 2/1@950 1/7@800")
    agent.pending = [WAITING | {"commit_ms": 990_000}, WAITING | {"commit_ms": 980_000, "partition": 9}]
    job.play("+0")
    (of,) = listed(job)
    found = job.about()
    for each in (of, found.summary):
        assert (each.partitions, each.unknown, each.below_start, each.stopped, each.held, each.beyond_end) == (4, 2, 1, 0, 0, 0)
        assert (each.lag_offsets, each.lag_records_read_committed, each.lag_records_read_uncommitted, each.lag_bytes) == (12, 11, 11, 1100)
        assert (each.oldest_timestamp_ms, each.oldest_append_ms, each.last_commit_ms) == (3000, -1, 950_000)
        assert (each.pending, each.oldest_pending_ms) == (2, 980_000)
    job.round(STOPPED_MS / 1000)
    assert listed(job)[0].stopped == 2


def test_a_page_of_groups_counts_what_is_left_out() -> None:
    job = world()
    for name in ("a", "b", "c"):
        job.agents["a1"].commit(3, group=name)
    job.board.publish(replace(job.round(), omitted=4))
    answers = job.answers()
    assert answers is not None
    page = answers.page(PageRequest(sort="group", order="asc", offset=1, limit=1))
    assert ([each.group for each in page.rows], page.total, page.matched, page.omitted) == (["b"], 3, 3, 4)
    hidden = replace(answers, results=GroupResults(answers.snapshot, lambda name: name != "b"))
    assert [each.group for each in hidden.page(PageRequest(sort="group", order="asc")).rows] == ["a", "c"]
    assert hidden.named("b") is None
