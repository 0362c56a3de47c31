"""``segtail page``: the page of a job, from log dirs that are read once or again and again, without Spark."""

import sys
import threading
from typing import TYPE_CHECKING

import click

from streaming.common.settings import Settings
from streaming.errors import SegtailError, UsageError
from streaming.terminal.cli.options import log_once, with_paths, with_settings
from streaming.terminal.cli.stopping import Signals, Stopped
from streaming.terminal.cli.values import Duration, Moment

if TYPE_CHECKING:  # not for --help
    from streaming.pages.api.state import State


@click.command("page", epilog="Exit status: 0 after Ctrl-C or SIGTERM, 1 failed, 2 not possible as asked.")
@with_paths
@with_settings("log_dirs", "server_properties", "hanging_after", "stuck_after", "group_stopped_after", "listen")
@click.option("--at", type=Moment(), metavar="TIME", help=f"Judge log dirs as of this time: {Moment.accepts}.  [default: now]")
@click.option("--every", type=Duration(), metavar="DURATION", help="Read the log dirs again so often, such as 5m.  [default: once]")
@click.option("--child", is_flag=True, hidden=True, help="End when standard input does.")
def command(settings: Settings, at: int | None, every: int | None, child: bool) -> None:
    """Serve the page of log dirs: what a job shows in a browser, from one reading, with the brokers up or down, without Spark or Java.

    It has all views of a job's page and `/api/v1/`, and neither metrics nor a last hour: only a running job sees what changes. The page
    listens on this machine alone unless --listen names another address; `web_config` gives it TLS and passwords.
    """
    if not settings.log_dirs:
        raise UsageError("give --log-dirs: the log dirs to read")
    if every == 0:
        raise UsageError("--every is not longer than nothing: leave it out to read once")
    log_once()
    signals = Signals()
    try:
        if child:
            threading.Thread(target=_follow_parent, args=(signals.stop,), name="parent", daemon=True).start()
        _serve(settings, at, every, signals)
    except Stopped:
        click.echo("segtail: stopped before the log dirs were read", err=True)


def _follow_parent(stop: threading.Event) -> None:
    sys.stdin.read()
    stop.set()


def _serve(settings: Settings, at: int | None, every_ms: int | None, signals: Signals) -> None:
    from streaming.pages.site.state_server import StateServer

    state = _read(settings, at)
    server = StateServer(settings.listen.host, settings.listen.port, state, web_config=settings.web_config)
    server.start()
    try:
        click.echo(f"segtail: the page is at {server.url} until Ctrl-C", err=True)
        signals.started()
        # until the user ends it. A reading that fails leaves the one before, whose time the page shows
        while not signals.stop.wait(None if every_ms is None else every_ms / 1000):
            try:
                server.show(_read(settings, at))
            except SegtailError as error:
                click.echo(f"segtail: the page is not brought up to date: {error}", err=True)
    finally:
        server.close()


def _read(settings: Settings, at: int | None) -> "State":
    from streaming.broker.disk.log_dir_search import open_below
    from streaming.common.progress_line import ProgressLine
    from streaming.terminal.offline.everything import read_everything

    with ProgressLine.on_stderr() as progress:
        return read_everything(open_below(settings.log_dirs), settings, at, progress=progress.add)
