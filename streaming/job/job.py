"""The main job: an agent for the log dirs, one streaming query over what it publishes, and the table that is exported."""

import logging
import os
import platform
import re
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

import pyarrow as pa
import pyspark
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import streaming
from streaming import java
from streaming.agent.client import AgentClient
from streaming.disk.logdirs import open_log_dirs
from streaming.errors import AgentError, SegtailError
from streaming.job.checkpoint import Checkpoint
from streaming.job.child import NAME, ChildAgent
from streaming.job.progress import Progress
from streaming.job.session import start_session
from streaming.metrics.observer import AgentStatus, Observer, Threshold, Versions
from streaming.metrics.server import Exporter
from streaming.metrics.table import Table
from streaming.query.query import QUERY_NAME, fold_events
from streaming.settings import OPTIONS, Settings
from streaming.source.datasource import FORMAT, SegtailDataSource

log = logging.getLogger(__name__)

HEALTHY_SECONDS = 120.0
"""A query that has not looked for work for so long, idle or not, is not well."""

POLL_SECONDS = 1.0
_LONG_POLL_MS = 1000  # with trigger 0 the agent waits for something new, so that an idle query does not spin
_BACK_OFF_SECONDS = (1.0, 2.0, 5.0, 10.0, 30.0)
_STOP_SECONDS = 8.0
_RAISED = re.compile(r"[\w.]*(Error|Exception)\b.*: ")


class JobError(SegtailError):
    """The query failed and is not started again."""


