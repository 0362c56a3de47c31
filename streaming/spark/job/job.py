"""The main job: one streaming query over the events of its own agent, or of agents elsewhere, and the export of the table."""

import contextlib
import logging
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from streaming.broker.disk.availability import open_answering
from streaming.broker.disk.logdirs import LogDirs, refuse_inside
from streaming.cluster.consumers.group_details import GroupDetails
from streaming.cluster.consumers.group_partitions import GroupPartitions
from streaming.cluster.consumers.group_rounds import GroupRounds, ask_agents
from streaming.cluster.verdicts.circumstances import thresholds_of
from streaming.cluster.verdicts.first_lines import start_sentence
from streaming.common import java
from streaming.common.pace import Pacer
from streaming.common.settings import LogLevel, Settings
from streaming.common.units import format_list
from streaming.errors import AgentError, CheckpointError, IncompleteError, SegtailError
from streaming.pages.site.exporter import Exporter
from streaming.spark.client.address_lookup import NO_FILES
from streaming.spark.job import class_archive
from streaming.spark.job.agent_statuses import AgentPolls, AgentWatch, check_agents, cluster_of, file_options
from streaming.spark.job.checkpoint import Checkpoint, cluster_of_checkpoint, logs_in, logs_of
from streaming.spark.job.child import NAME, BackOff, ChildAgent, Wellness, environment
from streaming.spark.job.counting import Counting
from streaming.spark.job.exporting import board_of, clients_of, observer_of, rounds_of, table_of
from streaming.spark.job.jvm import SparkError
from streaming.spark.job.query_progress import QueryProgress
from streaming.spark.job.spark import Spark, is_local, within
from streaming.spark.query.query import fold_events, reason, was_too_slow
from streaming.spark.source.agent_connections import PATIENCE_SECONDS
from streaming.spark.source.job_data_source import FORMAT, JobDataSource
from streaming.spark.source.job_options import parse_options

log = logging.getLogger(__name__)

HEALTHY_SECONDS = 120.0
"""A query without a check for work for so long (or for three of its longest pauses), idle or not, is not well: see `Wellness`."""

POLL_SECONDS = 1.0
_AT_ONCE = timedelta(0)
_LONG_POLL_MS = 1000  # with trigger 0 the agent waits for something new, so that an idle query is no busy loop
_QUICK_POLL_SECONDS = 0.25

_NAMED = 10
"""An error message names so many logs that could not be read."""

_CHECKING_SECONDS = 10.0
_ONCE_ATTEMPTS = 3
_BACK_OFF_SECONDS = (1.0, 2.0, 5.0, 10.0, 30.0)
_WELL_SECONDS = 60.0
_STOP_SECONDS = 3.0


