"""Shows a running job where there is no terminal: a few plain lines from time to time."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import click

from streaming.cluster.view.observer import Observer
from streaming.cluster.view.table import Table
from streaming.cluster.view.view import view
from streaming.common.definitions.observer_metrics import TAIL_LAG_BYTES, TAIL_LAG_SECONDS
from streaming.common.formatting import NONE, format_age, format_duration, format_size
from streaming.terminal.cli.livetable import BatchPace, Report, Row, report, sample

_EVERY_SECONDS = 3.0
_ROWS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedJob:
    """The running job. Calling ``watched`` notes that somebody is watching."""

    table: Table
    observer: Observer
    watched: Callable[[], None]


def print_lines(job: WatchedJob, seconds: float | None, stop: threading.Event) -> None:
    """Print lines until ``stop`` is set or, unless None, ``seconds`` are over."""
    until = None if seconds is None else time.monotonic() + seconds
    pace = BatchPace()
    while not _over(stop, _EVERY_SECONDS, until):
        click.echo("\n".join(_plain_lines(job, _report(job, pace, _ROWS))))
    click.echo("segtail: ending ...")


def _over(stop: threading.Event, every: float, until: float | None) -> bool:
    """Wait for the next update; True if there is none."""
    now = time.monotonic()
    wait = every if until is None else min(every, max(0.0, until - now))
    return stop.wait(wait) or (until is not None and time.monotonic() >= until)


def _report(job: WatchedJob, pace: BatchPace, rows: int) -> Report:
    job.watched()
    logs = view(job.table.snapshot(time.time())).logs
    return report(logs, pace.rates(sample(logs, time.monotonic())), rows)


def _cells(row: Row, now_ms: float) -> tuple[str, ...]:
    return (
        str(row.partition),
        f"{row.end_offset:,}",
        NONE if row.bytes_rate is None else format_size(round(row.bytes_rate)),
        NONE if row.records_rate is None else f"{row.records_rate:,.0f}",
        f"{row.batches:,}",
        format_age((now_ms - row.last_append_ms) / 1000) if row.last_append_ms > 0 else NONE,
    )


def _plain_lines(job: WatchedJob, report: Report) -> list[str]:
    now_ms = time.time() * 1000
    names = ("end offset", "bytes/s", "records/s", "batches", "last append")
    lines = [_summary(job, report)]
    for row in report.rows:
        _, *cells = _cells(row, now_ms)
        shown_cells = (f"{name} {cell}" for name, cell in zip(names, cells, strict=True) if cell != NONE)
        lines.append(f"  {row.topic}-{row.partition}: {', '.join(shown_cells)}")
    return lines


def _summary(job: WatchedJob, report: Report) -> str:
    """One line about all partitions and the agent."""
    agents = ", ".join("down" if not agent.up else "catching up" if agent.catching_up else "up" for agent in job.observer.agents)
    size, seconds = _lag(job.observer)
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
