"""Which groups read uncommitted, and that a job judges them by what they get."""

import pytest

from streaming.broker.protocol.group_json import BatchCheck
from streaming.cluster.consumers.group_snapshot import GroupSnapshot
from streaming.cluster.consumers.group_uncommitted import LOG_START_MS
from tests.consumers.group_world import GroupJob, held_back, opened, world
from tests.tables import each_row

CLOSED = -1


def later(job: GroupJob) -> GroupSnapshot:
    """When a log start that a client had moved before would be known."""
    job.play("+0")
    return job.round(LOG_START_MS / 1000)


def isolations(job: GroupJob) -> list[str]:
    return [of.isolation for of in job.about().partitions]


@each_row(("committed", "isolation"), [(3, ""), (4, ""), (5, "read_uncommitted"), (10, "read_uncommitted"), (11, "")])
def test_only_an_offset_behind_the_first_record_of_an_open_transaction_proves_it(committed: int, isolation: str) -> None:
    job = held_back(4)
    job.agents["a1"].commit(committed)
    job.play("+0")
    assert isolations(job) == [""]
    later(job)
    assert isolations(job) == [isolation]
    assert job.about().summary.isolation == isolation


def test_a_transaction_whose_marker_is_there_proves_nothing() -> None:
    """The high watermark that is known may be older than the one up to which a consumer of committed data has read."""
    job = world(kinds=["data"] * 9 + ["control"], transactional=True, transactions=opened(4, 400, marker=9))
    job.put(end=10, high_watermark=9, transactional=True, transactions=opened(4, 400, marker=9))
    job.play("8")
    assert later(job).logs.last_stable.tolist() == [4]
    assert isolations(job) == [""]


@each_row(("known_after_s",), [(0,), (1,), (60,)])
def test_a_group_that_was_thrown_to_the_log_start_behind_the_first_record_of_a_transaction_proves_nothing(known_after_s: float) -> None:
    """The last stable offset is the log start then. That of a deletion by a client is known when the broker has written its checkpoint."""
    job = held_back(4, "7")
    if known_after_s:
        job.play("+0")
        job.round(known_after_s)
    job.put(end=10, log_start_offset=7, transactional=True, transactions=opened(4, 400))
    job.play("+15*45")
    assert (isolations(job), job.about().summary.verdict) == ([""], "held")


def test_a_group_that_reads_uncommitted_stops_and_is_never_held(monkeypatch: pytest.MonkeyPatch) -> None:
    job = held_back(4)
    monkeypatch.setattr(job.agents["a1"], "batch", lambda _: BatchCheck(sound=True))
    job.play("6")
    snapshot = later(job)
    assert (snapshot.found.lags.held.tolist(), snapshot.found.lags.left.tolist(), snapshot.found.lags.next_offset.tolist()) == (
        [False],
        [4],
        [6],
    )
    assert job.page()["group_held_partitions{g,orders}"] == 0
    job.play("+15*45")
    assert job.page()["group_stopped_partitions{g,orders}"] == 1
    found = job.about()
    assert (found.summary.verdict, found.summary.lag, found.partitions[0].lag) == ("stopped", 4, 4)
    assert "4 records left with read_uncommitted, as an offset behind an open transaction shows" in found.findings[0].text


def test_one_that_reads_committed_and_stands_at_the_same_transaction_is_held() -> None:
    job = held_back(4, "4 +15*45")
    found = job.about()
    assert (found.summary.verdict, found.summary.isolation, found.summary.lag) == ("held", "", 0)


def test_what_one_partition_proves_counts_for_all_of_the_group_and_for_no_other_group() -> None:
    job = held_back(4)
    job.agents["a1"].logs["orders", 1] = job.agents["a1"].logs["orders", 0]
    job.put(partition=1, end=10, transactional=True, transactions=opened(4, 400))
    for group in ("g", "other"):
        job.agents["a1"].commit(4, group=group)
    job.play("5/1")
    later(job)
    assert isolations(job) == ["read_uncommitted"] * 2
    assert [of.held for of in job.about().partitions] == [False] * 2
    assert [(of.held, of.isolation) for of in job.about("other").partitions] == [(True, "")]


def test_it_is_remembered_when_the_transaction_has_ended_and_then_aborted_records_are_left_too() -> None:
    job = held_back(4, kinds=["data"] * 4 + ["aborted"] * 5 + ["data"])
    job.play("6")
    later(job)
    job.agents["a1"].logs["orders", 0].kinds.append("control")
    job.put(end=11, transactional=True)
    snapshot = job.round(15)
    assert (snapshot.found.lags.left.tolist(), snapshot.found.lags.next_offset.tolist()) == ([4], [6])
    job.play("8")
    assert job.round(15).counters.committed_records.tolist() == [2]
    assert job.about().summary.lag == 2


def test_it_is_forgotten_with_the_group() -> None:
    job = held_back(4, "6")
    later(job)
    job.play("-1 +15")
    job.put(end=10, transactional=True)
    job.play("4 +15")
    assert isolations(job) == [""]
