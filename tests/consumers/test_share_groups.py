"""Share groups in rounds: what they are done with after their start offset is neither left nor lost, and they move with it."""

from collections.abc import Sequence

import numpy as np

from streaming.common.rows import SEGMENTS
from tests.consumers.group_agents import BATCH_BYTES
from tests.consumers.group_world import STOPPED_MS, TOPIC_ID, GroupJob, world
from tests.tables import each_row
from tests.view.reported import Facts

TWENTY = ["data"] * 20


def sharing(kinds: Sequence[str] = TWENTY) -> GroupJob:
    """A job that watches a log, and the coordinator of share groups."""
    job = world(kinds=list(kinds), end=len(kinds), topic_id=TOPIC_ID)
    job.put("__share_group_state", end=1000)
    return job


def share(job: GroupJob, offset: int, *done: int, delivered: int | None = None, sent: bool = True) -> None:
    """The group's start offset; ``done``: first and last of each range after it. Agents of earlier versions do not tell these."""
    count = sum(last - first + 1 for first, last in zip(done[::2], done[1::2], strict=True))
    job.agents["a1"].commit(
        offset,
        group="s",
        share=True,
        topic="",
        topic_id=TOPIC_ID,
        delivered=count if delivered is None else delivered,
        done=list(done) if sent else None,
        commit_ms=round(1000 * job.now),
    )


def test_of_what_was_deleted_a_share_group_has_lost_what_it_was_not_done_with() -> None:
    """One record was released, eleven accepted, eight are left; then twelve are deleted."""
    job = sharing()
    share(job, 0, 1, 11)
    job.play("+0")
    job.put(end=20, topic_id=TOPIC_ID, log_start_offset=12)
    job.play("+1")
    of, page = job.one("s"), job.page()
    assert (of.verdict, of.lost_records, of.lost_offsets) == ("lost", 1, 1)
    assert (of.lag_records_read_committed, of.lag_offsets, of.next_offset) == (8, 9, 12)
    assert (page["group_lost_records_total{s,orders}"], page["group_lost_offsets_total{s,orders}"]) == (1, 0)
    share(job, 12)  # its leader has moved on
    job.play("+1")
    of, page = job.one("s"), job.page()
    assert (of.lost_offsets, of.lag_records_read_committed, of.lag_offsets) == (0, 8, 8)
    assert page["group_lost_records_total{s,orders}"] == 1
    share(job, 20)
    job.play("+1")
    assert job.page()["group_committed_records_total{s,orders}"] == 8, "nothing is counted twice"


def test_what_a_share_group_was_done_with_is_not_lost_at_all() -> None:
    job = sharing()
    share(job, 5, 6, 11)
    job.play("+0")
    share(job, 5, 5, 11)  # as its leader has it for a moment, before it moves the start offset
    job.put(end=20, topic_id=TOPIC_ID, log_start_offset=9)
    job.play("+1")
    of = job.one("s")
    assert (of.verdict, of.lost_records, of.lost_offsets, of.next_offset, of.lag) == ("catching_up", 0, 0, 12, 8)
    assert job.page()["group_lost_records_total{s,orders}"] == 0
    assert job.page()["group_committed_records_total{s,orders}"] == 1


def test_of_an_agent_that_does_not_send_what_is_done_the_loss_has_bounds() -> None:
    job = sharing()
    share(job, 0, 1, 11, sent=False)
    job.play("+0")
    job.put(end=20, topic_id=TOPIC_ID, log_start_offset=12)
    job.play("+1")
    of = job.one("s")
    assert (of.verdict, of.lost_records, of.lost_offsets, of.lag_records_read_committed) == ("lost", -1, 12, 8)
    assert job.page()["group_lost_records_total{s,orders}"] == 1, "so many at least"


def test_markers_among_what_is_done_leave_bounds_too() -> None:
    job = sharing(["data", "control", "data", "data", *["data"] * 4])
    share(job, 0, 1, 2)
    job.play("+0")
    job.put(end=8, topic_id=TOPIC_ID, log_start_offset=4)
    job.play("+1")
    of = job.one("s")
    assert (of.lost_records, of.lost_offsets) == (-1, 2), "one of the three records was done with, or two"
    assert job.page()["group_lost_records_total{s,orders}"] == 1


def test_of_what_is_done_nothing_is_left() -> None:
    job = sharing()
    share(job, 4, 4, 19)
    job.play("+0")
    of = job.one("s")
    assert (of.lag_records_read_committed, of.lag_offsets, of.lag_bytes, of.next_offset, of.verdict) == (0, 0, 0, -1, "fine")


@each_row(("end", "stopped"), [(9, 0), (8, 1)])
def test_a_share_group_whose_first_record_stays_locked_has_not_stopped_while_it_is_done_with_others(end: int, stopped: int) -> None:
    job = sharing()
    share(job, 4, 6, 8)
    job.play("+0")
    job.now += STOPPED_MS / 1000
    share(job, 4, 6, end)
    job.play("+1")
    assert job.page()["group_stopped_partitions{s,orders}"] == stopped
    assert job.page()["group_committed_records_total{s,orders}"] == end - 8
    job.round(STOPPED_MS / 1000)
    assert job.page()["group_stopped_partitions{s,orders}"] == 1


def test_a_share_group_goes_on_behind_what_it_is_done_with_from_its_start_offset_on() -> None:
    """Kafka keeps the old start offset for a while, with ranges after it that are done with."""
    job = sharing()
    share(job, 0, 0, 9)
    job.play("+0")
    of = job.one("s")
    assert (of.next_offset, of.lag_offsets, of.lag_records_read_committed, of.lost_offsets) == (10, 10, 10, 0)
    assert of.lag_bytes == 10 * BATCH_BYTES
    share(job, 10)
    job.play("+1")
    assert job.page()["group_committed_records_total{s,orders}"] == 0, "it was done with these before"


def test_a_marker_after_what_a_share_group_is_done_with_is_nothing_left() -> None:
    job = sharing([*["data"] * 10, "control"])
    share(job, 0, 0, 9)
    job.play("+0")
    of = job.one("s")
    assert (of.lag_records_read_committed, of.next_offset, of.verdict) == (0, -1, "fine")


def test_what_a_share_group_will_lose_is_not_what_it_is_done_with() -> None:
    segments = np.array([(0, 2000, 1_000, 2_000), (20, 0, -1, 2_000)], SEGMENTS)
    job = sharing()
    facts = Facts(segments=segments, configs='{"topic":{"retention.ms":"1000000000"}}').encode()
    job.put(end=20, topic_id=TOPIC_ID, facts=facts, active_segment=20, active_position=0)
    share(job, 0, 1, 11)
    job.play("+0")
    of = job.one("s")
    assert of.loss_ms > 0
    assert (of.lag_offsets, of.loss_records_least, of.loss_records) == (9, 9, 9)
