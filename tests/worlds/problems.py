"""Every kind of problem, each in a table of its own."""

from collections.abc import Callable
from typing import Any

from streaming.broker.protocol.cluster_messages import AffectedPartition, PartitionCounts, Registered, TopicCounts
from streaming.broker.protocol.group_json import GroupPartition, MovedOffset, PendingOffset
from streaming.broker.protocol.status_json import Problem
from streaming.broker.protocol.status_messages import BrokerStatus, CorruptBatch, LogDirStatus, ScrubStatus, UnreadableLog, UnreadableLogs
from streaming.cluster.verdicts.circumstances import Circumstances
from streaming.cluster.verdicts.group_judge import JudgedGroups, judge_groups
from streaming.cluster.verdicts.incidents import problems
from streaming.cluster.view.observer import AgentStatus
from streaming.cluster.view.table import Table
from streaming.cluster.view.taillag import StartProgress, StartStep
from streaming.cluster.view.view import view
from streaming.kafka.formats.metadata_records import Phase
from streaming.rules.transaction_verdicts import AbortingClient
from tests.group_snapshots import Group, snapshot_of, storming
from tests.view.rows import log, new_table
from tests.worlds.hosts import broker, log_dir
from tests.worlds.retention import BELOW, facts, orders

NOW_MS = 1_700_000_000_000


MINUTE, HOUR = 60_000, 3_600_000


def around(*agents: AgentStatus, table: Table | None = None, **more: Any) -> Circumstances:
    snapshot = (table or new_table(log())).snapshot(NOW_MS / 1000)
    return Circumstances(view=view(snapshot), topics=snapshot.topic_names, now_ms=NOW_MS, agents=agents, **more)


def agent(*statuses: BrokerStatus, name: str = "a1", log_dirs: tuple[LogDirStatus, ...] = (), **more: Any) -> AgentStatus:
    brokers = tuple(each.broker for each in statuses) or (1,)
    return AgentStatus(name=name, up=more.pop("up", True), brokers=brokers, broker_statuses=statuses, log_dirs=log_dirs, **more)


def well(**more: Any) -> BrokerStatus:
    """A broker whose copy of the metadata log grows."""
    return broker(**{"appended_ms": NOW_MS - 500, "registered": [Registered(broker=1, fenced=False)]} | more)


def kinds_of(of: Circumstances) -> list[str]:
    return [each.kind for each in problems(of)]


def only(of: Circumstances, kind: str) -> Problem:
    (found,) = (each for each in problems(of) if each.kind == kind)
    return found


def counted(**problem: int) -> str:
    affected = [
        AffectedPartition(
            topic="orders", partition=3, problem=next(iter(problem)), leader=-1, in_sync=[1], out_of_sync=[2], electable=[2, 3]
        )
    ]
    return PartitionCounts(topics=[TopicCounts(topic="orders", partitions=8, **problem)], affected=affected).pack()


OLD = NOW_MS - 10 * MINUTE


SKIP = MovedOffset(kind="admin", from_offset=3, to_offset=8, at_ms=OLD, records=5)


COMPACT = '{"static":{},"topic":{"cleanup.policy":"compact"}}'


LATE = {
    "expired_since_ms": NOW_MS - MINUTE,
    "expired_since_timestamp": NOW_MS - 9_660_000,
    "expired_before": 0,
    "expired_ms": NOW_MS - 1000,
    "expired_timestamp": NOW_MS - 9_601_000,
    "expired_offset": 20,
    "expired_since_offset": 14,
    "share_expired_records": 7,
}
"""Records that were 9,600 s old when they were appended, one after the other for a minute, as late as ever."""


