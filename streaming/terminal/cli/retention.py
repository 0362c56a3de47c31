"""``segtail retention``: show what is kept and for how long, what Kafka is about to delete, and what prevents that."""

import click

from streaming.broker.protocol.listing_json import RETENTION_PATH, RetentionPage
from streaming.cluster.verdicts import kinds
from streaming.common.settings import Settings
from streaming.pages.listings.declared_lists import RETENTION
from streaming.terminal.cli.lists import AT_START, ListRequest, print_list, source_of, with_list
from streaming.terminal.cli.source import EXIT_STATUS, FOUND, NOT_KNOWN, NOTHING_FOUND


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
    from streaming.terminal.cli.retention_report import report

    source = source_of(settings, wanted, RETENTION_PATH)
    page = source.page(RETENTION_PATH, RetentionPage, sort=sort)
    source.check_names(RETENTION_PATH, RetentionPage, page.doubts)
    reclaimable = any(row.retention_reclaimable_bytes > 0 for row in page.rows)
    print_list(
        page,
        wanted,
        report(page.rows, page.at_ms, wanted.width, settings if wanted.job is None else None),
        AT_START["retention"] if reclaimable else "",
    )
    if any(row.kind == kinds.RETENTION_BLOCKED.name or (row.retention_overdue and not row.limits_assumed) for row in page.rows):
        return FOUND
    return NOT_KNOWN if page.doubts or any(row.retention_overdue for row in page.rows) else NOTHING_FOUND
