"""Shows a running job to a user: a live table on a terminal, otherwise a few plain lines from time to time."""

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import click
from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table as Grid
from rich.text import Text

from streaming.cli.livetable import Pace, Report, Row, report, sample
from streaming.definitions.observer_metrics import TAIL_LAG_BYTES, TAIL_LAG_SECONDS
from streaming.formatting import NONE, format_age, format_duration, format_size
from streaming.metrics.observer import Observer
from streaming.metrics.table import Table
from streaming.metrics.view import view

LIVE_SECONDS = 1.0
PLAIN_SECONDS = 3.0
PLAIN_ROWS = 4

_LINES_AROUND = 8
"""Lines of a live table that are no partitions: its header, its frame, the last line of the terminal."""

_FEWEST_ROWS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The running job; ``url`` is that of its metrics. Calling ``watched`` notes that somebody is watching."""

    table: Table
    observer: Observer
    url: str
    log_dirs: tuple[Path, ...]
    watched: Callable[[], None]


def show(shown: Shown, seconds: float | None, stop: threading.Event) -> None:
    """Show the job until ``stop`` is set or, unless None, ``seconds`` are over."""
    console = Console()
    until = None if seconds is None else time.monotonic() + seconds
    if console.is_terminal:
        _show_live(shown, console, until, stop)
    else:
        _show_plain(shown, until, stop)
    click.echo("segtail: ending ...")


def _show_live(shown: Shown, console: Console, until: float | None, stop: threading.Event) -> None:
    pace = Pace()
    with _live(console) as screen:
        while not _over(stop, LIVE_SECONDS, until):
            rows = max(_FEWEST_ROWS, console.height - _LINES_AROUND)
            screen.update(_screen(shown, _report(shown, pace, rows)), refresh=True)


def _show_plain(shown: Shown, until: float | None, stop: threading.Event) -> None:
    pace = Pace()
    while not _over(stop, PLAIN_SECONDS, until):
        click.echo("\n".join(_plain_lines(shown, _report(shown, pace, PLAIN_ROWS))))


@contextmanager
def _live(console: Console) -> Iterator[Live]:
    """A live screen, and log messages above it: while it exists, `Live` replaces standard error by a stream of its own."""
    with Live(console=console, auto_refresh=False) as screen:
        _log_to(sys.stderr)
        try:
            yield screen
        finally:
            screen.stop()
            _log_to(sys.stderr)


def _log_to(stream: TextIO) -> None:
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.StreamHandler):
            handler.setStream(stream)


def _over(stop: threading.Event, every: float, until: float | None) -> bool:
    """Wait for the next update; True if there is none."""
    now = time.monotonic()
    wait = every if until is None else min(every, max(0.0, until - now))
    return stop.wait(wait) or (until is not None and time.monotonic() >= until)


def _report(shown: Shown, pace: Pace, rows: int) -> Report:
    shown.watched()
    logs = view(shown.table.snapshot(time.time())).logs
    return report(logs, pace.rates(sample(logs, time.monotonic())), rows)


def _screen(shown: Shown, report: Report) -> Group:
    page = shown.url.removesuffix("metrics")
    return Group(
        Text.assemble(("metrics ", "dim"), (shown.url, "bold"), ("   page ", "dim"), page, ("   Ctrl-C ends it", "dim")),
        Text.assemble(("log dirs ", "dim"), ", ".join(map(str, shown.log_dirs)), overflow="ellipsis", no_wrap=True),
        Text(_summary(shown, report)),
        _grid(report),
    )


def _grid(report: Report) -> Grid:
    grid = Grid(box=box.SIMPLE_HEAD, padding=(0, 1))
    several = len({row.broker for row in report.rows}) > 1
    if several:
        grid.add_column("broker", justify="right")
    grid.add_column("topic", overflow="ellipsis", no_wrap=True)
    for name in ("partition", "end offset", "bytes/s", "records/s", "batches", "last append"):
        grid.add_column(name, justify="right", no_wrap=True)
    now_ms = time.time() * 1000
    for row in report.rows:
        cells = (*([str(row.broker)] if several else []), row.topic, *_cells(row, now_ms))
        grid.add_row(*cells, style="" if row.bytes_rate else "dim")
    left_out = report.partitions - len(report.rows)
    if left_out:
        grid.caption = f"and {left_out:,} more partitions"
    return grid


def _cells(row: Row, now_ms: float) -> tuple[str, ...]:
    return (
        str(row.partition),
        f"{row.end_offset:,}",
        NONE if row.bytes_rate is None else format_size(round(row.bytes_rate)),
        NONE if row.records_rate is None else f"{row.records_rate:,.0f}",
        f"{row.batches:,}",
        format_age((now_ms - row.last_append_ms) / 1000) if row.last_append_ms > 0 else NONE,
    )


def _plain_lines(shown: Shown, report: Report) -> list[str]:
    now_ms = time.time() * 1000
    names = ("end offset", "bytes/s", "records/s", "batches", "last append")
    lines = [_summary(shown, report)]
    for row in report.rows:
        _, *cells = _cells(row, now_ms)
        shown_cells = (f"{name} {cell}" for name, cell in zip(names, cells, strict=True) if cell != NONE)
        lines.append(f"  {row.topic}-{row.partition}: {', '.join(shown_cells)}")
    return lines


def _summary(shown: Shown, report: Report) -> str:
    """One line about all partitions and the agent."""
    agents = ", ".join("down" if not agent.up else "catching up" if agent.catching_up else "up" for agent in shown.observer.agents)
    size, seconds = _lag(shown.observer)
    traffic = f"{format_size(round(report.bytes_rate))}/s, {report.records_rate:,.0f} records/s"
    lag = f"lag {format_size(size)}, {format_duration(seconds)}"
    counted = (
        f"{report.partitions:,} partitions, {report.batches:,} batches, {traffic}" if report.partitions else "waiting for the first rows"
    )
    return f"{counted}; agent {agents or 'not asked yet'}, {lag}"


def _lag(observer: Observer) -> tuple[int, float]:
    """How far the metrics are behind the agent, in bytes and seconds."""
    largest = {
        family.name: max(sample.value for sample in family.samples)
        for family in observer.families({}, time.time()).collect()
        if family.samples
    }
    return int(largest.get(TAIL_LAG_BYTES.name, 0)), largest.get(TAIL_LAG_SECONDS.name, 0.0)
