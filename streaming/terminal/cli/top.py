"""``segtail top``: what is wrong, how fresh that is, and lists of problems, partitions, transactions, retention and groups."""

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from streaming.common.settings import Settings
from streaming.errors import UsageError
from streaming.terminal.cli.options import with_paths
from streaming.terminal.cli.output_options import width_of
from streaming.terminal.cli.source import EXIT_STATUS, check_source, with_source
from streaming.terminal.cli.values import Moment, with_use

if TYPE_CHECKING:  # not for --help
    from rich.console import Console

    from streaming.pages.api.state import State
    from streaming.terminal.top.questions import AnswerSource
    from streaming.terminal.top.top_state import ScreenState


_VIEWS = ("problems", "partitions", "transactions", "retention", "groups", "events")
_OF_LOG_DIRS = ("server_properties", "hanging_after", "stuck_after", "group_stopped_after")
_JOB_SECONDS = 10.0
_ANY_WIDTH = 1 << 16


@click.command("top", epilog=f"{EXIT_STATUS} Without --once: 0 after q, 130 after Ctrl-C.")
@with_paths
@with_source(*_OF_LOG_DIRS)
@click.option("--at", type=Moment(), metavar="TIME", help=f"Judge log dirs as of this time: {Moment.accepts}.  [default: now]")
@click.option("--view", type=click.Choice(_VIEWS), help="The list to begin with, or to print.  [default: problems; groups with --use]")
@click.option("--filter", "text", default="", metavar="TEXT", help="Only rows that contain this text.")
@with_use
@click.option(
    "--every", type=click.FloatRange(min=0.5), metavar="SECONDS", help="Ask so often.  [default: 2; log dirs only when r is pressed]"
)
@click.option("--once", is_flag=True, help="Print the list once and end.")
@click.option("--plain", is_flag=True, help="Print a labelled line for each row, without a table or colors; the same once.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="The most rows to print.")
@click.option("--absolute", is_flag=True, help="Write times in UTC and not as ages.")
def command(
    settings: Settings,
    job: str | None,
    form: str,
    view: str | None,
    text: str,
    use: tuple[str, ...],
    every: float | None,
    once: bool,
    plain: bool,
    limit: int,
    absolute: bool,
    at: int | None,
) -> int:
    """Show what is wrong in one line, how fresh that is, and the lists behind it; `?` explains the keys.

    It asks a running job, or reads log dirs. Where output or input is no terminal, and with TERM=dumb, it prints labelled lines once, as
    --plain does. --format json prints once, too.
    """
    from rich.console import Console

    from streaming.terminal.top.questions import ListName
    from streaming.terminal.top.top_state import Place, ScreenState
    from streaming.terminal.top.watching import watch

    check_source(job, *_OF_LOG_DIRS, at=at)
    if use and view not in (None, "groups"):
        raise UsageError(f"--use chooses groups: give --view groups, or none, and not --view {view}")
    source = _source(settings, job, at)
    console = Console(highlight=False)
    interval = every if every is not None else 2.0 if job is not None else 0.0
    begin = ListName(view or ("groups" if use else "problems"))
    state = ScreenState(source=source.name, view=begin, every=interval, relative=not absolute, width=console.width)
    state = state.with_place(Place(filter=text, use=",".join(use)))
    asked_for = click.get_current_context().get_parameter_source("form") is ParameterSource.COMMANDLINE
    plain = plain or (not asked_for and (not console.is_terminal or console.is_dumb_terminal))
    if once or plain or asked_for or form == "json" or not (console.is_terminal and sys.stdin.isatty()):
        state = replace(state, width=width_of(form) or _ANY_WIDTH)
        return _once(source, state, console, form="json" if form == "json" else "plain" if plain else "table", limit=limit)
    return watch(source, state, console)


def _source(settings: Settings, job: str | None, at: int | None) -> "AnswerSource":
    if job is not None:
        from streaming.terminal.cli.job_answers import ask, shown
        from streaming.terminal.top.answer_sources import JobSource

        return JobSource(f"the job at {shown(job)}", lambda path, kind: ask(job, path, kind, seconds=_JOB_SECONDS))

    from streaming.broker.disk.log_dir_search import open_below
    from streaming.terminal.offline.everything import read_everything
    from streaming.terminal.top.answer_sources import DirSource

    def read() -> "State":
        return read_everything(open_below(settings.log_dirs), settings, at)

    return DirSource(read)


def _once(source: "AnswerSource", state: "ScreenState", console: "Console", *, form: str, limit: int) -> int:
    from streaming.terminal.top.once import as_json, exit_status, labelled_rows, table
    from streaming.terminal.top.questions import ListQuestion, Rows
    from streaming.terminal.top.top_state import question

    asked = question(state)
    if not isinstance(asked, ListQuestion):
        raise TypeError(asked)
    answer = source.ask(replace(asked, limit=limit), again=True)
    rows = answer.content
    if not isinstance(rows, Rows):
        raise TypeError(rows)
    if form == "json":
        click.echo(as_json(answer, rows))
    elif form == "plain":
        click.echo("\n".join(labelled_rows(answer, rows, relative=state.relative)))
    else:
        for line in table(state, answer, rows):
            console.print(line, soft_wrap=True)
    return exit_status(answer.status)
