"""A job whose producers' clocks are wrong: what is held, stopped, late or in danger is so by times that were seen, or by those of files."""

import json
from typing import Any

import numpy as np
import pytest

from streaming.common.rows import SEGMENTS, TRANSACTIONS
from streaming.pages.api.paging import PageRequest
from tests.consumers.group_agents import GROUP
from tests.consumers.group_world import GroupJob, world
from tests.tables import each_row
from tests.view.reported import Facts
from tests.worlds.transactions import transaction

MINUTE = 60_000
DAY = 24 * 60 * MINUTE
NOW_MS = 100 * DAY
HELD_SINCE = "group_held_since_timestamp_seconds{g,orders}"


def held_from(first: int, begun_ms: int = NOW_MS - MINUTE) -> bytes:
    """The column of a log in which a transaction is open from an offset on."""
    return np.array([transaction(9, first, age=0, start_ms=begun_ms, last_ms=begun_ms)], TRANSACTIONS).tobytes()


def now(**values: Any) -> GroupJob:
    """Ten records, and a job that has looked at nothing yet."""
    job = world(**values)
    job.now = NOW_MS / 1000
    job.agents["a1"].groups_ = [GROUP]
    return job


def stamped(job: GroupJob, at_ms: int, *, earliest_ms: int, latest_ms: int) -> GroupJob:
    """All records carry that time, and were appended between the two others."""
    log = job.agents["a1"].logs["orders", 0]
    log.times = dict.fromkeys(range(10), at_ms)
    log.earliest, log.latest = dict.fromkeys(range(10), earliest_ms), dict.fromkeys(range(10), latest_ms)
    return job


@pytest.mark.parametrize("stamp_ms", [NOW_MS - DAY, NOW_MS + DAY, -1])
def test_transactions_that_follow_each_other_hold_a_healthy_group_for_no_face(stamp_ms: int) -> None:
    """Each holds it for a moment, at every round; the next one that stays holds it in the metric, the list and the verdict at once."""
    job = now()

    def faces() -> tuple[float, float | None, int, str, int]:
        page, (row,) = job.page(), job.answers().page(PageRequest(sort="held", order="desc")).rows
        return page["group_held_partitions{g,orders}"], page.get(HELD_SINCE), row.held, row.verdict, row.since_ms

    for first in range(4, 8):
        now_ms = round(job.now * 1000)
        job.put(end=10, transactional=True, transactions=held_from(first, now_ms - 2_000))
        stamped(job, stamp_ms, earliest_ms=now_ms - 2_000, latest_ms=now_ms - 1_000)
        job.agents["a1"].commit(first)
        assert job.round().found.lags.held.tolist() == [True]
        assert faces() == (0, None, 0, "fine", -1), "a wait of a moment"
        job.now += 15
    begun_ms = now_ms - 1_000
    job.play("+0")
    assert faces() == (1, begun_ms / 1000, 1, "held", begun_ms)


@pytest.mark.parametrize("stamp_ms", [NOW_MS - DAY, NOW_MS + DAY, -1])
def test_a_group_is_held_since_its_next_record_was_appended_at_the_latest_whatever_its_stamp_says(stamp_ms: int) -> None:
    job = now(transactional=True, transactions=held_from(4))
    stamped(job, stamp_ms, earliest_ms=NOW_MS - DAY, latest_ms=NOW_MS - MINUTE)
    job.play("4 +0")
    (finding,) = job.about().findings
    assert (finding.verdict, finding.severity, finding.since_ms) == ("held", "", NOW_MS - MINUTE)
    assert job.page()[HELD_SINCE] == (NOW_MS - MINUTE) / 1000
    for seconds, severity in ((14 * 60, ""), (1, "warning")):
        job.round(seconds)
        (finding, *_) = job.about().findings
        assert (finding.verdict, finding.severity, finding.since_ms) == ("held", severity, NOW_MS - MINUTE), seconds
        assert job.page()[HELD_SINCE] == (NOW_MS - MINUTE) / 1000


