"""``segtail retention``: show what is kept and for how long, what Kafka is about to delete, and what prevents that."""

import dataclasses
import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from streaming.cli.options import with_settings
from streaming.cli.output_options import with_form
from streaming.cli.source import NOT_KNOWN
from streaming.cli.times import Moment
from streaming.errors import UsageError
from streaming.settings import Settings

if TYPE_CHECKING:  # the code that reads the disk imports numpy and pyarrow: not for --help
    from streaming.offline.partition_retention import Row

SORTS = ("overdue", "lag", "reclaimable", "size")


@click.command("retention")
@with_settings("log_dirs", "server_properties")
@click.option("--topic", metavar="T", help="Only partitions of this topic.")
@click.option("--sort", "by", type=click.Choice(SORTS), default="overdue", show_default=True, help="The largest value of this comes first.")
@click.option("--at", type=Moment(), metavar="TIME", help=f"Judge as of this time: {Moment.accepts}.  [default: now]")
@with_form
def command(settings: Settings, topic: str | None, by: str, at: int | None, form: str) -> int:
    """Show for every partition what is kept and for how long, what Kafka is about to delete, and what prevents that.

    It only reads the log dirs, once; brokers may run meanwhile, or not. One replica is shown for each partition: the leader, if it is known
    and here. A limit with a question mark is Kafka's default, assumed because server.properties was not given.

    Exit status: 0 done, 4 something could not be read, metadata logs included, 1 failed, 2 not possible as asked.
    """
    from streaming.cli.retention_report import report, sorted_rows
    from streaming.disk.logdirs import open_log_dirs
    from streaming.offline.partition_retention import keep
    from streaming.progress_line import ProgressLine

    now_ms = time.time_ns() // 1_000_000 if at is None else at
    log_dirs = open_log_dirs(settings.log_dirs)
    with ProgressLine.on_stderr() as progress:
        answer = keep(log_dirs, topic, settings, now_ms, progress.add)
    if topic is not None and not (answer.rows or answer.doubts):
        raise UsageError(f"no partition of {topic} lies in {', '.join(str(log_dir.path) for log_dir in log_dirs)}")
    ordered = sorted_rows(answer.rows, by)
    if form == "json":
        click.echo(_json(ordered))
        for doubt in answer.doubts:
            click.echo(f"segtail: {doubt}", err=True)
    else:
        click.echo("\n".join((*report(ordered, now_ms), *(f"- {doubt}" for doubt in answer.doubts))))
    return NOT_KNOWN if answer.doubts else 0


def _json(ordered: "Sequence[Row]") -> str:
    """One row on each line, inside one array."""
    return "[" + ",\n ".join(json.dumps(dataclasses.asdict(row)) for row in ordered) + "]"
