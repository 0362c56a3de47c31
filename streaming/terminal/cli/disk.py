"""``segtail disk``: show what fills the disk, what retention will free of it and when, and when it is full."""

from typing import TYPE_CHECKING

import click

from streaming.broker.protocol.disk_json import BY, DISK_PATH, DiskAnswer
from streaming.broker.protocol.listing_json import ALL_ROWS
from streaming.common.settings import Settings
from streaming.errors import UsageError
from streaming.terminal.cli.lists import Answer, ListRequest, ListSource, print_page, with_wanted
from streaming.terminal.cli.options import with_paths
from streaming.terminal.cli.source import EXIT_STATUS, FOUND, NOT_KNOWN, NOTHING_FOUND, check_source
from streaming.terminal.cli.values import Duration, Size

if TYPE_CHECKING:  # the code that reads the disk imports numpy and pyarrow: not for --help
    from streaming.cluster.usage.reckoning import Trial


@click.command("disk", epilog=EXIT_STATUS)
@with_paths
@with_wanted("server_properties", positional=False)
@click.option("--by", type=click.Choice(BY), default="topic", show_default=True, help="What a row of the table is.")
@click.option(
    "--limit", type=click.IntRange(min=0), metavar="N", help="At most so many rows, the largest; 0 for all.  [default: 20, JSON: all]"
)
@click.option(
    "--what-if",
    "tried",
    multiple=True,
    metavar="[TOPIC:]NAME=VALUE",
    help="Compute with this setting instead of the present one. May be repeated.",
)
@click.option("--full-within", type=Duration(), default="24h", show_default=True, help="A disk that is full within this time is found.")
@click.option("--free", type=Size(), metavar="SIZE", help="Free space of a copied disk.  [default: that of the file system]")
def command(
    settings: Settings,
    wanted: ListRequest,
    by: str,
    limit: int | None,
    tried: tuple[str, ...],
    full_within: int,
    free: int | None,
) -> int:
    """Show what fills the disk, what retention will free of it and when, and when it is full with that reckoned in.

    PATH is a log dir, or a directory that holds some. Only names, sizes and times are read, once; brokers may run meanwhile, or not.

    --topic and --filter choose the rows: the log dirs are shown with all that is in them. A row by log dir is what the topics take there.

    --what-if tries retention.ms, retention.bytes, segment.ms or segment.bytes on the segments that are there: --what-if retention.ms=2d,
    --what-if 'orders-*:retention.bytes=50GiB'. Without TOPIC it is for all topics but Kafka's own.
    """
    from streaming.cluster.usage.disk_answer import findings
    from streaming.terminal.cli.disk_report import report
    from streaming.terminal.cli.printing import echo_lines

    if wanted.job is not None:
        _check_job(wanted, tried, free)
    source = ListSource(wanted, None if wanted.job else _read(settings, wanted, tried, free), settings.log_dirs)
    most = (ALL_ROWS if wanted.form == "json" else 20) if limit is None else limit or ALL_ROWS
    answer = source.page(DISK_PATH, DiskAnswer, most, by=by)
    source.check_names(DISK_PATH, DiskAnswer, answer.doubts)
    wrong = list(findings(answer, full_within))
    if wanted.form == "json":
        print_page(answer)
    else:
        lines = list(report(answer, wrong, wanted.width, settings if wanted.job is None else None))
        for doubt in answer.doubts:
            if doubt not in lines:
                click.echo(f"segtail: {doubt}", err=True)
        echo_lines(lines, wanted.width)
    if wrong:
        return FOUND
    return NOT_KNOWN if answer.doubts or any(each.outlook == "unknown" for each in answer.log_dirs) else NOTHING_FOUND


def _check_job(wanted: ListRequest, tried: tuple[str, ...], free: int | None) -> None:
    idle = [name for name, value in (("--what-if", tried), ("--free", free)) if value not in (None, ())]
    if idle:
        raise UsageError(f"{', '.join(idle)} cannot be given with --job: the job answers by its own settings")
    check_source(wanted.job, "server_properties", at=wanted.at)


def _read(settings: Settings, wanted: ListRequest, tried: tuple[str, ...], free: int | None) -> Answer:
    from streaming.broker.disk.log_dir_search import open_below
    from streaming.pages.api.counts_and_disks import disk_page
    from streaming.terminal.offline.disk_reading import DiskQuestion, read_disk

    trials = _trials(tried)
    disks = read_disk(open_below(settings.log_dirs), settings, DiskQuestion(now_ms=wanted.now_ms, free=free, trials=trials))
    for trial in trials:
        if not any(map(trial.concerns, disks.replicas.topics)):
            raise UsageError(f"--what-if {trial.text}: no topic here is called so")
    return lambda _, query: disk_page(disks, query, ALL_ROWS)


def _trials(tried: tuple[str, ...]) -> "list[Trial]":
    from streaming.cluster.usage.reckoning import parse_trial

    try:
        return [parse_trial(text) for text in tried]
    except ValueError as error:
        raise UsageError(f"--what-if: {error}") from error
