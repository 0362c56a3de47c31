"""A row and the problem that names it never disagree: both are made of the same cases."""

from collections.abc import Iterable

import numpy as np
import pytest

from streaming.broker.protocol.cluster_messages import AffectedPartition, PartitionCounts, Registered, TopicCounts
from streaming.broker.protocol.status_json import SEVERITIES, Problem
from streaming.cluster.verdicts import kinds
from streaming.cluster.verdicts.cases import (
    NOTHING,
    RETENTION_KINDS,
    Cases,
    RowVerdicts,
    Verdict,
    all_cases,
    row_verdicts,
)
from streaming.cluster.verdicts.circumstances import Circumstances
from streaming.cluster.verdicts.first_lines import freshness, unknown
from streaming.cluster.verdicts.incidents import problems
from streaming.cluster.verdicts.kinds import ORDER
from streaming.cluster.view.table import Replica
from streaming.kafka.formats.metadata_records import Phase
from tests.alert_worlds.worlds import world
from tests.tables import each_row
from tests.view.rows import log, new_table
from tests.worlds.hosts import broker, log_dir
from tests.worlds.problems import HOUR, NOW_MS, agent, around, well
from tests.worlds.retention import BELOW, facts
from tests.worlds.retention import orders as kept
from tests.worlds.transactions import coordinator, transaction
from tests.worlds.transactions import orders as opened

OF_ROWS = frozenset(
    {
        *(RETENTION_KINDS - {kinds.LIMITS_ASSUMED}),  # which is about a broker
        *(kinds.OFFLINE, kinds.UNCLEAN, kinds.LOG_CORRUPT, kinds.HANGING, kinds.UNDER_MIN_ISR, kinds.STUCK, kinds.STALLED),
        *(kinds.UNDER_REPLICATED, kinds.REPLICA_CORRUPT),
    }
)
"""Kinds of which each problem is about partitions of a topic."""


def named(every: Iterable[Problem], topic: str, partition: int, broker: int) -> set[str]:
    return {
        each.kind
        for each in every
        if each.topic == topic and each.partition in (partition, -1) and each.broker in (broker, -1) and each.kind in ORDER
    }


def verdicts_of(of: Circumstances) -> RowVerdicts:
    return row_verdicts(of.view, all_cases(of))


def only(of: Circumstances) -> Verdict:
    (verdict,) = verdicts_of(of).of_rows([0])
    return verdict


@each_row("seed", range(40))
def test_the_worst_of_a_row_is_in_a_problem_about_it(seed: int) -> None:
    of = world(seed).circumstances
    every, logs = problems(of), of.view.logs
    rows = range(len(logs.columns))
    for row, verdict in zip(rows, verdicts_of(of).of_rows(rows), strict=True):
        topic, partition, broker = of.topics[int(logs["topic"][row])], int(logs["partition"][row]), int(logs["broker"][row])
        if verdict.kind in OF_ROWS:
            assert verdict.name in named(every, topic, partition, broker)


@each_row("seed", range(40))
def test_a_problem_about_one_partition_is_no_worse_than_the_row_of_it(seed: int) -> None:
    of = world(seed).circumstances
    logs, rows = of.view.logs, verdicts_of(of)
    kinds_of = {each.name: each for each in OF_ROWS}
    for problem in problems(of):
        if problem.kind not in kinds_of or problem.partition < 0:
            continue
        there = [
            row
            for row in range(len(logs.columns))
            if of.topics[int(logs["topic"][row])] == problem.topic
            and int(logs["partition"][row]) == problem.partition
            and int(logs["broker"][row]) in (problem.broker, *(range(9) if problem.broker < 0 else ()))
        ]
        for verdict in rows.of_rows(there):
            assert verdict.kind is not None
            assert SEVERITIES.index(verdict.severity) <= SEVERITIES.index(problem.severity)


def test_of_two_kinds_the_more_severe_one_counts_and_of_one_kind_the_oldest() -> None:
    overdue = facts((0, 500, 9600), (50, 300, 10), configs=BELOW)
    assert only(around(agent(well()), table=new_table(kept(overdue)))) == Verdict(
        kind=kinds.RETENTION_OVERDUE, since_ms=NOW_MS - 9_600_000 + HOUR
    )
    both = new_table(kept(overdue, corrupt_batches=1))
    of = around(agent(well()), table=both)
    assert only(of) == Verdict(kind=kinds.LOG_CORRUPT)
    (of_retention,) = row_verdicts(of.view, all_cases(of), RETENTION_KINDS).of_rows([0])
    assert of_retention.kind is kinds.RETENTION_OVERDUE
    assert verdicts_of(of).severity.tolist() == [SEVERITIES.index("critical")]


