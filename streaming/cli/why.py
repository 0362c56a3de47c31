"""``segtail why``: say why consumer groups do not go on, and what to do."""

import json

import click

from streaming.cli.group_source import answer, ended, with_groups
from streaming.cli.source import EXIT_STATUS
from streaming.settings import Settings


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
    from streaming.cli.group_report import as_json as fields
    from streaming.cli.group_report import assumed, reasons
    from streaming.verdicts.group_verdicts import Bounds

    found, now_ms = answer(settings, job, names, at, whole=True)
    bounds = Bounds(fetch_bytes=fetch_bytes)
    if form == "json":
        click.echo(json.dumps([fields(each, now_ms, bounds) for each in found.groups], indent=2))
    else:
        click.echo("\n\n".join("\n".join(reasons(each, now_ms, bounds)) for each in found.groups))
        for line in assumed(found.groups):
            click.echo(f"\n{line}")
    return ended(found, now_ms, bounds)
