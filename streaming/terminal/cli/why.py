"""``segtail why``: say why consumer groups do not go on, and what to do."""

import click

from streaming.common.settings import Settings
from streaming.terminal.cli.group_source import Asked, ended, named_groups, with_groups
from streaming.terminal.cli.source import EXIT_STATUS


@click.command("why", epilog=EXIT_STATUS)
@click.argument("names", metavar="GROUP...", nargs=-1, required=True)
@with_groups
def command(settings: Settings, names: tuple[str, ...], job: str | None, at: int | None, form: str, fetch_bytes: int) -> int:
    """Say why consumer groups do not go on: the most severe reason first, with the command to copy.

    It reads the log dirs of all brokers that are readable here, or asks a running job. Reasons are: records that were deleted unread, or
    will be; a next batch that is damaged or too large; an open transaction; an offset beyond the end; commits that wait; consumers that
    have stopped, are slower than producers, or gone; one partition with most of the lag. Look at a command before you run it: some of them
    skip records.
    """
    from streaming.terminal.cli.group_report import assumed, reasons

    named = named_groups(Asked(settings=settings, job=job, at_ms=at, fetch_bytes=fetch_bytes), names)
    if form == "json":
        click.echo(named.groups.encode_readable())
    else:
        paragraphs = ["\n".join(reasons(each)) for each in named.groups.rows]
        click.echo("\n".join(["\n\n".join(paragraphs), *assumed(named.groups.rows)]))
    return ended([each.summary.verdict for each in named.groups.rows], named.groups.doubts, named.missing)
