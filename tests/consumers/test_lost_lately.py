"""What partitions have lost within the last 24 hours: kept by hours, and told of a group that has gone on."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streaming.cluster.consumers.group_counting import LOST_LATELY_MS, LossMemory
from tests.consumers.group_world import GroupJob, world

HOUR = 3_600_000
DAY_SECONDS = LOST_LATELY_MS / 1000
LOSSES = st.lists(st.tuples(st.integers(0, 5 * HOUR), st.integers(0, 3), st.integers(0, 9), st.integers(0, 9)), max_size=30)
"""Of each loss: how long after the one before, its commit, and what was lost."""


@given(LOSSES, st.integers(0, 30 * HOUR))
def test_what_is_kept_is_what_the_losses_of_a_day_add_up_to_by_whole_hours(losses: list[tuple[int, int, int, int]], later: int) -> None:
    memory, hours, now = LossMemory(), {}, 0
    key = np.arange(4)
    for after, commit, records, offsets in losses:
        now += after
        memory.add(np.array([commit]), np.array([records]), np.array([offsets]), now)
        before = hours.get((commit, now // HOUR), (0, 0, 0))
        hours[commit, now // HOUR] = (before[0] + records, before[1] + offsets, now)
    now += later
    memory.add(key[:0], key[:0], key[:0], now)
    lately = memory.of(key)
    for commit in key.tolist():
        within = [each for (of, _), each in hours.items() if of == commit and now - each[2] <= LOST_LATELY_MS]
        sums = sum(each[0] for each in within), sum(each[1] for each in within), max((each[2] for each in within), default=-1)
        assert (lately.records[commit], lately.offsets[commit], lately.last_ms[commit]) == sums


def test_nothing_was_lost_at_a_time_to_come_and_what_a_commit_lost_goes_with_it() -> None:
    memory, keys = LossMemory(), np.array([3, 7])
    memory.add(keys, np.array([1, 2]), np.array([0, 5]), 5000)
    memory.add(keys[:0], keys[:0], keys[:0], 4000)
    assert memory.of(keys).last_ms.tolist() == [4000, 4000]
    memory.keep(np.array([7, 9]))
    lately = memory.of(np.array([3, 7, 9]))
    assert (lately.records.tolist(), lately.offsets.tolist(), lately.last_ms.tolist()) == ([0, 2, 0], [0, 5, 0], [-1, 4000, -1])


def lately(job: GroupJob) -> tuple[int, int, int]:
    partition = job.one()
    return partition.lost_lately_records, partition.lost_lately_offsets, partition.lost_lately_ms


def verdicts(job: GroupJob) -> list[tuple[str, str, str]]:
    detail = job.about()
    return [(each.verdict, each.severity, each.text) for each in detail.findings]


def test_what_a_group_has_lost_is_shown_for_a_day_after_it_has_gone_on() -> None:
    job = world("1 +0", kinds=["data", "control", *["data"] * 18], end=20)
    assert lately(job) == (0, 0, -1)
    job.play("end=20 start=4 +15")
    first_ms = round(job.now * 1000)
    job.play("20 +15")
    assert lately(job) == (2, 0, first_ms)
    ((verdict, severity, text),) = verdicts(job)
    assert (verdict, severity) == ("lost", "warning")
    assert text.startswith("within the last 24 hours at least 2 records were deleted unread, last at ")
    assert text.endswith("; it has gone on behind them")
    job.play("+900")
    assert [(verdict, severity) for verdict, severity, _ in verdicts(job)] == [("lost", "warning")]
    job.round(DAY_SECONDS - 915)
    assert lately(job) == (2, 0, first_ms)
    assert [verdict for verdict, _, _ in verdicts(job)] == ["lost"]
    job.play("+1")
    assert lately(job) == (0, 0, -1)
    assert [verdict for verdict, _, _ in verdicts(job)] == ["fine"]


def test_a_group_loses_since_the_first_of_its_losses_and_anew_a_day_after_the_last() -> None:
    job = world("1 +0", end=20)
    began = [round(job.now * 1000) + 15_000]

    def since() -> list[int]:
        detail = job.about()
        return [each.since_ms for each in detail.findings if each.verdict == "lost"]

    for start in (4, 6, 8):
        job.put(end=20, log_start_offset=start)
        job.play("+15")
        assert since() == began
    assert lately(job)[2] == round(job.now * 1000)
    for after, is_new in ((DAY_SECONDS, False), (DAY_SECONDS + 1, True)):
        start += 1
        job.put(end=20, log_start_offset=start)
        job.round(after)
        assert since() == ([round(job.now * 1000)] if is_new else began)


def test_what_is_counted_in_records_is_not_counted_in_offsets_too() -> None:
    job = world(end=20)
    job.play("1 +0 end=20 start=4 +15 edition=e2 end=20 start=9 +15*10")
    page = job.page()
    totals = page["group_lost_records_total{g,orders}"], page["group_lost_offsets_total{g,orders}"]
    assert totals == (3, 5), "3 offsets up to the first log start, 5 from there to the second: all 8 that the log start has passed"
    assert lately(job)[:2] == totals
    job.play("20 +15")
    assert "within the last 24 hours at least 3 records and up to 5 more were deleted unread" in verdicts(job)[0][2]


def test_a_loss_hides_no_lag_that_is_not_known_any_more() -> None:
    job = world("1 +0 end=20 start=4 +15 state=FILLING 7 +15", end=20)
    findings = verdicts(job)
    assert [verdict for verdict, _, _ in findings] == ["lost", "unknown"]
    assert "gone on" not in findings[0][2], "that is not known"
