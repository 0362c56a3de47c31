"""``segtail run``: the main job."""

import signal
import threading
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import click

from streaming.cli.options import with_settings
from streaming.errors import UsageError
from streaming.settings import Settings

TEXTFILE_SECONDS = 15.0
"""How often a running job writes the file of ``--textfile``: the usual interval of a scrape."""


class Moment(click.ParamType[float]):
    """A point in time: RFC 3339 or Unix seconds."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Unix seconds."""
        text = str(value)
        try:
            return float(text)
        except ValueError:
            pass
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            self.fail(f"{text!r} is neither RFC 3339, such as 2026-11-20T05:00:00Z, nor Unix seconds", param, ctx)
        if moment.tzinfo is None:
            self.fail(f"{text!r} has no time zone: append Z for UTC", param, ctx)
        return moment.timestamp()


@click.command("run")
@with_settings("log_dirs", "from", "checkpoint", "listen", "replicas", "trigger", "master")
@click.option("--once", is_flag=True, help="Process what is there, write the metrics and exit; listens nowhere.")
@click.option("--textfile", type=click.Path(dir_okay=False, path_type=Path), metavar="PATH", help="Write the metrics into this file.")
@click.option("--at", type=Moment(), metavar="TIME", help="Judge a copied disk at its own time: RFC 3339 or Unix seconds.")
def command(settings: Settings, once: bool, textfile: Path | None, at: float | None) -> None:
    """Watch log dirs, run the Spark job and serve /metrics, until SIGTERM or Ctrl-C.

    Everything that the job keeps lies under --checkpoint: two jobs may watch the same log dirs with two checkpoints.
    """
    if not settings.log_dirs:
        raise UsageError("no log dir is given: name the broker's log.dirs with --log-dirs A,B")
    if textfile is not None and not textfile.absolute().parent.is_dir():
        raise UsageError(f"--textfile {textfile}: the directory {textfile.absolute().parent} does not exist")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())

    from streaming.job.job import Job
    from streaming.metrics.render import render
    from streaming.metrics.textfile import write_textfile

    clock = time.time if at is None else lambda: at

    with Job(settings, clock=clock, serve=not once) as job:

        def write() -> None:
            page = render(job.table, job.observer, clock())
            if textfile is not None:
                write_textfile(textfile, page)
            else:
                click.get_binary_stream("stdout").write(page)

        if once:
            job.run_once()
            write()
            return
        assert job.exporter is not None
        click.echo(f"segtail: metrics at {job.exporter.url}", err=True)
        if textfile is not None:
            threading.Thread(target=_write_on, args=(write, stop), daemon=True, name="textfile").start()
        job.run(stop)


def _write_on(write: Callable[[], None], stop: threading.Event) -> None:
    while not stop.wait(TEXTFILE_SECONDS):
        write()
