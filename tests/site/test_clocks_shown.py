"""Times that a job shows: all of them are the wall's, however far the clock that nobody sets is from it."""

import json
from collections.abc import Iterator

import pytest

from streaming.cluster.consumers.group_snapshot import GroupBoard
from streaming.cluster.view.observer import AgentStatus, Observer, Versions
from streaming.cluster.view.table import Table
from streaming.pages.site.exporter import Exporter
from tests.clocks import Clock
from tests.exposition.reading import page, samples
from tests.site.served_job import Job, ask
from tests.view.rows import log, new_context, states

WALL = 1_800_000_000.0
STEADY = 64_796.85
"""As of a host that was started this morning."""

APART_MS = 366 * 86_400_000


@pytest.fixture
def clock() -> Clock:
    return Clock(STEADY)


@pytest.fixture
def job(clock: Clock) -> Iterator[Job]:
    table = Table(replicas="leaders", stale_after_s=300, series_limit=1000, context=new_context(), monotonic=clock)
    observer = Observer(query="q", versions=Versions(segtail="1", spark="4", python="3"), thresholds=[], started=WALL - 60, monotonic=clock)
    wall_now = round(WALL * 1000)
    table.apply(states(log(agent="a1", appended_bytes=5, last_append_ms=wall_now - 5000)))
    table.set_agents([])
    table.set_whole()
    exporter = Exporter(
        "127.0.0.1",
        0,
        table=table,
        observer=observer,
        groups=GroupBoard(monotonic=clock),
        clock=lambda: WALL + clock() - STEADY,
        healthy=lambda: True,
        scraped=lambda _: None,
        watched=lambda: None,
        monotonic=clock,
    )
    exporter.start()
    yield Job(table, observer, exporter)
    exporter.close()


def answered(job: Job, clock: Clock, name: str = "a1", *, behind: bool = False) -> None:
    """An agent has answered at this moment."""
    job.observer.begins(name)
    job.observer.published(name, f"j {name}", 100, clock())
    if not behind:
        job.observer.processed(name, f"j {name}", 100)
    job.observer.checked(WALL + clock() - STEADY)
    job.table.mark_agent(name, clock())
    job.observer.know([*(each for each in job.observer.agents if each.name != name), AgentStatus(name=name, up=True)], clock())
    job.table.set_reading(job.observer.reading())


def test_the_numbers_are_as_new_as_the_last_answer(job: Job, clock: Clock) -> None:
    answered(job, clock)
    clock.now += 7
    status = json.loads(ask(job, "/api/v1/status").body)
    assert status["at_ms"] - status["newest_ms"] == 7000
    assert "(7s ago)" in status["freshness"]


def test_of_agents_the_last_one_counts_and_one_of_which_nothing_is_known(job: Job, clock: Clock) -> None:
    answered(job, clock)
    clock.now += 20
    answered(job, clock, "a2")
    clock.now += 7
    status = json.loads(ask(job, "/api/v1/status").body)
    assert status["at_ms"] - status["newest_ms"] == 27_000
    clock.now += 3
    answered(job, clock, "a3", behind=True)
    assert json.loads(ask(job, "/api/v1/status").body)["newest_ms"] is None


PATHS = ("status", "problems", "partitions", "transactions", "retention", "partitions/orders/0", "cost", "disk")


def times(value: object, name: str = "") -> Iterator[tuple[str, float]]:
    """All that an answer has in milliseconds."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from times(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from times(each, name)
    elif name.endswith("_ms") and isinstance(value, int | float):
        yield name, value


DURATIONS = {
    *("behind_ms", "duration_ms", "check_interval_ms", "max_timestamp_ahead_ms", "segment_limit_ms", "transaction_timeout_ms"),
    *("retention_limit_ms", "retention_lag_ms", "retention_overdue_ms", "late_after_ms"),
}


def test_no_time_of_any_answer_is_of_the_other_clock(job: Job, clock: Clock) -> None:
    answered(job, clock)
    clock.now += 7
    now_ms = (WALL + 7) * 1000
    answers = {path: ask(job, f"/api/v1/{path}") for path in PATHS}
    assert {path: answer.body for path, answer in answers.items() if answer.status != 200} == {}
    found = {path: list(times(json.loads(answer.body))) for path, answer in answers.items()}
    assert {name for each in found.values() for name, _ in each} >= {"at_ms", "newest_ms", "started_ms", "last_append_ms"}
    odd = {(path, name, at) for path, each in found.items() for name, at in each if name not in DURATIONS}
    assert {each for each in odd if abs(each[2] - now_ms) > APART_MS} == set()


def test_no_time_of_the_metrics_is_of_the_other_clock(job: Job, clock: Clock) -> None:
    answered(job, clock)
    clock.now += 7
    shown = {name: value for (name, _), value in samples(page(job.table, job.observer, now=WALL + 7)).items() if "timestamp" in name}
    assert shown
    assert {name: at for name, at in shown.items() if abs(at - WALL) > APART_MS / 1000} == {}
