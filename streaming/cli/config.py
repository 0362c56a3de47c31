"""``segtail config``: the configuration in effect, as a file that ``--config`` reads."""

import click

from streaming.cli.options import with_settings
from streaming.configuration import render_yaml
from streaming.settings import OPTIONS, Settings


@click.command("config")
@with_settings(*OPTIONS)
def command(settings: Settings) -> None:
    """Print the configuration in effect, with a description of every option.

    The output is a file for --config. Without options and environment it contains the defaults. Values of Spark's options that are secrets,
    as their names show, are masked: put them back before you use the file.
    """
    click.echo(render_yaml(settings), nl=False)
