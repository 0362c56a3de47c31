"""Which consumer groups are looked at more closely: those whose sums show that something may be wrong, and no others."""

from typing import Any

import numpy as np
import pytest

from streaming.api import suspect_groups as module
from streaming.api.suspect_groups import suspect_groups
from streaming.metrics.view import view
from streaming.protocol.group_json import GroupDetail
from streaming.rows import SEGMENTS, TRANSACTIONS
from streaming.verdicts.group_problems import LOSS_WITHIN_MS
from tests.job.group_agents import WAITING
from tests.job.group_world import STOPPED_MS, GroupJob, world
from tests.metrics.test_transaction_columns import transaction
from tests.metrics.told import Facts

AN_HOUR_MS = 3_600_000


def suspects(job: GroupJob, hidden: str = "") -> tuple[list[GroupDetail], int]:
    snapshot = job.table.snapshot(job.now)
    latest = job.board.latest(round(job.now * 1000))
    return suspect_groups(latest, lambda name: name != hidden, view(snapshot), snapshot.topic_names, round(job.now * 1000), "k:9092")


def names(job: GroupJob, hidden: str = "") -> list[str]:
    return [each.summary.group for each in suspects(job, hidden)[0]]


def reading(**values: Any) -> GroupJob:
    job = world(**values)
    job.agents["a1"].commit(3, commit_ms=900_000)
    job.round()
    return job


def test_before_the_first_round_and_of_a_group_that_reads_nothing_is_suspected() -> None:
    assert suspects(world()) == ([], 0)
    assert names(reading()) == []


def test_a_group_that_has_stopped_lost_records_is_held_up_or_waits_is_looked_at() -> None:
    stopped = reading()
    stopped.round(STOPPED_MS / 1000)
    assert names(stopped) == ["g"]
    assert names(reading(log_start_offset=5)) == ["g"]
    opened = np.array([transaction(9, 3, age=0, start_ms=990_000, last_ms=990_000)], TRANSACTIONS).tobytes()
    assert names(reading(transactional=True, transactions=opened)) == ["g"]
    waits = reading()
    waits.agents["a1"].pending = [WAITING | {"group": "waits"}]
    waits.round()
    assert names(waits) == ["waits"]


@pytest.mark.parametrize(("late_ms", "found"), [(0, ["g"]), (1000, [])])
def test_a_group_that_loses_records_within_the_bound_is_looked_at(late_ms: int, found: list[str]) -> None:
    """The first segment is deleted when its largest record is as old as the limit, at the next check after five minutes at most."""
    job = reading()
    limit = LOSS_WITHIN_MS + late_ms
    segments = np.array([(0, 600, 1_000_000, 1_000_000), (6, 400, 1_000_000, 1_000_000)], SEGMENTS)
    facts = Facts(segments=segments, configs=f'{{"topic":{{"retention.ms":"{limit}"}}}}').encode()
    job.put(end=10, facts=facts, active_segment=6, active_position=400)
    loss_ms = int(job.round().found.loss_ms[0])
    assert loss_ms - round(job.now * 1000) in range(limit - AN_HOUR_MS, limit + AN_HOUR_MS)
    job.now = (loss_ms - LOSS_WITHIN_MS - late_ms) / 1000
    assert names(job) == found


def test_the_largest_lag_comes_first_and_what_is_left_out_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    job = world(log_start_offset=5)
    for name, offset in (("b", 4), ("a", 4), ("c", 1), ("hidden", 0)):
        job.agents["a1"].commit(offset, group=name)
    job.round()
    assert names(job, "hidden") == ["c", "a", "b"]
    found, omitted = suspects(job, "hidden")
    assert ({each.server for each in found}, omitted) == ({"k:9092"}, 0)
    monkeypatch.setattr(module, "MOST_GROUPS", 2)
    found, omitted = suspects(job, "hidden")
    assert ([each.summary.group for each in found], omitted) == (["c", "a"], 1)
