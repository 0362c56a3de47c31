"""``segtail groups``: show what consumer groups have left to read, and which of them need attention."""

import click

from streaming.common.settings import Settings
from streaming.common.short_names import possible_names
from streaming.errors import UsageError
from streaming.pages.listings.declared_lists import GROUPS, no_groups
from streaming.pages.listings.listing import Times
from streaming.pages.listings.text_table import text_table
from streaming.terminal.cli.group_source import GroupSource, ended, with_groups
from streaming.terminal.cli.lists import ListRequest
from streaming.terminal.cli.printing import echo_lines
from streaming.terminal.cli.source import EXIT_STATUS


def _history(settings: Settings, wanted: ListRequest) -> int:
    """Print what log dirs have of the groups that are named, record by record."""
    from streaming.broker.disk.log_dir_search import open_below
    from streaming.terminal.cli.group_report import histories
    from streaming.terminal.offline.group_history import read_histories

    if wanted.job is not None:
        raise UsageError("--history reads the log dirs of a coordinator: give --log-dirs; a job does not have it")
    if not wanted.names:
        raise UsageError("name the groups whose --history is wanted")
    page = read_histories(open_below(settings.log_dirs), wanted.names, wanted.at)
    if wanted.form == "json" or page.rows:
        click.echo(page.encode_readable()) if wanted.form == "json" else echo_lines(histories(page.rows), wanted.width)
    there = {row.group for row in page.rows}
    missing = [name for name in wanted.names if not there.intersection(possible_names(name))]
    return ended([], page.doubts, missing, total=0)


@click.command("groups", epilog=EXIT_STATUS)
@with_groups(history=_history)
def command(source: GroupSource, wanted: ListRequest) -> int:
    """Show what every consumer group has left to read; with names, every partition of these groups.

    It reads the committed offsets and the logs from the log dirs, whether brokers are up or down; give the log dirs of all brokers that are
    readable here. Or it asks a running job. Records left are those that a consumer with read_committed will get: markers, aborted records
    and those that compaction has removed are not counted. Offsets are what kafka-consumer-groups calls LAG. The verdict is the worst of
    those that `segtail why GROUP` explains.

    With --history it shows instead what the coordinator's log still has of the groups that are named, and since when that is all.
    """
    from streaming.terminal.cli.group_report import assumed, assumed_groups, partition_tables, reading_notes

    if wanted.names:
        named = source.named()
        notes = [*assumed(named.groups.rows, source.of_log_dirs), *reading_notes(source.read, named.groups.away, named.groups.at_ms)]
        lines = [*partition_tables(named.groups.rows, wanted.width), *notes]
        if wanted.form == "json" or named.groups.rows:
            click.echo(named.groups.encode_readable()) if wanted.form == "json" else echo_lines(lines, wanted.width)
        return ended(
            [each.summary.verdict for each in named.groups.rows], named.groups.doubts, named.missing, total=named.total, ends=named.ends
        )
    every = source.all()
    if wanted.form == "json":
        click.echo(every.page.encode_readable())
    elif not every.page.total:
        echo_lines([no_groups(every.page)], wanted.width)
    elif every.page.rows:
        table = text_table(GROUPS, every.page.rows, Times(every.page.at_ms), wanted.width)
        notes = [*assumed_groups(every.page.rows, source.of_log_dirs), *reading_notes(source.read, every.page.away, every.page.at_ms)]
        echo_lines([*table, *notes], wanted.width)
    return ended([each.verdict for each in every.page.rows], every.doubts, total=every.page.total)
