"""``segtail groups``: show what consumer groups have left to read, and which of them need attention."""

import json

import click

from streaming.cli.group_source import answer, ended, with_groups
from streaming.cli.source import EXIT_STATUS
from streaming.settings import Settings


@click.command("groups", epilog=EXIT_STATUS)
@click.argument("names", metavar="[GROUP]...", nargs=-1)
@with_groups
def command(settings: Settings, names: tuple[str, ...], job: str | None, at: int | None, form: str, fetch_bytes: int) -> int:
    """Show what every consumer group has left to read; with names, every partition of these groups.

    It reads the committed offsets and the logs from the log dirs, whether brokers are up or down; give the log dirs of all brokers that are
    readable here. Or it asks a running job. Records left are those that a consumer with read_committed will get: markers, aborted records
    and those that compaction has removed are not counted. Offsets are what kafka-consumer-groups calls LAG. The last column is the worst
    verdict; `segtail why GROUP` explains it.
    """
    from streaming.cli.group_report import as_json as fields
    from streaming.cli.group_report import assumed, groups_table, no_groups, partitions_table
    from streaming.verdicts.group_verdicts import Bounds

    found, now_ms = answer(settings, job, names, at, whole=form == "json")
    bounds = Bounds(fetch_bytes=fetch_bytes)
    if form == "json":
        click.echo(json.dumps([fields(each, now_ms, bounds) for each in found.groups], indent=2))
    elif not found.groups and not names:
        click.echo(no_groups(found.coordinators))
    else:
        table = partitions_table if names else groups_table
        click.echo("\n".join(table(found.groups, now_ms, bounds)))
        for line in assumed(found.groups):
            click.echo(f"\n{line}")
    return ended(found, now_ms, bounds)