class Job:
    """Use as a context manager: entering starts the agent and Spark, leaving ends both.

    Args:
        clock: now, Unix seconds, as the metrics see it.
        serve: answer scrapes on ``settings.listen``.
    """

    def __init__(self, settings: Settings, *, clock: Callable[[], float] = time.time, serve: bool = True) -> None:
        self.settings = settings
        self._clock = clock
        self.table = Table(
            replicas=settings.replicas.value, stale_after_s=settings.stale_after.total_seconds(), series_limit=settings.series_limit
        )
        self.observer = Observer(query=QUERY_NAME, versions=_versions(), thresholds=_thresholds(settings))
        self.exporter: Exporter | None = None
        self._serve = serve
        self._looked_at = time.monotonic()
        self._last_batch = -1
        self._spark: SparkSession | None = None
        self._cleanup: list[Callable[[], None]] = []

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end()

    def _start(self) -> None:
        settings = self.settings
        log_dirs = open_log_dirs(settings.log_dirs)
        if self._serve:
            self.exporter = Exporter(
                settings.listen.host,
                settings.listen.port,
                table=self.table,
                observer=self.observer,
                clock=self._clock,
                healthy=self._healthy,
            )
            self._cleanup.append(self.exporter.close)
        self._checkpoint = Checkpoint(settings.checkpoint, log_dirs[0].cluster_id, settings.state_shards)
        self._cleanup.append(self._checkpoint.close)
        self._shards = self._checkpoint.identity.state_shards
        self.table.expect([NAME], self._shards)
        home = java.find(os.environ, self._checkpoint.java)
        self._child = ChildAgent(settings.log_dirs, self._checkpoint.agent, self._checkpoint.address_file, _child_environment(settings))
        self._cleanup.append(self._child.stop)
        self._child.start()
        if self.exporter is not None:
            self.exporter.start()
        session = start_session(settings.master, settings.spark, home, self._checkpoint.directory, settings.log_level.value)
        self._spark = session
        self._cleanup.append(session.stop)
        session.dataSource.register(SegtailDataSource)
        session.streams.addListener(Progress(self.observer, self._clock))

    def _end(self) -> None:
        while self._cleanup:
            self._cleanup.pop()()

    def _healthy(self) -> bool:
        return time.monotonic() - self._looked_at < HEALTHY_SECONDS

    # --- the query

    def _query(self, *, once: bool) -> StreamingQuery:
        assert self._spark is not None
        settings, immediate = self.settings, not self.settings.trigger
        options = {
            "address_file": str(self._checkpoint.address_file),
            "consumer": self._checkpoint.identity.job_id,
            "start_from": settings.start_from.value,
            "resumed": str(self._checkpoint.resumed).lower(),
            "shards": str(self._shards),
            "max_bytes": str(settings.max_bytes_per_batch),
            "wait_ms": str(_LONG_POLL_MS if immediate and not once else 0),
        }
        writer = fold_events(self._spark.readStream.format(FORMAT).options(**options).load(), self._take)
        writer = writer.option("checkpointLocation", str(self._checkpoint.spark))
        if once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{int(settings.trigger.total_seconds() * 1000)} milliseconds").start()

    def _take(self, states: pa.Table, batch: int) -> None:
        """The sink: absolute values into the table, so that a micro-batch may come again."""
        self.table.apply(states)
        self._last_batch = batch

    def run_once(self) -> None:
        """Process what is there and return.

        Raises:
            JobError: the query failed, or an agent did not deliver everything.
        """
        query = self._query(once=True)
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            raise JobError(f"the query failed: {_reason(error)}") from error
        self._poll()
        if not self.table.ready:
            raise JobError("not everything that is there has been processed: the agent did not answer; run it again")

    def run(self, stop: threading.Event) -> None:
        """Run until ``stop`` is set; a query that fails is started again."""
        failures = 0
        while not stop.is_set():
            started = time.monotonic()
            query = self._query(once=False)
            failed = self._watch(query, stop)
            if not failed:
                return
            failures = 0 if time.monotonic() - started > _BACK_OFF_SECONDS[-1] * 2 else failures
            pause = _BACK_OFF_SECONDS[min(failures, len(_BACK_OFF_SECONDS) - 1)]
            failures += 1
            log.error("the query failed and is started again", extra={"reason": failed, "in_seconds": pause})
            self.observer.restarted()
            self._looked_at = time.monotonic()
            stop.wait(pause)

    def _watch(self, query: StreamingQuery, stop: threading.Event) -> str:
        """Keep the agent alive and look after the query; returns why it failed, "" if it was stopped."""
        try:
            while not stop.wait(POLL_SECONDS):
                self._child.keep_alive(time.monotonic())
                self._poll()
                if not query.isActive:
                    query.awaitTermination()
                    return "it ended by itself"
                self._looked_at = time.monotonic()
        except StreamingQueryException as error:
            return _reason(error)
        stopper = threading.Thread(target=query.stop, daemon=True, name="stop-query")
        stopper.start()
        stopper.join(_STOP_SECONDS)
        return ""

    def _poll(self) -> None:
        """Ask the agent how it is, for what the metrics say of it."""
        try:
            status = AgentClient(self._checkpoint.address_file.read_text().strip()).status()
        except (AgentError, FileNotFoundError) as error:
            known = next((each for each in self.observer.agents if each.name == NAME), AgentStatus(name=NAME, up=False))
            self.observer.polled(
                AgentStatus(
                    name=NAME, up=False, brokers=known.brokers, cluster_id=known.cluster_id, metadata_brokers=known.metadata_brokers
                )
            )
            log.warning("the agent does not answer", extra={"agent": NAME, "error": str(error)})
            return
        brokers = tuple(status.brokers)
        self.observer.polled(
            AgentStatus(
                name=status.agent,
                up=True,
                brokers=brokers,
                cluster_id=status.cluster_id,
                catching_up=not status.caught_up,
                metadata_brokers=frozenset(brokers) - frozenset(status.unreadable_metadata),
            )
        )
        self.observer.published(status.agent, status.total, self._clock())
        self.table.mark_agent(status.agent, self._clock())


def _child_environment(settings: Settings) -> dict[str, str]:
    """The agent's settings are those of the job, whichever way the job got them."""
    passed = ("beat", "consumer_expiry", "journal_max_bytes", "journal_max_age", "producers_limit", "log_level", "log_format")
    own = {name: value for name, value in os.environ.items() if not name.startswith("SEGTAIL_")}
    return own | {f"SEGTAIL_{name.upper()}": str(OPTIONS[name].form.show(getattr(settings, OPTIONS[name].attribute))) for name in passed}


def _versions() -> Versions:
    return Versions(segtail=streaming.__version__, spark=pyspark.__version__, python=platform.python_version())


def _thresholds(settings: Settings) -> list[Threshold]:
    names = ("hanging_after", "late_after", "stale_after", "trigger", "beat")
    return [Threshold(name=name, unit="seconds", value=getattr(settings, name).total_seconds()) for name in names]


def _reason(error: StreamingQueryException) -> str:
    """The line that tells: of what was raised in a Python process that is its last one, else Spark's own condition."""
    raised = [line.strip() for line in str(error).splitlines() if _RAISED.match(line.strip())]
    return raised[-1] if raised else str(error).partition("\n")[0]
