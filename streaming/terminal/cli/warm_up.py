"""``segtail warm-up``: makes the archive of the classes that Spark's JVM loads."""

import sys
import tempfile
import time
from pathlib import Path
from uuid import UUID

import click

from streaming.common.settings import Settings
from streaming.common.units import format_duration, format_size
from streaming.simulator.batch_writer import Batch, Record
from streaming.simulator.log import LogDir
from streaming.simulator.segment_writer import LogConfig
from streaming.terminal.cli.options import with_settings
from streaming.terminal.cli.spark_extra import require_spark_extra
from streaming.terminal.cli.stopping import Signals, Stopped

_INTERRUPTED = 130


@click.command("warm-up")
@with_settings("class_archives")
def command(settings: Settings) -> None:
    """Make an archive of the classes that Spark's JVM loads: Java's class data sharing, AppCDS.

    Once for an installation, and again after an upgrade of Java or PySpark. It runs a job over a small log, and takes a minute of CPU; an
    archive that is there is made again. A job that finds an archive for its Java and its Spark starts from it; any other starts without,
    as it always did. An archive has 180 MB. Those of earlier versions lie beside it, and can be deleted.
    """
    require_spark_extra("warm-up")
    signals = Signals()
    try:
        with tempfile.TemporaryDirectory(prefix="segtail-warm-up-") as scratch:
            _make(settings, Path(scratch), signals)
    except (Stopped, KeyboardInterrupt):
        click.echo("segtail: stopped, no archive was made", err=True)
        sys.exit(_INTERRUPTED)


def _make(settings: Settings, scratch: Path, signals: Signals) -> None:
    from streaming.spark.job.archive_making import make

    began = time.monotonic()
    made = make(settings, _small_log_dir(scratch / "d0"), scratch, signals.stop, lambda step: click.echo(f"segtail: {step} ...", err=True))
    if made is None:
        raise Stopped
    size, took = format_size(made.stat().st_size), format_duration(time.monotonic() - began)
    click.echo(f"segtail: jobs with this Java and Spark start from {made} now ({size}, made in {took})", err=True)


def _small_log_dir(path: Path) -> Path:
    """A log dir with a record in it."""
    made = LogDir(path, 1, "segtail-warm-up-AAAAAA", UUID(int=1))
    log = made.create("warm-up", 0, UUID(int=2), LogConfig(segment_bytes=1 << 20))
    log.append(Batch(records=(Record(None, b"warm", time.time_ns() // 1_000_000),)))
    log.close()
    made.release()
    return path