def test_where_nothing_is_wrong_a_row_has_no_verdict() -> None:
    of = around(agent(well()), table=new_table(log()))
    assert only(of) is NOTHING
    assert (NOTHING.name, NOTHING.severity, NOTHING.since_ms) == ("", "", -1)
    assert verdicts_of(of).severity.tolist() == [-1]


def test_the_same_kind_twice_is_as_old_as_the_older_one() -> None:
    of = around(agent(well()), table=new_table(log(), log(partition=1)))
    stalled = [
        cases(kinds.RETENTION_BLOCKED, [0], [since], reason)
        for since, reason in ((NOW_MS - 5, "high_watermark"), (NOW_MS - 9, "head_of_line"), (-1, "remote_copy"))
    ]
    (first, second) = row_verdicts(of.view, stalled).of_rows([0, 1])
    assert (first.since_ms, second) == (NOW_MS - 9, NOTHING)


def cases(kind: kinds.ProblemKind, items: list[int], since_ms: list[int], reason: str = "") -> Cases:
    return Cases(kind=kind, items=np.array(items, np.int64), since_ms=np.array(since_ms, np.int64), reason=reason)


def kinds_in(of: Circumstances) -> list[str]:
    return sorted(each.kind for each in problems(of))


def test_what_passes_by_itself_blocks_retention_only_after_two_checks_of_the_broker() -> None:
    def of(past_s: int) -> list[str]:
        past = NOW_MS - 1000 * (3600 + past_s)
        held = facts((0, 500, 3600 + past_s), (50, 300, 10), configs=BELOW, oldest_timestamp=past, isr=(1, 2), replicas=(1, 2))
        return kinds_in(around(agent(well()), table=new_table(kept(held, high_watermark=40))))

    assert "retention_blocked" not in of(600)
    assert "retention_blocked" in of(601)


def test_what_the_scrub_finds_in_a_follower_is_a_problem_of_its_log_dir_alone() -> None:
    def of(leader: int) -> Circumstances:
        table = new_table(log(leader=leader, leader_epoch=5))
        table.set_scrubbed({Replica(1, "orders", 0): 3})
        return around(agent(well()), table=table)

    assert (kinds_in(of(1)), kinds_in(of(2))) == (["log_corrupt"], [])


def test_what_the_scrub_finds_in_a_log_that_is_not_read_yet_is_a_problem_too() -> None:
    table = new_table(log())
    table.set_scrubbed({Replica(1, "pay", 3): 1})
    assert [(each.kind, each.topic, each.partition) for each in problems(around(agent(well()), table=table))] == [("log_corrupt", "pay", 3)]


def test_a_problem_of_two_partitions_is_as_old_as_the_older_one() -> None:
    table = new_table(*(kept(facts((0, 500, age), (50, 300, 10), configs=BELOW), partition=age % 2) for age in (9600, 9601)))
    (problem,) = problems(around(agent(well()), table=table))
    assert (problem.kind, problem.partition, problem.since_ms) == ("retention_overdue", -1, NOW_MS - 9_601_000 + HOUR)


@each_row(("closed_s", "dirty_from", "expected"), [(10_801, 0, True), (10_800, 0, False), (10_801, 50, False)])
def test_a_log_waits_to_be_compacted_if_what_was_dirty_three_hours_ago_still_is(closed_s: int, dirty_from: int, expected: bool) -> None:
    compact = '{"static":{},"topic":{"cleanup.policy":"compact"}}'
    listed = facts((0, 500, closed_s), (50, 3000, 10), configs=compact, cleaner_checkpoint=dirty_from)
    assert ("compaction_stalled" in kinds_in(around(agent(well()), table=new_table(kept(listed))))) == expected


ONGOING = {"transactional_id": "pay-1", "producer_id": 7, "state": "Ongoing", "start_ms": NOW_MS - HOUR}


def overdue_on(*late: str) -> list[str]:
    """The kinds where a transaction of a log on broker 1 is overdue at a coordinator on broker 2, and some agents are late."""
    table = new_table(opened(transaction(7, 40, age=3600)), coordinator(ONGOING, broker=2, agent="a2", leader=2), coordinator_partitions=1)
    agents = (agent(well()), agent(broker(2, appended_ms=NOW_MS - 500), name="a2"))
    return kinds_in(around(*agents, table=table, lags=dict.fromkeys(late, (None, 31.0))))