def test_it_is_held_anew_by_the_next_transaction_and_by_none_if_it_reads_on() -> None:
    job = now(transactional=True, transactions=held_from(4))
    stamped(job, NOW_MS, earliest_ms=NOW_MS, latest_ms=NOW_MS)
    job.agents["a1"].logs["orders", 0].latest[6] = NOW_MS + 3 * MINUTE
    job.play("4 +0")
    job.put(transactional=True, transactions=held_from(6, NOW_MS + MINUTE), end=10)
    job.play("6")
    job.round(5 * 60)
    assert job.page()[HELD_SINCE] == (NOW_MS + 3 * MINUTE) / 1000
    job.put(end=10, transactional=True)
    job.play("+60")
    assert HELD_SINCE not in job.page()


def test_what_is_not_known_for_a_round_is_held_as_long() -> None:
    """The positions are asked anew then, and an agent that has not seen the append knows a later bound."""
    job = now(transactional=True, transactions=held_from(4))
    stamped(job, NOW_MS - DAY, earliest_ms=0, latest_ms=NOW_MS)
    job.play("4 +0 away")
    job.agents["a1"].logs["orders", 0].kinds.append("data")
    job.put(end=11, transactional=True, transactions=held_from(4))
    job.play("+60")
    assert HELD_SINCE not in job.page()
    job.play("back")
    stamped(job, NOW_MS - DAY, earliest_ms=0, latest_ms=NOW_MS + MINUTE)
    job.play("+15*8")
    assert job.page()[HELD_SINCE] == NOW_MS / 1000


def losing(left_s: int) -> GroupJob:
    """A group whose next record is deleted in so many seconds."""
    job = now()
    first = np.array([(0, 600, NOW_MS + 1000 * (left_s - 7200), NOW_MS - 1), (6, 400, NOW_MS, NOW_MS)], SEGMENTS)
    configs = json.dumps({"topic": {"retention.ms": "7200000"}})
    facts = Facts(segments=first, configs=configs, replicas=(1,), isr=(1,)).encode()
    job.put(end=10, facts=facts, active_segment=6, active_position=400)
    job.play("3")
    return job


@each_row(
    "stamp_ms, earliest_ms, latest_ms, verdict, severity, endangered",
    [
        (NOW_MS - DAY, NOW_MS - MINUTE, NOW_MS, "fine", "", False),  # it came a moment ago, so the group keeps up
        (NOW_MS + DAY, NOW_MS - MINUTE, NOW_MS, "fine", "", False),
        (NOW_MS - DAY, NOW_MS - DAY, NOW_MS, "unknown", "", False),  # or perhaps not
        (NOW_MS + DAY, 0, NOW_MS - MINUTE, "unknown", "", False),
        (NOW_MS + DAY, NOW_MS - DAY, NOW_MS - 90 * MINUTE, "will_lose", "critical", True),  # it is old whatever its stamp says
        (-1, 0, NOW_MS - 90 * MINUTE, "will_lose", "critical", True),
    ],
)
def test_a_group_is_in_danger_by_the_times_of_files_alone(
    stamp_ms: int, earliest_ms: int, latest_ms: int, verdict: str, severity: str, *, endangered: bool
) -> None:
    job = stamped(losing(3_600), stamp_ms, earliest_ms=earliest_ms, latest_ms=latest_ms)
    job.play("+0")
    found = job.about()
    assert (found.summary.verdict, found.summary.severity) == (verdict, severity)
    assert ("group_endangered_timestamp_seconds{group,g,orders}" in job.page()) == endangered
    assert found.partitions[0].undated


@pytest.mark.parametrize("stamp_ms", [NOW_MS - DAY, NOW_MS + DAY, -1])
def test_it_has_stopped_after_the_time_for_which_the_job_has_seen_it_stand(stamp_ms: int) -> None:
    job = stamped(now(), stamp_ms, earliest_ms=0, latest_ms=NOW_MS)
    job.agents["a1"].commit(3, commit_ms=NOW_MS)
    job.play("+0")
    assert job.about().summary.verdict == "fine"
    job.play("+599")
    assert job.about().summary.stopped == 0
    job.play("+1")
    assert job.about().summary.stopped == 1
