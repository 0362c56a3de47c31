"""``segtail restart-check``: say whether a broker may be restarted, and what that costs. It restarts nothing."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import click

from streaming.broker.protocol.restart_json import REASONS, RESTART_PATH, SAFE, UNKNOWN, UNSAFE, RestartPage, RestartRow
from streaming.common.settings import Settings
from streaming.common.units import capitalized, format_count
from streaming.errors import UsageError, quoted
from streaming.terminal.cli.options import keep_paths
from streaming.terminal.cli.output_options import width_of
from streaming.terminal.cli.printing import echo_lines
from streaming.terminal.cli.source import FOUND, NOT_KNOWN, NOTHING_FOUND, check_source, with_source

if TYPE_CHECKING:
    from streaming.pages.api.state import State


_COPIED_SECONDS = 1.0
"""A follower in sync has copied by then what its leader had."""

_LONGEST_ID = 10

_STATUS = {SAFE: NOTHING_FOUND, UNSAFE: FOUND, UNKNOWN: NOT_KNOWN}

_EPILOG = "Exit status: 0 it may be restarted, 3 it may not, 4 that is not known, 1 failed, 2 not possible as asked. Of several: the worst."

_NONE_KNOWN = "No broker is known: that takes a metadata log (KRaft) that can be read, and none can be read here."


def _broker_of(context: click.Context, _parameter: click.Parameter, words: tuple[str, ...]) -> int | None:
    """The word that is a number; the others are log dirs."""
    numbers = [word for word in words if word.isdecimal()]
    keep_paths(context, [word for word in words if word not in numbers])
    if len(numbers) > 1:
        raise UsageError(f"one BROKER can be given, and not {', '.join(numbers)}: without any all are checked")
    if numbers and len(numbers[0]) > _LONGEST_ID:
        raise UsageError(f"there is no broker {quoted(numbers[0])}: an id is below 2,147,483,648")
    return int(numbers[0]) if numbers else None


@click.command("restart-check", epilog=_EPILOG)
@click.argument("broker", metavar="[PATH]... [BROKER]", nargs=-1, callback=_broker_of)
@click.option(
    "--accept",
    multiple=True,
    type=click.Choice(REASONS),
    metavar="REASON",
    help="A REASON that counts as a cost, as single_replica.",
)
@click.option("--all", "in_order", is_flag=True, help="Say in which order all brokers can be restarted, and where to wait.")
@with_source("server_properties", files=())
def command(settings: Settings, job: str | None, form: str, broker: int | None, accept: tuple[str, ...], in_order: bool) -> int:
    """Say whether a broker may be restarted now, and what that costs; of a stopped one, whether it may be started. It restarts nothing.

    It is not safe if partitions go offline, fall under min ISR, or lose records that no other replica has, if the quorum loses its
    majority, or if a log dir cannot be read. After a restart it says what the broker has not caught up with yet.

    It needs the log dirs of all brokers, or a job that watches them. With those of some, the answer is at best "not known".
    """
    check_source(job, "server_properties")
    if in_order and broker is not None:
        raise UsageError(f"--all is about all brokers, and {broker} about one: give one of them")
    asked = {"broker": broker, "accept": ",".join(accept)}
    page = _page(settings, job, urlencode({name: value for name, value in asked.items() if value not in (None, "")}))
    if form == "json":
        click.echo(page.encode_readable())
    else:
        lines = _all(page) if in_order else (line for row in page.rows for line in _lines(row))
        echo_lines(lines if page.rows else [_NONE_KNOWN], width_of(form))
    return max((_STATUS.get(row.verdict, NOT_KNOWN) for row in page.rows), default=NOT_KNOWN, key=[NOTHING_FOUND, NOT_KNOWN, FOUND].index)


def _page(settings: Settings, job: str | None, query: str) -> RestartPage:
    if job is not None:
        from streaming.terminal.cli.job_answers import ask

        page = ask(job, f"{RESTART_PATH}?{query}", RestartPage)
        if page is None:
            raise UsageError("that job is of an older segtail: it does not say whether brokers may be restarted")
        return page
    from streaming.broker.disk.log_dir_search import open_below
    from streaming.common.progress_line import ProgressLine
    from streaming.terminal.offline.everything import read_everything

    def read() -> "State":
        with ProgressLine.on_stderr() as progress:
            return read_everything(open_below(settings.log_dirs), settings, None, progress.add)

    state = read()
    before = state.leader_ends()
    if before:  # a leader is read before its followers, or they hang: a second look shows which
        time.sleep(_COPIED_SECONDS)
        state = read()
    return state.restart(query, before)


def _all(page: RestartPage) -> Iterator[str]:
    """The brokers in the order in which they can be restarted, then those that cannot."""
    for number, broker in enumerate(page.order, start=1):
        yield f"{number}. Broker {broker}"
    others = [row for row in page.rows if row.broker not in page.order]
    for row in others:
        more = f", and {format_count(len(row.against) - 1, 'more reason')}" if row.against[1:] else ""
        yield " ".join([_verdict_line(row), *(f"{capitalized(each)}{more}" for each in row.against[:1])])
    yield page.next_step


def _verdict_line(row: RestartRow) -> str:
    """The verdict in a sentence, which ends with a colon if something follows."""
    done = "restarted" if row.running or row.hangs else "started"
    state = "" if row.running else " hangs, and" if row.hangs else " is not running, and"
    who = f"Broker {row.broker}{state}"
    match row.verdict:
        case "safe":
            return f"{who} may be {done} now{_safe(row)}."
        case "unsafe":
            return f"{who} must not be {done} now:"
        case _:
            return f"Whether broker {row.broker} may be {done} now is not known:"


def _safe(row: RestartRow) -> str:
    """Why it is safe."""
    if any(each.code in REASONS for each in row.costs):
        return ", as far as it is accepted"
    return ": nothing goes offline, no producer is refused, and nothing is lost" if row.running else ""


def _lines(row: RestartRow) -> Iterator[str]:
    yield _verdict_line(row)
    yield from _listed("", [each.what for each in row.reasons])
    yield from _listed("Besides, it is not known:" if row.reasons else "", row.doubts)
    yield from _listed("It costs:", [each.what for each in row.costs])
    yield from _listed("It has not caught up:" if row.running else "It is behind:", [each.what for each in row.behind])


def _listed(head: str, sentences: list[str]) -> Iterator[str]:
    if sentences and head:
        yield head
    yield from (f"- {capitalized(each)}" for each in sentences)
