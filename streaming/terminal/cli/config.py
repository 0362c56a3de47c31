"""``segtail config``: the configuration in effect, as a file that ``--config`` reads."""

import click

from streaming.common.settings import OPTIONS, Settings
from streaming.terminal.cli.options import with_settings
from streaming.terminal.configuration import render_yaml


@click.command("config")
@with_settings(*OPTIONS)
def command(settings: Settings) -> None:
    """Print the configuration in effect, with a description of every option.

    The output is a file for --config. Without options and environment it contains the defaults. Values of Spark's options that are secrets,
    as their names show, are masked: put them back before you use the file.
    """
    click.echo(render_yaml(settings), nl=False)