class Job:
    """Use as a context manager: entering starts the agent and Spark, leaving ends both.

    Args:
        clock: the present time for the metrics, Unix seconds.
        serve: answer scrapes on ``settings.listen``.
        listening: called with the address of the page as soon as that answers, which is long before Spark is there.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Callable[[], float] = time.time,
        serve: bool = True,
        listening: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.settings = settings
        self._clock = clock
        self.table = table_of(settings, once=not serve)
        self.table.recalls(None)
        self.groups = board_of(settings)
        self.pacer = Pacer(time.monotonic)
        self.observer = observer_of(settings, self.pacer, once=not serve)
        self.exporter: Exporter | None = None
        self._serve = serve
        self._listening = listening
        self._ready_logged = False
        self._wellness = Wellness(max(HEALTHY_SECONDS, 3 * settings.longest_pause.total_seconds()), time.monotonic)
        self._progress = QueryProgress(self.observer, clock, self._checked, self.pacer.took)
        self._group_rounds: GroupRounds | None = None
        self._hadoop: tuple[Any, Any] | None = None  # as soon as Spark is there
        self._child: ChildAgent | None = None
        self._files = NO_FILES
        self._met: set[str] = set()  # agents that have answered
        self._run = str(uuid.uuid4())  # names the next run of the query
        self._counting: Counting | None = None  # of the run that is on
        self._polls = AgentPolls(time.monotonic)
        self._resources = ExitStack()

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._resources.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._resources.close()

    def _start(self) -> None:
        """Start everything. Steps that may be refused come first; Spark comes last, because it takes seconds.

        The page answers before that, and agents are asked meanwhile: what they know of brokers and disks needs no Spark.
        """
        settings, resources = self.settings, self._resources
        log_dirs = open_answering(settings.log_dirs)[0] if not settings.agents else None
        if settings.agents:
            check_agents(settings)
        if self._serve:
            listen = settings.listen
            self.exporter = Exporter(
                listen.host,
                listen.port,
                table=self.table,
                observer=self.observer,
                clock=self._clock,
                healthy=lambda: self._wellness.well,
                scraped=self.scraped,
                watched=self.pacer.watched,
                groups=self.groups,
                details=self._details,
                thresholds=thresholds_of(settings),
                redacted=settings.redact_ids,
                public_url=settings.public_url,
                web_config=settings.web_config,
            )
            resources.callback(self.exporter.close)
        refuse_inside(settings.checkpoint, log_dirs or (), "--checkpoint")
        java_home = java.found(os.environ)  # where there is none, no checkpoint is made
        checkpoint = self._open_own(log_dirs) if log_dirs else self._find_others()
        java_home = java.startable(java_home, checkpoint.directory / "java")
        if not is_local(settings.master) and not settings.spark_checkpoint:
            log.warning(
                "every executor has to see this directory: name one for all by spark_checkpoint", extra={"path": str(checkpoint.spark)}
            )
        self._spark = Spark(
            master=settings.master,
            options=settings.spark,
            java_home=java_home,
            directory=checkpoint.directory,
            debug=settings.log_level is LogLevel.DEBUG,
            lock_fd=checkpoint.spark_lock_fd,
            data_source=JobDataSource,
            archive=class_archive.found(settings.class_archives, java_home, settings.spark),
        )
        resources.callback(self._spark.stop)
        if log_dirs:
            self._start_own(log_dirs)  # beside the JVM: each of the two takes seconds
        self._agents.consumer = checkpoint.identity.job_id
        if self.exporter is not None and self._group_rounds is not None:
            self.exporter.keep(checkpoint.history, self._group_rounds.kept, self._group_rounds.recall)
        if log_dirs and not (checkpoint.resumed or settings.spark_checkpoint):
            self._agents.announce(settings.start_from.value, self._run)
        self._poll()
        with repeated(self._poll, POLL_SECONDS):
            self._spark.connect()
        self._hadoop = self._spark.hadoop
        self._wellness.checked()
        self._replayed = self._planned
        if self._replayed >= 0 and checkpoint.new:
            raise CheckpointError(
                f"spark_checkpoint {settings.spark_checkpoint} was made with another checkpoint than {checkpoint.directory}: "
                "they belong together"
            )
        self.table.recalls(checkpoint.identity.state_shards if self._replayed >= 0 else 0)

    def _open_own(self, log_dirs: LogDirs) -> Checkpoint:
        """The checkpoint of a job with an agent of its own."""
        checkpoint = self._open_checkpoint(log_dirs.cluster_id, lambda: logs_in(log_dirs.available))
        self._answer()
        return checkpoint

    def _start_own(self, log_dirs: LogDirs) -> None:
        """Start the agent for the log dirs of this host."""
        settings, checkpoint = self.settings, self._checkpoint
        self._child = child = ChildAgent(
            settings.log_dirs, checkpoint.agent, checkpoint.address_file, checkpoint.agent_token_file, environment(settings)
        )
        self._resources.callback(child.stop)
        child.start()
        self._where = {"address_file": str(checkpoint.address_file), "agent_token_file": str(checkpoint.agent_token_file)}
        self._watch([NAME], log_dirs.cluster_id)

    def _answer(self) -> None:
        """Answer on the page from now on."""
        if self.exporter is not None:
            self.exporter.start()
            self._listening(self.exporter.url.removesuffix("metrics"))

    def _find_others(self) -> Checkpoint:
        """Find the agents elsewhere. A new checkpoint is for the cluster that they watch, so the first start waits for one of them.

        Raises:
            AgentError: they watch several clusters; or none answers, and the job is one that ends by itself.
        """
        settings = self.settings
        self._where = {"agents": ",".join(map(str, settings.agents)), **file_options(settings)}
        cluster_id = cluster_of_checkpoint(settings.checkpoint)
        self._watch([], cluster_id)
        self._answer()
        if self.exporter is not None:
            log.info("metrics are served", extra={"url": self.exporter.url})  # which show the reason if no agent can be found
        if cluster_id and not self._agents.poll() and self._agents.strangers:
            raise CheckpointError(
                f"checkpoint {settings.checkpoint} belongs to cluster {cluster_id}, the agents that answer to another "
                f"({', '.join(sorted(self._agents.strangers))}): name another with --checkpoint DIR"
            )
        deadline = time.monotonic() + PATIENCE_SECONDS
        answering = bool(cluster_id)
        while not answering:
            statuses = self._agents.poll()
            answering, cluster_id = bool(statuses), cluster_of(statuses)
            self._wellness.checked()
            if not answering:
                if not self._serve and time.monotonic() > deadline:
                    raise AgentError("no agent answers: see its problem above")
                time.sleep(POLL_SECONDS)
        self._agents.cluster_id = cluster_id
        return self._open_checkpoint(cluster_id, self._logs_of_others)

    def _logs_of_others(self) -> int:
        """How many logs the agents elsewhere report; one that has just started must list its log dirs first."""
        deadline = time.monotonic() + _CHECKING_SECONDS
        while not (checked := [each for each in self._agents.poll() if each.log_dirs]) and time.monotonic() < deadline:
            self._wellness.checked()
            time.sleep(POLL_SECONDS)
        return logs_of(checked, len(parse_options(self._where).addresses()))

    def _watch(self, names: list[str], cluster_id: str) -> None:
        options = parse_options(self._where)
        self._files = options.files
        self._agents = AgentWatch(options, self.observer, self.table, time.monotonic, names=names, cluster_id=cluster_id)
        self._resources.callback(self._agents.close)
        if self._serve:
            self._group_rounds = rounds_of(
                self.settings,
                self.table,
                self.groups,
                self.observer,
                self._agents,
                options.files,
                self._clock,
                lambda: self._hadoop,
            )
            self._resources.callback(self._group_rounds.close)
            self._group_rounds.start()

    def _open_checkpoint(self, cluster_id: str, logs: Callable[[], int]) -> Checkpoint:
        settings = self.settings
        self._checkpoint = checkpoint = Checkpoint(settings.checkpoint, cluster_id, settings.state_shards, logs)
        self._resources.callback(checkpoint.close)
        self.observer.sharded(checkpoint.identity.state_shards)
        return checkpoint

    # --- the query

    def _query(self, *, once: bool) -> StreamingQuery:
        """Start a run of the query.

        Raises:
            OSError: a file of the checkpoint cannot be removed.
        """
        settings, checkpoint, trigger = self.settings, self._checkpoint, self.settings.trigger
        counting = self._begin_counting()
        run, self._run = self._run, str(uuid.uuid4())
        options = {
            **self._where,
            "cluster_id": checkpoint.identity.cluster_id,
            "consumer": checkpoint.identity.job_id,
            "start_from": settings.start_from.value,
            "shards": str(checkpoint.identity.state_shards),
            "max_bytes": str(settings.max_bytes_per_batch),
            "wait_ms": str(_LONG_POLL_MS if trigger == _AT_ONCE and not once else 0),
            "run": run,
            "checks": str(checkpoint.checks),
            "counted": str(checkpoint.counted),
        }
        if trigger is None and not once:
            self.pacer.begins(checkpoint.schedule)
            options["schedule"] = str(checkpoint.schedule)
        writer = fold_events(self._spark.session.readStream.format(FORMAT).options(**options).load(), partial(self._take, counting))
        writer = writer.option("checkpointLocation", settings.spark_checkpoint or str(checkpoint.spark))
        if once:
            return writer.trigger(availableNow=True).start()
        pause = _AT_ONCE if trigger is None else trigger  # the source waits by itself
        return writer.trigger(processingTime=f"{int(pause.total_seconds() * 1000)} milliseconds").start()

    @property
    def class_path(self) -> list[str]:
        """What Spark's JVM has on its class path, in order."""
        return self._spark.class_path

    @property
    def _planned(self) -> int:
        """The last micro-batch that was planned, which may have to be run again; -1 if none ever was."""
        location = self.settings.spark_checkpoint
        return self._spark.planned_in(location) if location else self._checkpoint.planned

    def _begin_counting(self) -> Counting:
        """Follow what the next run counts, and nothing that comes late of the one before."""
        if self._counting is not None:
            self._counting.end()
        recalls = self._checkpoint.identity.state_shards if self._planned >= 0 else 0
        self._counting = Counting(self._checkpoint.counted, recalls)
        return self._counting

    def _take(self, counting: Counting, states: pa.Table, batch: int) -> None:
        """The sink: it sets absolute values in the table, so a micro-batch may come again."""
        self.table.apply(states)
        counting.take(states)
        self._progress.arrived(states, batch)
        self._polls.landed()
        if self._group_rounds is not None:
            self._group_rounds.landed()

    def _checked(self) -> None:
        """The query has checked for work. One that cannot go on without what is counted is not well."""
        if self._counting is None or not self._counting.failed:
            self._wellness.checked()

    def _details(self, messages: GroupPartitions) -> GroupDetails:
        """What only agents know of groups. From any thread."""
        return GroupDetails(messages, clients_of(self.observer, self._files), ask_agents)

    def start_sentence(self) -> str:
        """How far the start is, without a period; "" once everything that was on the disks is counted. From any thread."""
        return "" if self.table.ready else start_sentence(self.observer.start_progress(self._clock()))

    def scraped(self, who: str) -> None:
        """The scraper ``who`` requests the metrics. From any thread."""
        self.pacer.scraped(who)
        age = self._progress.age(time.monotonic())
        if age is not None:
            self.observer.scraped(age)

    def _poll(self) -> None:
        """Poll the agents. A new job's table is whole when it holds everything of the agents that have answered by then."""
        self._polls.begin()
        answers = self._agents.poll()
        for agent in self._agents.up - self._met:
            if self._checkpoint.new or not (self.settings.spark_checkpoint or self._checkpoint.resumed):
                self.observer.begins(agent)  # else its first rows report how much the metrics hold
        self._met |= self._agents.up
        if not self.table.ready:
            self.table.set_agents(self._agents.up)
            if (self._agents.up or self._met or {NAME}) <= self._progress.reached.through(answers):
                self.table.set_whole()
        if self.table.ready and not self._ready_logged and self.exporter is not None:
            self._ready_logged = True
            log.info("job is ready", extra={"page": self.exporter.url.removesuffix("metrics")})
        # a round over groups begins with a micro-batch, and takes high watermarks as of the last answer
        self._polls.answered(quiet=self.table.ready and self._agents.quiet and self.groups.is_empty)

    @property
    def _is_landing(self) -> bool:
        """The first micro-batches have come, and a poll decides whether the page is whole with them: people wait for it."""
        return not self.table.ready and self._progress.age(time.monotonic()) is not None

    def run_once(self, stop: threading.Event) -> bool:
        """Process what is there and return. A query that fails is started again, twice: it may be the machine that had no time for it.

        Returns:
            False if ``stop`` was set before everything was processed.

        Raises:
            JobError: the query failed each time, or the agent did not deliver everything.
            SparkError: Spark's JVM is gone.
        """
        for left in reversed(range(_ONCE_ATTEMPTS)):
            failed = self._run_query(stop, once=True)
            if stop.is_set():
                return False
            self._agents.poll()
            if not failed and self._agents.up and self._progress.delivered(self._agents.up):
                return True
            if left:
                why = failed or "the agent did not answer for a while"
                log.warning("not everything was processed: the query is started again", extra={"reason": why})
        if failed:
            raise JobError(f"the query failed: {failed}")
        raise JobError("not all data was processed, because the agent did not answer: see its messages above, and run it again")

    def refuse_unread(self) -> None:
        """Raise an error if something was left out of what `run_once` processed.

        Raises:
            IncompleteError: there are logs or log dirs that could not be read.
        """
        logs = [f"{log.topic}-{log.partition} of broker {log.broker} ({log.path}: {log.error})" for log in self._agents.unreadable]
        dirs = [f"log dir {each.log_dir}" for agent in self.observer.agents for each in agent.log_dirs if not each.up]
        if logs or dirs:
            named = format_list([*dirs, *logs], len(dirs) + _NAMED)
            raise IncompleteError(f"everything else was processed, but this could not be read: {named}")

    def run(self, stop: threading.Event) -> None:
        """Run until ``stop`` is set; a query that fails is started again.

        Raises:
            SparkError: Spark's JVM is gone.
        """
        back_off = BackOff(_BACK_OFF_SECONDS, _WELL_SECONDS)
        while not stop.is_set():
            started = time.monotonic()
            failed = self._run_query(stop, once=False)
            if stop.is_set():
                return
            pause = back_off.ended(time.monotonic() - started)
            log.error("the query failed and is started again", extra={"reason": failed, "in_seconds": pause})
            self.observer.restarted()
            self._wellness.failed()
            self._care_until(stop, pause)

    def _run_query(self, stop: threading.Event, *, once: bool) -> str:
        """Run the query until it ends or is stopped; returns why it failed, "" if it did not."""
        query = None
        try:
            self._progress.begins(self._checkpoint.checks)
            self._agents.begins(self._checkpoint.checks)
            query = self._query(once=once)
            while not stop.is_set() and query.isActive:
                self._care_until(stop, _QUICK_POLL_SECONDS if once or self._is_landing else POLL_SECONDS)
                self._progress.poll(query)
            if stop.is_set():
                self._spark.hush()
                within(_STOP_SECONDS, query.stop)
                return ""
            query.awaitTermination()
            self._progress.poll(query)
            if once:
                self._progress.checked()
        except StreamingQueryException as error:
            log.debug("the query failed", exc_info=error)
            return reason(error)
        except (Py4JError, PySparkException, OSError) as error:
            if stop.is_set():
                return ""
            if query is None and was_too_slow(error):
                return reason(error)
            if isinstance(error, PySparkException):
                raise
            if query is None and isinstance(error, OSError) and not isinstance(error, ConnectionError):
                return str(error)  # a file of the checkpoint
            raise SparkError(
                f"Spark's JVM does not answer any more ({reason(error)}), its status is {self._spark.status}: start the job again"
            ) from error
        return "" if once else "it ended by itself"

    def _care_until(self, stop: threading.Event, seconds: float) -> None:
        """Keep the agent alive and poll the agents as often as need be, for ``seconds``."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                if self._child is not None:
                    self._child.keep_alive(time.monotonic())
                if self._counting is not None:
                    self._counting.keep()
                if self._polls.due:
                    self._poll()
            except OSError as error:  # of this process: no descriptor, no memory, no room. The query goes on without
                log.error("the agents cannot be polled now, it is tried again", extra={"error": str(error)})
            left = deadline - time.monotonic()
            if stop.wait(max(0.0, min(left, POLL_SECONDS))) or left <= POLL_SECONDS:
                return


@contextlib.contextmanager
def repeated(action: Callable[[], object], seconds: float) -> Iterator[None]:
    """Call ``action`` every ``seconds`` until the block is left. Leaving it waits for a call that is running."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(seconds):
            action()

    thread = threading.Thread(target=repeat, daemon=True, name="meanwhile")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


class JobError(SegtailError):
    """The query failed and is not started again."""