CASES: dict[str, Callable[[], Circumstances]] = {
    "quorum_lost": lambda: around(agent(well(appended_ms=NOW_MS - 40_000), log_dirs=(log_dir(checkpoint_ms=NOW_MS - 3000),))),
    "partition_offline": lambda: around(agent(well(counts=counted(offline=1)))),
    "under_min_isr": lambda: around(agent(well(counts=counted(under_min_isr=1)))),
    "client_aborts": lambda: around(
        agent(well()), aborting=(AbortingClient(transactional_id="abuser", seen=40, aborted=39, since_ms=NOW_MS - HOUR, per_second=2.0),)
    ),
    "under_replicated": lambda: around(agent(well(counts=counted(under_replicated=7)))),
    "broker_down": lambda: around(
        agent(well(registered=[Registered(broker=2, fenced=True, epoch=5, phase=Phase.DOWN, since_ms=OLD, replicas=True)]))
    ),
    "broker_starting": lambda: around(
        agent(well(registered=[Registered(broker=2, fenced=True, epoch=5, phase=Phase.STARTING, since_ms=NOW_MS - HOUR)]))
    ),
    "broker_stopped": lambda: around(
        agent(well(registered=[Registered(broker=2, fenced=True, epoch=5, phase=Phase.STOPPING, since_ms=NOW_MS - HOUR)]))
    ),
    "broker_not_writing": lambda: around(agent(well(appended_ms=-1), log_dirs=(log_dir(checkpoint_ms=OLD),))),
    "broker_metadata_stalled": lambda: around(agent(broker(2, appended_ms=OLD), well(), log_dirs=(log_dir(checkpoint_ms=NOW_MS),))),
    "log_dir_offline": lambda: around(agent(well(), log_dirs=(log_dir(registered=False),))),
    "log_set_aside": lambda: around(agent(well(), log_dirs=(log_dir(stray_only=1, unnamed=2, set_aside=["s-0.0a-stray", "t-0"]),))),
    "log_dir_full": lambda: around(agent(well(), log_dirs=(log_dir(checkpoint_ms=NOW_MS, free=1, capacity=100),))),
    "log_dir_unreadable": lambda: around(agent(well(), log_dirs=(log_dir(up=False, problem="Permission denied"),))),
    "log_dir_unwatched": lambda: around(agent(well(log_dirs=["x", "y"]), directories=("1:x",))),
    "log_unreadable": lambda: around(
        agent(well(), unreadable=(UnreadableLogs(1, 1),), unreadable_logs=(UnreadableLog(1, "t", 0, "", "/d/t-0", "gone"),))
    ),
    "metadata_unreadable": lambda: around(agent(well(readable=False, metadata_offset=-1))),
    "agent_down": lambda: around(
        agent(up=False, problems=("refused",), explanation="nobody listens there: is it running?"),
        *(agent(broker(each), name=f"a{each}") for each in (2, 3)),
    ),
    "behind": lambda: around(agent(well()), lags={"a1": (5 << 20, 130.0)}),
    "blind": lambda: around(agent(well(snapshot=False))),
    "log_corrupt": lambda: around(agent(well()), table=new_table(log(corrupt_batches=2, leader=1, leader_epoch=5))),
    "replica_corrupt": lambda: around(agent(well()), table=new_table(log(corrupt_batches=2, leader=2, leader_epoch=5))),
    "unclean_election": lambda: around(
        agent(well()), table=new_table(log(unclean_elections=1, unclean_ms=OLD, unclean_from=2, unclean_lost_acknowledged=5))
    ),
    "scrub_corrupt": lambda: around(agent(well(), scrubs=(scrub(corrupt=2),))),
    "scrub_unreadable": lambda: around(agent(well(), scrubs=(scrub(unreadable=1),))),
    "scrub_overdue": lambda: around(agent(well(), scrubs=(scrub(ended_ms=NOW_MS - 31 * 24 * HOUR),))),
    "retention_blocked": lambda: around(
        agent(well()), table=new_table(orders(facts((0, 500, -7200), (50, 300, 9600), configs=BELOW, oldest_timestamp=NOW_MS - 9_600_000)))
    ),
    "timestamps_in_future": lambda: around(agent(well()), table=new_table(orders(facts((0, 500, -7200), (50, 300, 10), configs=BELOW)))),
    "arrives_expired": lambda: around(agent(well()), table=new_table(orders(facts((0, 500, 9600), configs=BELOW), **LATE))),
    "retention_overdue": lambda: around(agent(well()), table=new_table(orders(facts((0, 500, 9600), (50, 300, 10), configs=BELOW)))),
    "compaction_stalled": lambda: around(
        agent(well()), table=new_table(orders(facts((0, 500, 14_400), (50, 300, 10), configs=COMPACT, cleaner_checkpoint=0)))
    ),
    "limits_assumed": lambda: around(agent(well()), table=new_table(orders(facts((0, 500, 10), configs="{}")))),
    "group_held": lambda: around(agent(well()), groups=group(held=True, lag_records_read_committed=0)),
    "group_pending": lambda: around(
        agent(well()),
        groups=group(pending=[PendingOffset(producer_id=1, offset=2, coordinator=0, since_ms=NOW_MS - 11 * MINUTE)], stopped_since_ms=OLD),
    ),
    "group_offset_invalid": lambda: around(agent(well()), groups=group(history="cut_off", history_epoch=3, go_on_at=2, passed_records=5)),
    "group_offsets_expire": lambda: around(agent(well()), groups=group(expiration_ms=NOW_MS + HOUR)),
    "group_stopped": lambda: around(agent(well()), groups=group(stopped_since_ms=OLD)),
    "group_rebalancing": lambda: around(agent(well()), groups=rebalancing(10)),
    "group_lost": lambda: around(agent(well()), groups=group(lost_records=5, lost_offsets=5)),
    "group_skipped": lambda: around(agent(well()), groups=group(moves=[SKIP])),
    "groups_abandoned": lambda: around(agent(well()), groups=abandoned()),
    "group_will_lose": lambda: around(agent(well()), groups=group(loss_ms=NOW_MS + HOUR, stopped_since_ms=OLD)),
}


