"""The parts of a job's export by its settings: the table, the observer of its page, and the rounds over consumer groups."""

import platform
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pyspark

import streaming
from streaming.cluster.consumers.group_rounds import GroupRounds, Surroundings
from streaming.cluster.consumers.group_snapshot import GroupBoard, PartitionListing
from streaming.cluster.consumers.group_tracker import GroupTracker
from streaming.cluster.view.broker_status import newest
from streaming.cluster.view.cluster_counts import topic_partitions
from streaming.cluster.view.export import Export
from streaming.cluster.view.observer import Observer, Versions
from streaming.cluster.view.page_context import context_of
from streaming.cluster.view.table import Table
from streaming.cluster.view.thresholds import thresholds
from streaming.common.pace.pacer import Pacer
from streaming.common.pace.schedule import Pace, PaceReason
from streaming.common.query_checkpoints import QueryCheckpoint
from streaming.common.settings import Granularity, Settings
from streaming.queries.checkpoint_reader import CheckpointReader
from streaming.queries.local_checkpoint import LocalCheckpoint
from streaming.queries.query_look import CheckpointFiles
from streaming.spark.client.agent_client import AgentClient
from streaming.spark.client.client_files import ClientFiles
from streaming.spark.job.agent_statuses import AgentWatch
from streaming.spark.job.hadoop_files import HadoopFiles
from streaming.spark.query.query import QUERY_NAME
from streaming.spark.source import agent_connections


def table_of(settings: Settings, *, once: bool = False) -> Table:
    """The table; ``once`` if it is read a single time. Raises UsageError as `context_of`."""
    return Table(
        replicas=settings.replicas.value,
        stale_after_s=settings.stale_after.total_seconds(),
        series_limit=settings.series_limit,
        label_limit=settings.label_limit,
        context=context_of(settings, once=once),
        export=Export(
            partitions=settings.export_granularity is Granularity.PARTITION,
            topics=settings.export_topics,
            exclude=settings.export_exclude,
            append_delays=settings.export_append_delays,
            groups=frozenset(map(str, settings.export_groups)),
            consumers=settings.export_consumers,
            exclude_consumers=settings.export_exclude_consumers,
        ),
        monotonic=time.monotonic,
    )


def board_of(settings: Settings) -> GroupBoard:
    """A board for what is known of consumer groups."""
    return GroupBoard(
        PartitionListing(
            partitions=settings.export_group_granularity is Granularity.PARTITION,
            late_after_ms=settings.group_late_after // timedelta(milliseconds=1),
            late_limit=settings.group_late_limit,
        ),
        monotonic=time.monotonic,
    )


def observer_of(settings: Settings, pacer: Pacer, *, once: bool) -> Observer:
    """The observer; ``pacer`` decides how often the query checks for work if no trigger is given. One that runs ``once`` has no pace."""
    trigger = settings.trigger
    fixed = None if trigger is None else Pace(trigger.total_seconds(), PaceReason.FIXED)
    versions = Versions(segtail=streaming.__version__, spark=pyspark.__version__, python=platform.python_version())
    return Observer(
        query=QUERY_NAME,
        versions=versions,
        thresholds=thresholds(settings),
        started=time.time(),
        pace=lambda: None if once else pacer.pace if fixed is None else fixed,
        monotonic=time.monotonic,
    )


def rounds_of(
    settings: Settings,
    table: Table,
    board: GroupBoard,
    observer: Observer,
    agents: AgentWatch,
    files: ClientFiles,
    clock: Callable[[], float],
    hadoop: Callable[[], tuple[Any, Any] | None],
) -> GroupRounds:
    """The rounds of a job, not started yet: with the clients of its agents, and with what these report of the cluster.

    Args:
        hadoop: as for `HadoopFiles`.
    """

    def topics() -> Mapping[str, int] | None:
        statuses = (status for each in observer.agents if each.up for status in each.broker_statuses)
        return topic_partitions(newest(each for each in statuses if each.counts))

    stopped_after_ms = settings.group_stopped_after // timedelta(milliseconds=1)
    checkpoints = settings.spark_checkpoints
    tracker = GroupTracker(table.export, stopped_after_ms, throwaway=settings.throwaway_groups, checkpoints=checkpoints)
    around = Surroundings(
        agents=lambda: clients_of(observer, files),
        cluster_topics=topics,
        clock=clock,
        consumer=lambda: agents.consumer,
        queries={each.name: CheckpointReader(each.shown, _files_of(each, hadoop)).look for each in checkpoints},
    )
    return GroupRounds(table, board, tracker, around)


def _files_of(checkpoint: QueryCheckpoint, hadoop: Callable[[], tuple[Any, Any] | None]) -> CheckpointFiles:
    """A directory of this machine needs no JVM."""
    return HadoopFiles(checkpoint.uri, hadoop) if checkpoint.local is None else LocalCheckpoint(checkpoint.local)


def clients_of(observer: Observer, files: ClientFiles) -> dict[str, AgentClient]:
    """The clients of the agents that are up, by name."""
    up = (each for each in observer.agents if each.up and each.address)
    return {each.name: agent_connections.client(each.address, files) for each in up}
