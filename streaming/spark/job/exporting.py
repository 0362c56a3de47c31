"""The parts of a job's export by its settings: the table, the observer of its page, and the rounds over consumer groups."""

import platform
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import timedelta
from typing import Any, NoReturn

import pyspark
from py4j.protocol import Py4JError, Py4JJavaError

import streaming
from streaming.broker.protocol.status_messages import BrokerStatus
from streaming.cluster.consumers.group_rounds import GroupRounds, Surroundings
from streaming.cluster.consumers.group_snapshot import GroupBoard, PartitionListing
from streaming.cluster.consumers.group_tracker import GroupTracker
from streaming.cluster.verdicts.circumstances import deletions_of
from streaming.cluster.view.broker_status import newest, topic_partitions
from streaming.cluster.view.family import Export
from streaming.cluster.view.observer import Observer, Versions, thresholds
from streaming.cluster.view.page_context import context_of
from streaming.cluster.view.table import Table
from streaming.common.pace import Pace, Pacer, PaceReason
from streaming.common.query_checkpoints import QueryCheckpoint
from streaming.common.settings import Granularity, Settings
from streaming.queries import LARGEST_BYTES, CheckpointFiles, CheckpointReader, FileEntry, LocalCheckpoint
from streaming.spark.client.address_lookup import ClientFiles
from streaming.spark.client.agent_client import AgentClient
from streaming.spark.job.agent_statuses import AgentWatch
from streaming.spark.query.query import QUERY_NAME, reason
from streaming.spark.source import agent_connections

_RENEWED = 3
"""The times of so many files with the largest numbers are asked for again: others are not written any more, and each time is a call."""

_NOT_THERE = ("java.io.FileNotFoundException", "java.nio.file.NoSuchFileException")


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

    def statuses() -> Iterator[BrokerStatus]:
        return (status for each in observer.agents if each.up for status in each.broker_statuses)

    def topics() -> Mapping[str, int] | None:
        return topic_partitions(newest(each for each in statuses() if each.counts))

    stopped_after_ms = settings.group_stopped_after // timedelta(milliseconds=1)
    checkpoints = settings.spark_checkpoints
    tracker = GroupTracker(table.export, stopped_after_ms, throwaway=settings.throwaway_groups, checkpoints=checkpoints)
    around = Surroundings(
        agents=lambda: clients_of(observer, files),
        cluster_topics=topics,
        deletions=lambda: deletions_of(statuses()),
        clock=clock,
        consumer=lambda: agents.consumer,
        queries={each.name: CheckpointReader(each.shown, _files_of(each, hadoop)).look for each in checkpoints},
    )
    return GroupRounds(table, board, tracker, around)


def clients_of(observer: Observer, files: ClientFiles) -> dict[str, AgentClient]:
    """The clients of the agents that are up, by name."""
    up = (each for each in observer.agents if each.up and each.address)
    return {each.name: agent_connections.client(each.address, files) for each in up}


def _files_of(checkpoint: QueryCheckpoint, hadoop: Callable[[], tuple[Any, Any] | None]) -> CheckpointFiles:
    """A directory of this machine needs no JVM."""
    return HadoopFiles(checkpoint.uri, hadoop) if checkpoint.local is None else LocalCheckpoint(checkpoint.local)


class HadoopFiles:
    """As `CheckpointFiles`. Each look is some twenty calls into the JVM, however many files there are; the first one asks for all times.

    The files of a checkpoint on any file system of Hadoop's, by Spark's JVM.

    Args:
        uri: of the checkpoint.
        session: Spark's JVM and its `org.apache.hadoop.conf.Configuration`; None while Spark is not there.
    """

    def __init__(self, uri: str, session: Callable[[], tuple[Any, Any] | None]) -> None:
        self._uri = uri.rstrip("/")
        self._session = session
        self._times: dict[str, dict[int, int]] = {}

    def entries(self, folder: str) -> list[FileEntry]:
        """As `CheckpointFiles.entries`, of the files with a number alone."""
        try:
            jvm, files, path = self._open(folder)
            statuses = files.listStatus(path)
            # no text of a status is used: that of ViewFs has no path in it
            paths = str(jvm.scala.collection.mutable.ArraySeq.make(jvm.org.apache.hadoop.fs.FileUtil.stat2Paths(statuses)).mkString("\n"))
            names = [each.rpartition("/")[2] for each in paths.split("\n")]
            known, self._times[folder] = self._times.get(folder, {}), {}
            numbers = sorted(((int(name), at) for at, name in enumerate(names) if name.isascii() and name.isdigit()), reverse=True)
            for place, (number, at) in enumerate(numbers):
                renewed = place < _RENEWED or number not in known
                self._times[folder][number] = int(statuses[at].getModificationTime()) if renewed else known[number]
        except (Py4JError, OSError) as error:
            if _is_missing(error):
                return []
            _refuse(error)
        return [FileEntry(str(number), modified_ms) for number, modified_ms in self._times[folder].items()]

    def content(self, path: str) -> bytes:
        """As `CheckpointFiles.content`."""
        try:
            _, files, at = self._open(path)
            with closing(files.open(at)) as stream:
                return bytes(stream.readNBytes(LARGEST_BYTES + 1))
        except (Py4JError, OSError) as error:
            if _is_missing(error):
                raise FileNotFoundError(f"{path} is not there") from error
            _refuse(error)

    def _open(self, path: str) -> tuple[Any, Any, Any]:
        session = self._session()
        if session is None:
            raise OSError("Spark is being started")
        jvm, configuration = session
        at = jvm.org.apache.hadoop.fs.Path(f"{self._uri}/{path}")
        return jvm, at.getFileSystem(configuration), at


def _is_missing(error: Exception) -> bool:
    return isinstance(error, Py4JJavaError) and error.java_exception.getClass().getName() in _NOT_THERE


def _refuse(error: Exception) -> NoReturn:
    """Say what the JVM says: the class of its exception, and the first line of its message."""
    why = str(error.java_exception.toString()) if isinstance(error, Py4JJavaError) else reason(error)
    raise OSError(why.partition("\n")[0]) from error


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
