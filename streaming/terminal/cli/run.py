"""``segtail run``: the main job, and what it logs first."""

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from streaming.common.progress_line import ProgressLine
from streaming.common.settings import Settings
from streaming.common.units import format_size
from streaming.errors import UsageError
from streaming.terminal.cli.options import follow_log_level, keep_spark, keep_spark_file, with_settings
from streaming.terminal.cli.spark_extra import require_spark_extra
from streaming.terminal.cli.stopping import Signals, Stopped
from streaming.terminal.cli.values import Moment

log = logging.getLogger(__name__)

_EVERY_SECONDS = 0.5
_LOG_EVERY_SECONDS = 15.0


@click.command("run")
@with_settings(
    "log_dirs",
    "agents",
    "agent_ca",
    "agent_cert",
    "agent_key",
    "agent_token_file",
    "from",
    "checkpoint",
    "spark_checkpoint",
    "spark_checkpoints",
    "listen",
    "web_config",
    "replicas",
    "server_properties",
    "trigger",
    "master",
)
@click.option("--spark", metavar="spark.NAME=VALUE", multiple=True, expose_value=False, callback=keep_spark, help="An option of Spark's.")
@click.option(
    "--spark-properties",
    type=click.Path(path_type=Path),
    metavar="FILE",
    expose_value=False,
    callback=keep_spark_file,
    help="Options of Spark's in a file as spark-submit takes it, where no other user of the machine sees them, as ps shows --spark.",
)
@click.option("--once", is_flag=True, help="Process the existing data, write the metrics and exit; no port is opened.")
@click.option("--at", type=Moment(), metavar="TIME", help=f"Judge a copied disk at its own time: {Moment.accepts}.")
def command(settings: Settings, once: bool, at: int | None) -> None:
    """Watch log dirs, or logs that agents on other hosts watch, run the Spark job and serve /metrics, until SIGTERM or Ctrl-C.

    The job keeps all its data under --checkpoint: two jobs may watch the same log dirs with two checkpoints.
    """
    if settings.log_dirs and settings.agents:
        raise UsageError("both log_dirs and agents are given: for log dirs the job starts an agent of its own; name one of the two")
    if not settings.log_dirs and not settings.agents:
        raise UsageError("no log dir is given: name the broker's log.dirs with --log-dirs A,B, or agents elsewhere with --agents")
    require_spark_extra("run")
    signals = Signals()
    follow_log_level()
    try:
        _run(settings, signals, once, time.time if at is None else lambda: at / 1000)
    except (Stopped, KeyboardInterrupt):  # KeyboardInterrupt comes while PySpark's handler of Ctrl-C is set
        log.info("stopped before it had started")


def _run(settings: Settings, signals: Signals, once: bool, clock: Callable[[], float]) -> None:
    from streaming.pages.exposition.render import render
    from streaming.spark.job.job import Job

    job = Job(settings, clock=clock, serve=not once, listening=lambda url: click.echo(f"segtail: page at {url}", err=True))
    with start_shown(job.start_sentence), job:
        signals.started()
        if not once:
            assert job.exporter is not None
            click.echo(f"segtail: metrics at {job.exporter.url}", err=True)
            job.run(signals.stop)
            return
        if not job.run_once(signals.stop):
            log.warning("stopped before everything was processed: no metrics are written")
            return
        page = render(job.table, job.observer, clock(), groups=job.groups)
        sys.stdout.buffer.write(page)
    click.echo(f"segtail: {format_size(len(page))} of metrics are written to standard output", err=True)
    job.refuse_unread()


@contextmanager
def start_shown(sentence: Callable[[], str], line: ProgressLine | None = None) -> Iterator[None]:
    """Show it on a thread, until ``sentence`` returns "" or the block ends. Log messages remove the line before they are written."""
    line = line or ProgressLine.on_stderr()
    over, handlers = threading.Event(), logging.getLogger().handlers
    starts = StartLog()

    def clears(record: logging.LogRecord) -> bool:
        del record
        line.clear()
        return True

    def follow() -> None:
        rounds = 0
        while not over.wait(_EVERY_SECONDS) and (now := sentence()):
            rounds += 1
            if line.able:
                line.show(now)
            else:
                starts.take(now, rounds * _EVERY_SECONDS)
        line.clear()

    for handler in handlers:
        handler.addFilter(clears)
    thread = threading.Thread(target=follow, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        for handler in handlers:
            handler.removeFilter(clears)


@dataclass(slots=True)
class StartLog:
    """Which of the sentences are logged: one for each step, and one every quarter of a minute while a step lasts."""

    _step: str = ""
    _logged_at: float = 0.0

    def take(self, sentence: str, at: float) -> None:
        """``at``: seconds since the start. Its first moment is not worth a message: a job that is refused says why."""
        step = sentence.partition(":")[0]
        if at - self._logged_at < (_EVERY_SECONDS if step != self._step else _LOG_EVERY_SECONDS):
            return
        self._step, self._logged_at = step, at
        log.info("not ready yet", extra={"progress": sentence})