def test_a_transaction_is_overdue_as_far_as_its_coordinator_is_read_and_its_log_is_not_reported_twice() -> None:
    assert overdue_on() == ["transaction_overdue"]
    assert overdue_on("a1") == ["behind", "transaction_overdue"]  # of the coordinator
    assert overdue_on("a2") == ["behind", "last_stable_offset_stalled"]


def test_commits_that_wait_are_no_readers_that_do() -> None:
    def of(topic: str) -> list[str]:
        writes = opened(transaction(7, 40, age=1000, silent=1))
        return kinds_in(around(agent(well()), table=new_table(writes | {"topic": topic}), lags={}))

    assert (of("orders"), of("__consumer_offsets")) == (["last_stable_offset_stalled"], [])


def test_a_stuck_transaction_is_none_on_a_broker_whose_numbers_are_old() -> None:
    table = new_table(opened(transaction(7, 40, age=1300)), coordinator_partitions=None)

    def of(lag_s: float) -> list[str]:
        return kinds_in(around(agent(well()), table=table, lags={"a1": (None, lag_s)}))

    assert (of(30.0), of(30.1)) == (["transaction_stuck"], ["behind"])


def test_logs_of_which_no_transaction_is_listed_have_a_problem_all_the_same() -> None:
    table = new_table(
        *(opened(transaction(7, 40, age=1300 + number), partition=number) for number in range(3)),
        coordinator_partitions=None,
        late_limit=1,
    )
    found = [(each.kind, each.partition, each.what) for each in problems(around(agent(well()), table=table))]
    assert [(kind, partition) for kind, partition, _ in found] == [("transaction_stuck", 2), ("transaction_stuck", -1)]
    assert found[1][2].endswith(": partitions 0, 1; these are not listed, because there are more than late_limit")


@pytest.mark.parametrize(
    ("phase", "expected"), [(Phase.RUNNING, True), (Phase.STARTING, True), (Phase.STOPPING, False), (Phase.DOWN, False)]
)
def test_only_where_a_broker_may_run_the_metadata_log_should_grow(phase: Phase, expected: bool) -> None:
    own = Registered(broker=1, fenced=phase is not Phase.RUNNING, epoch=5, phase=phase, since_ms=NOW_MS - HOUR, replicas=True)
    of = around(agent(well(appended_ms=NOW_MS - 40_000, registered=[own])))
    assert ("quorum_lost" in kinds_in(of)) == expected


def test_a_broker_that_writes_no_checkpoint_need_not_read_metadata() -> None:
    def of(age_ms: int) -> list[str]:
        return kinds_in(around(agent(well(appended_ms=NOW_MS - 40_000), log_dirs=(log_dir(checkpoint_ms=NOW_MS - age_ms),))))

    assert "quorum_lost" in of(60_000)
    assert "quorum_lost" not in of(60_001)


def test_one_of_two_agents_of_a_broker_is_enough_to_read_its_metadata() -> None:
    blind = agent(well(readable=False, metadata_offset=-1), name="a2")
    other = agent(broker(2, appended_ms=NOW_MS - 500), name="a3")
    assert kinds_in(around(agent(well()), blind)) == []
    assert kinds_in(around(blind, other)) == ["blind"]


def test_topics_that_lack_replicas_mark_the_rows_of_the_partitions_that_are_named() -> None:
    lacking = AffectedPartition(topic="orders", partition=1, problem="under_min_isr", leader=1, in_sync=[1], out_of_sync=[2], electable=[1])
    counts = PartitionCounts(topics=[TopicCounts(topic="orders", partitions=2, under_min_isr=1, under_replicated=1)], affected=[lacking])
    of = around(agent(well(counts=counts.pack())), table=new_table(log(), log(partition=1)))
    assert [each.name for each in verdicts_of(of).of_rows([0, 1])] == ["", "under_min_isr"]
    assert kinds_in(of) == ["under_min_isr", "under_replicated"]


def test_what_agents_reported_long_ago_counts_no_more() -> None:
    def of(*, stale: bool) -> Circumstances:
        dirs = (log_dir(checkpoint_ms=NOW_MS - HOUR),)
        return around(agent(well(appended_ms=-1), log_dirs=dirs), agent(name="a2", up=False), stale=stale)

    assert (kinds_in(of(stale=False)), kinds_in(of(stale=True))) == (["agent_down", "broker_not_writing"], ["agent_down"])
    assert freshness(of(stale=True), NOW_MS) == "No agent has been asked for half a minute"
    assert [each[:25] for each in unknown(of(stale=True), ())] == ["The last reports of agent"]
