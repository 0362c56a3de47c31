"""``segtail demo``: the main job on a simulated broker, or on log dirs, seen by `segtail top`.

The simulated broker runs in a thread of this process. At its 1.5 MB/s it takes 6 % of a core, in steps of a few milliseconds, and the
driver mostly waits. A thread can also never outlive the demo.
"""

import math
import os
import secrets
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streaming.common import logs
from streaming.common.settings import LogLevel, Settings
from streaming.common.start_from import StartFrom
from streaming.common.units import Address
from streaming.errors import UsageError, quoted
from streaming.terminal.cli.options import with_settings
from streaming.terminal.cli.spark_extra import require_spark_extra
from streaming.terminal.cli.stopping import Signals, Stopped

if TYPE_CHECKING:  # it imports what Spark needs
    from streaming.pages.api.state import State


_EVERY_SECONDS = 2.0
_LINES_SECONDS = 3.0
_ROWS = 4
_JOB_SECONDS = 10.0


@click.command("demo")
@with_settings(
    "log_dirs",
    "from",
    "checkpoint",
    "listen",
    defaults={
        "log_dirs": "those of a simulated broker",
        "from": str(StartFrom.EARLIEST),
        "checkpoint": "a temporary one, removed at the end",
        "listen": f"{Settings().listen}, or a free port",
    },
)
@click.option(
    "--seconds", type=click.FloatRange(min=0, min_open=True), metavar="N", help="End by itself, N seconds after the start of Spark."
)
def command(settings: Settings, seconds: float | None) -> None:
    """Run the job on a simulated broker, or on log dirs, and open `segtail top` on it.

    On the simulated broker some things are wrong: transactions that no producer ends, groups that they hold up, retention
    that is blocked. q or Ctrl-C ends it. Where there is no terminal it prints some lines from time to time.
    """
    require_spark_extra("demo")
    signals = Signals()
    try:
        with tempfile.TemporaryDirectory(prefix="segtail-demo-") as scratch:
            chosen = with_demo_defaults(settings, Path(scratch))
            logs.configure(chosen.log_level, chosen.log_format)
            if chosen.log_dirs:
                _run(chosen, seconds, signals)
            else:
                _refuse_earlier(chosen.checkpoint)
                with _simulated_broker(Path(scratch, "broker"), signals.stop) as log_dirs:
                    properties = log_dirs[0].with_name("server.properties")
                    _run(chosen.model_copy(update={"log_dirs": log_dirs, "server_properties": (properties,)}), seconds, signals)
    except (Stopped, KeyboardInterrupt):  # KeyboardInterrupt comes while PySpark's handler of Ctrl-C is set
        click.echo("segtail: stopped before it had started")


def with_demo_defaults(settings: Settings, scratch: Path) -> Settings:
    """The demo's own defaults, for options that neither the command line nor the environment nor a file sets."""
    own: dict[str, object] = {
        "start_from": StartFrom.EARLIEST,
        "checkpoint": scratch / "checkpoint",
        "listen": free_address(settings.listen),
        "log_level": LogLevel.WARNING,
    }
    return settings.model_copy(update={name: value for name, value in own.items() if name not in settings.model_fields_set})


