"""The parts of a job's export by its settings: the table and the observer of its page."""

import platform
import time
from datetime import timedelta

import pyspark

import streaming
from streaming.cluster.consumers.group_snapshot import GroupBoard, PartitionListing
from streaming.cluster.view.export import Export
from streaming.cluster.view.observer import Observer, Versions
from streaming.cluster.view.page_context import context_of
from streaming.cluster.view.table import Table
from streaming.cluster.view.thresholds import thresholds
from streaming.common.pace.pacer import Pacer
from streaming.common.pace.schedule import Pace, PaceReason
from streaming.common.settings import Granularity, Settings
from streaming.spark.query.query import QUERY_NAME


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
