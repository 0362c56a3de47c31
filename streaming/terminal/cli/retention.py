"""``segtail retention``: show what is kept and for how long, what Kafka is about to delete, and what prevents that."""

from typing import TYPE_CHECKING

import click

from streaming.broker.protocol.listing_json import RETENTION_PATH, RetentionPage
from streaming.cluster.verdicts import kinds
from streaming.common.settings import Settings
from streaming.pages.listings.partition_list import RETENTION
from streaming.terminal.cli.lists import AT_START, ListRequest, ListSource, away_lines, print_page, with_list
from streaming.terminal.cli.source import EXIT_STATUS, FOUND, NOT_KNOWN, NOTHING_FOUND

if TYPE_CHECKING:  # the code that reads the disk imports numpy and pyarrow: not for --help
    from streaming.pages.api.state import State


@click.command("retention", epilog=EXIT_STATUS)
@with_list("server_properties")
@click.option(
    "--sort",
    type=click.Choice(RETENTION.sortable),
    metavar="FIELD",
    default=RETENTION.default,
    show_default=True,
    help=f"The field to sort by, as in JSON: {', '.join(RETENTION.sortable)}.",
)
def command(settings: Settings, wanted: ListRequest, sort: str) -> int:
    """Show for every partition what is kept and for how long, what Kafka is about to delete, and what prevents that.

    It reads the log dirs, once; brokers may run meanwhile, or not. Or it asks a running job. One replica is shown for each partition: the
    leader, if it is known and here. A limit with a question mark is Kafka's default, assumed because server.properties or
    the topics' settings are not known.

    Found is what is overdue or blocked, as in `segtail top`; not known is it, too, where a metadata log cannot be read, or where something
    is overdue by limits that are assumed.
    """
    from streaming.terminal.cli.printing import echo_lines
    from streaming.terminal.cli.retention_report import report

    source = ListSource(wanted, None if wanted.job else _read(settings, wanted), settings.log_dirs)
    page = source.page(RETENTION_PATH, RetentionPage, sort=sort)
    source.check_names(RETENTION_PATH, RetentionPage, page.doubts)
    if wanted.form == "json":
        print_page(page)
    else:
        lines = (*report(page.rows, page.at_ms, wanted.width), *away_lines(page.away, page.at_ms, AT_START["retention"]))
        echo_lines((*lines, *(f"- {doubt}" for doubt in page.doubts)), wanted.width)
    if any(row.kind == kinds.RETENTION_BLOCKED.name or (row.retention_overdue and not row.limits_assumed) for row in page.rows):
        return FOUND
    return NOT_KNOWN if page.doubts or any(row.retention_overdue for row in page.rows) else NOTHING_FOUND


def _read(settings: Settings, wanted: ListRequest) -> "State":
    from streaming.broker.disk.log_dir_search import open_below
    from streaming.common.progress_line import ProgressLine
    from streaming.terminal.offline.list_reading import read_retention

    log_dirs = open_below(settings.log_dirs)
    with ProgressLine.on_stderr() as progress:
        return read_retention(log_dirs, wanted.names, settings, wanted.at, progress.add)