def free_address(address: Address) -> Address:
    """The address, or one with any free port if its own is in use."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the exporter does
        try:
            probe.bind((address.host, address.port))
        except OSError:
            return Address(address.host, 0)
    return address


def _run(settings: Settings, seconds: float | None, signals: Signals) -> None:
    click.echo("segtail: starting Spark ... (the first numbers come in 10 to 30 seconds)")
    from streaming.spark.job.job import Job

    with Job(settings) as job:
        signals.started()
        assert job.exporter is not None
        click.echo(f"segtail: metrics at {job.exporter.url}")
        if _on_terminal() and settings.web_config is None:  # who may ask is not known where there are passwords
            with _beside(job.run, signals.stop):
                _watch(job.exporter.url, seconds, signals.stop)
            return
        state = job.exporter.state
        with _beside(partial(_print_lines, lambda: state, job.pacer.watched, seconds), signals.stop):
            job.run(signals.stop)


def _on_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


@contextmanager
def _beside(work: Callable[[threading.Event], None], over: threading.Event) -> Iterator[None]:
    """Run ``work`` in a thread until ``over`` is set, which happens when work or block ends. An exception of work is raised here."""
    with ThreadPoolExecutor(1) as threads:
        done = threads.submit(work, over)
        done.add_done_callback(lambda _: over.set())
        try:
            yield
        finally:
            over.set()
        done.result()


def _watch(url: str, seconds: float | None, stop: threading.Event) -> None:
    """Run `segtail top` on the job until the user ends it, ``stop`` is set or ``seconds`` are over."""
    from rich.console import Console

    from streaming.terminal.cli.job_answers import ask
    from streaming.terminal.top.answer_sources import JobSource
    from streaming.terminal.top.questions import ListName
    from streaming.terminal.top.top_state import ScreenState
    from streaming.terminal.top.watching import watch

    page = url.removesuffix("/metrics")
    source = JobSource(f"the job at {page}", lambda path, kind: ask(page, path, kind, seconds=_JOB_SECONDS))
    console = Console(highlight=False)
    left = threading.Event()

    def end() -> None:
        """Take the end of the job, or of the time, for a signal to end, which waits in the terminal's queue of them."""
        stop.wait(seconds)
        while not left.is_set():
            os.kill(os.getpid(), signal.SIGTERM)
            left.wait(1.0)  # the terminal may not have been taken yet

    ender = threading.Thread(target=end, name="end of top", daemon=True)
    ender.start()
    try:
        watch(
            source,
            ScreenState(source=source.name, view=ListName.PROBLEMS, every=_EVERY_SECONDS, relative=True, width=console.width),
            console,
        )
    except KeyboardInterrupt:
        pass  # Ctrl-C ends the demo in good order
    finally:
        left.set()
        stop.set()
        ender.join()
    click.echo("segtail: ending ...")


def _print_lines(read: "Callable[[], State]", watched: Callable[[], None], seconds: float | None, stop: threading.Event) -> None:
    """Print how everything is and which partitions grow fastest, again and again until ``stop`` is set or ``seconds`` are over.

    Args:
        watched: records that a person is watching.
    """
    from streaming.terminal.top.answer_sources import DirSource
    from streaming.terminal.top.once import labelled_rows
    from streaming.terminal.top.questions import ListName, ListQuestion, Rows

    source, until = DirSource(read), math.inf if seconds is None else time.monotonic() + seconds
    while not stop.wait(min(_LINES_SECONDS, max(0.0, until - time.monotonic()))) and time.monotonic() < until:
        watched()
        answer = source.ask(ListQuestion(view=ListName.PARTITIONS, sort="bytes_rate", descending=True, limit=_ROWS), again=True)
        assert isinstance(answer.content, Rows)
        click.echo("\n".join(labelled_rows(answer, answer.content, relative=True)))
    click.echo("segtail: ending ...")


def _refuse_earlier(checkpoint: Path) -> None:
    """Refuse the checkpoint of an earlier job or demo, before anything is started: a simulated broker is a new cluster each time."""
    from streaming.spark.job.checkpoint import cluster_of_checkpoint

    if cluster_of_checkpoint(checkpoint):
        raise UsageError(
            f"--checkpoint {quoted(str(checkpoint))} is of an earlier job or demo, and each simulated broker is a new cluster: name a "
            "directory that is not there yet, or leave --checkpoint out; with --log-dirs, the demo goes on where the checkpoint is"
        )


@contextmanager
def _simulated_broker(directory: Path, over: threading.Event) -> Iterator[tuple[Path, ...]]:
    """Yield the log dirs of the simulated broker. They grow until the block ends."""
    click.echo("segtail: starting a simulated broker ...")
    from streaming.simulator.broker import HISTORY_MS, SimulatedBroker

    directory.mkdir()
    broker = SimulatedBroker(directory, seed=secrets.randbits(32), clock=lambda: time.time_ns() // 1_000_000, history_ms=HISTORY_MS)
    with _beside(broker.run, over):
        yield broker.log_dirs
