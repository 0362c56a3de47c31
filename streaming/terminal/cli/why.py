"""``segtail why``: say why consumer groups do not go on, and what to do."""

import click

from streaming.common.units import format_count
from streaming.pages.listings.declared_lists import no_groups
from streaming.terminal.cli.group_source import GroupSource, ended, with_groups
from streaming.terminal.cli.lists import ListRequest
from streaming.terminal.cli.printing import echo_lines
from streaming.terminal.cli.source import EXIT_STATUS


@click.command("why", epilog=EXIT_STATUS)
@with_groups()
def command(source: GroupSource, wanted: ListRequest) -> int:
    """Say why consumer groups do not go on, those that are named or all in trouble: the most severe reason first, with the command to copy.

    It reads the log dirs of all brokers that are readable here, or asks a running job. Reasons are: records that were deleted unread, or
    will be; a next batch that is damaged or too large; an open transaction; an offset beyond the end; commits that wait; consumers that
    have stopped, are slower than producers, or gone; one partition with most of the lag. Look at a command before you run it: some of them
    skip records.
    """
    from streaming.terminal.cli.group_report import assumed, reading_notes, reasons

    named = source.named()
    if wanted.form == "json":
        click.echo(named.groups.encode_readable())
    elif named.groups.rows:
        paragraphs = [line for each in named.groups.rows for line in ("", *reasons(each))][1:]
        notes = [*assumed(named.groups.rows, source.of_log_dirs), *reading_notes(source.read, named.groups.away, named.groups.at_ms)]
        echo_lines([*paragraphs, *notes], wanted.width)
        if named.calm:
            echo_lines(["", f"nothing is wrong with {format_count(named.calm, 'other group')}"], wanted.width)
    elif named.calm:
        click.echo(f"nothing is wrong with {format_count(named.calm, 'consumer group')}")
    elif named.every is not None and not named.every.total:
        echo_lines([no_groups(named.every)], wanted.width)
    return ended(
        [each.summary.verdict for each in named.groups.rows], named.groups.doubts, named.missing, total=named.total, ends=named.ends
    )
