"""``segtail changes``: list what admins did to the cluster, from the metadata log."""

from collections.abc import Iterator

import click

from streaming.broker.protocol.status_json import EVENTS_PATH, EventPage
from streaming.common.settings import Settings
from streaming.common.units import format_time
from streaming.pages.listings.declared_lists import admin_since
from streaming.terminal.cli.lists import ListRequest, print_page, source_of, with_list
from streaming.terminal.cli.printing import echo_lines, sentence_table
from streaming.terminal.cli.source import EXIT_STATUS, FOUND, NOT_KNOWN, NOTHING_FOUND
from streaming.terminal.cli.values import Since

_OLD_MS = 60_000
"""A running broker writes its metadata log twice a second."""


@click.command("changes", epilog=EXIT_STATUS)
@with_list("server_properties")
@click.option("--since", type=Since(), metavar="TIME", default="0", help=f"Only what was done since then: {Since.accepts}.")
def command(settings: Settings, wanted: ListRequest, since: int) -> int:
    """List what admins did: topics created and deleted, partitions added, configurations, reassignments, features and brokers.

    It reads the metadata log of log dirs, the newest copy if there are several; brokers may run meanwhile, or not. Or it asks a running
    job. A broker keeps a week of this log, or 100 MiB: the last line says from when on it is known. Values that may be secret are not read.

    Found is any change. A topic that was deleted is found by its name, too.
    """
    source = source_of(settings, wanted, EVENTS_PATH)
    page = source.page(EVENTS_PATH, EventPage, admin="true", since_ms=max(0, since if since >= 0 else wanted.now_ms + since))
    if wanted.form == "json":
        print_page(page)
    else:
        echo_lines([*_lines(page, wanted.width), *(f"- {doubt}" for doubt in page.doubts)], wanted.width)
    return FOUND if page.rows else NOT_KNOWN if page.doubts or page.admin_since_offset < 0 else NOTHING_FOUND


def _lines(page: EventPage, width: int | None) -> Iterator[str]:
    if page.rows:
        rows = [(format_time(each.at_ms), str(each.offset), each.what) for each in page.rows]
        yield from sentence_table([("when", "offset", "what"), *rows], width)
        yield ""
    yield admin_since(page)
    if 0 <= page.admin_until_ms < page.at_ms - _OLD_MS:
        yield f"The metadata log that was read was last written at {format_time(page.admin_until_ms)}: nothing is known after that."
