"""``segtail disk``: show what fills the disk, what retention will free of it and when, and when it is full."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streaming.common.settings import Settings
from streaming.errors import UsageError
from streaming.terminal.cli.lists import print_page
from streaming.terminal.cli.options import given, log_once
from streaming.terminal.cli.sizes import Duration, Size
from streaming.terminal.cli.source import EXIT_STATUS, FOUND, NOT_KNOWN, NOTHING_FOUND, with_source
from streaming.terminal.cli.times import Moment

if TYPE_CHECKING:  # the code that reads the disk imports numpy and pyarrow: not for --help
    from streaming.broker.protocol.disk_json import DiskAnswer
    from streaming.cluster.usage.what_if import Trial

BY = ("topic", "partition", "dir", "kind")
_ALL = 1 << 62


@click.command("disk", epilog=EXIT_STATUS)
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(path_type=Path))
@with_source("server_properties")
@click.option("--by", type=click.Choice(BY), default="topic", show_default=True, help="What a row of the table is.")
@click.option(
    "--limit", type=click.IntRange(min=0), metavar="N", help="At most so many rows, the largest; 0 for all.  [default: 20, JSON: all]"
)
@click.option("--what-if", "tried", multiple=True, metavar="[TOPIC:]NAME=VALUE", help="Reckon with this setting instead. May be repeated.")
@click.option("--full-within", type=Duration(), default="24h", show_default=True, help="A disk that is full within this time is found.")
@click.option("--free", type=Size(), metavar="SIZE", help="Free space of a copied disk.  [default: that of the file system]")
@click.option("--at", type=Moment(), metavar="TIME", help=f"Judge as of this time: {Moment.accepts}.  [default: now]")
def command(
    settings: Settings,
    paths: tuple[Path, ...],
    job: str | None,
    form: str,
    by: str,
    limit: int | None,
    tried: tuple[str, ...],
    full_within: int,
    free: int | None,
    at: int | None,
) -> int:
    """Show what fills the disk, what retention will free of it and when, and when it is full with that reckoned in.

    PATH is a log dir, or a directory that holds some. Only names, sizes and times are read, once; brokers may run meanwhile, or not.

    --what-if tries retention.ms, retention.bytes, segment.ms or segment.bytes on the segments that are there: --what-if retention.ms=2d,
    --what-if 'orders-*:retention.bytes=50GiB'. Without TOPIC it is for all topics but Kafka's own.
    """
    from streaming.cluster.usage.disk_findings import findings
    from streaming.terminal.cli.disk_report import report

    most = (20 if form == "table" else _ALL) if limit is None else limit or _ALL
    found = _asked_job(job, by, most, paths, tried, free, at) if job is not None else _read(settings, paths, by, most, tried, free, at)
    wrong = list(findings(found, full_within))
    if form == "json":
        print_page(found)
    else:
        for line in report(found, wrong):
            click.echo(line)
        for doubt in found.doubts:
            click.echo(f"segtail: {doubt}", err=True)
    if wrong:
        return FOUND
    return NOT_KNOWN if found.doubts or any(each.outlook == "unknown" for each in found.log_dirs) else NOTHING_FOUND


def _read(
    settings: Settings, paths: tuple[Path, ...], by: str, most: int, tried: tuple[str, ...], free: int | None, at: int | None
) -> "DiskAnswer":
    from streaming.broker.disk.logdirs import find_log_dirs, open_log_dirs
    from streaming.cluster.usage.disk_answer import answer_of
    from streaming.terminal.offline.disk_reading import Asked, read_disk

    log_once()
    chosen = [*settings.log_dirs, *find_log_dirs(paths)]
    if not chosen:
        raise UsageError("name a log dir, or a directory that holds some: segtail disk /var/lib/kafka; or --job to ask a running job")
    now_ms = time.time_ns() // 1_000_000 if at is None else at
    trials = _trials(tried)
    found = read_disk(open_log_dirs(chosen), settings, Asked(now_ms=now_ms, free=free, trials=trials))
    for trial in trials:
        if not any(map(trial.concerns, found.replicas.topics)):
            raise UsageError(f"--what-if {trial.text}: no topic here is called so")
    return answer_of(found, by, most)


def _trials(tried: tuple[str, ...]) -> "list[Trial]":
    from streaming.cluster.usage.what_if import parse_trial

    try:
        return [parse_trial(text) for text in tried]
    except ValueError as error:
        raise UsageError(f"--what-if: {error}") from error


def _asked_job(
    job: str, by: str, most: int, paths: tuple[Path, ...], tried: tuple[str, ...], free: int | None, at: int | None
) -> "DiskAnswer":
    from streaming.terminal.cli.job_disk import ask_disk

    idle = [*given("log_dirs", "server_properties")]
    idle += [name for name, value in (("PATH", paths), ("--what-if", tried), ("--free", free), ("--at", at)) if value not in (None, ())]
    if idle:
        raise UsageError(f"{', '.join(idle)} cannot be given with --job: the job answers by its own settings")
    return ask_disk(job, by, most)