def scrub(**values: Any) -> ScrubStatus:
    places = [CorruptBatch("t", 0, "/d/t-0/00000000000000000000.log", 61, 5, "crc")] if values.get("corrupt") else []
    given = {"began_ms": NOW_MS - MINUTE, "ended_ms": NOW_MS - MINUTE, "logs": 1, "logs_checked": 1, "checked": 5}
    return ScrubStatus(broker=1, log_dir="/d", corrupt_batches=places, **{"corrupt": 0, "unreadable": 0} | given | values)  # type: ignore[arg-type]


def abandoned() -> JudgedGroups:
    """A group that has stopped, and that nobody has used for a month."""
    month_ago = NOW_MS - 30 * 24 * HOUR
    partition = GroupPartition(
        topic="orders", partition=3, broker=1, committed=5, lag_offsets=9, commit_ms=month_ago, stopped_since_ms=month_ago
    )
    facts = {"members": 0, "state": "Empty", "epoch": 0}
    return judge_groups(snapshot_of(Group(name="billing", partitions=[partition], facts=facts), now_ms=NOW_MS), NOW_MS)


def rebalancing(generations: int, ago_ms: int = 0) -> JudgedGroups:
    """A group of two members that has rebalanced so often within a minute, and has nothing left to read."""
    partition = GroupPartition(topic="orders", partition=3, broker=1, committed=5, lag_offsets=0, lag_records_read_committed=0)
    of = Group(name="billing", partitions=[partition], facts=storming(NOW_MS, generations, ago_ms=ago_ms))
    return judge_groups(snapshot_of(of, now_ms=NOW_MS), NOW_MS)


def group(*others: dict[str, Any], name: str = "billing", facts: dict[str, Any] | None = None, **values: Any) -> JudgedGroups:
    """A group with one partition, and with others that differ from it by this, judged."""
    given = {"committed": 5, "log_start": 0, "lag_offsets": 9, "lag_records_read_committed": 9, "next_append_ms": NOW_MS - 2 * HOUR}
    first = {"next_offset": 5} | given | values
    partitions = [GroupPartition(topic="orders", partition=3 + at, broker=1, **first | each) for at, each in enumerate(({}, *others))]
    return judge_groups(snapshot_of(Group(name=name, partitions=partitions, facts=facts or {}), now_ms=NOW_MS), NOW_MS)


READING = StartProgress(step=StartStep.READING, done_bytes=82, all_bytes=197, left_s=12.0)
