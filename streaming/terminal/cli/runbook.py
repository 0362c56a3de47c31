"""``segtail runbook``: print the runbook of an alert, or the list of all."""

import click

from streaming.terminal.cli.printing import screen_width, sentence_table


@click.command("runbook")
@click.argument("name", required=False, metavar="[NAME]")
def command(name: str | None) -> None:
    """Print what to do about an alert, by the alert's name; without a name, list all runbooks.

    It is the runbook of this version, with names in place of links. A job serves the same at /runbooks/NAME of its page.
    """
    from streaming.shipped.runbooks import entries, runbook_of

    if name is not None:
        click.echo(runbook_of(name).printed, nl=False)
        return
    rows = [("runbook", "severity", "meaning"), *((each.name, each.severity, each.meaning) for each in entries())]
    click.echo("\n".join(sentence_table(rows, screen_width())))
