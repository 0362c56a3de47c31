"""Shows a running job where there is no terminal: a few plain lines from time to time."""

import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import click
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streaming.cluster.view.exported import Logs
from streaming.cluster.view.observer import Observer
from streaming.cluster.view.table import Table
from streaming.cluster.view.view import view
from streaming.common.arrays import Longs
from streaming.common.definitions.observer_metrics import TAIL_LAG_BYTES, TAIL_LAG_SECONDS
from streaming.common.formatting import NONE, format_age, format_duration, format_size

# --- the data of a live table: the partitions with the most appended bytes, and how fast each grows, from two readings of the metrics.


Doubles = NDArray[np.float64]

WINDOW_SECONDS = 10.0
"""Rates cover this time, or less if there is less data. Shorter rates would jump, because the data of a micro-batch comes at once."""

_TOPIC = re.compile(r'topic="([^"]*)"')  # a topic's name has no character that labels escape


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """The counters of all partitions at one moment: ``at`` in seconds of a monotonic clock.

    ``appended`` has shape (2, partitions): bytes and records. ``settled``: whether the first backlog of the partition has been read. Until
    then its counters grow faster than its traffic.
    """

    at: float
    labels: pa.LargeStringArray
    appended: Longs
    settled: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One partition. Rates are per second, None without two readings of it yet; ``last_append_ms`` is Unix milliseconds."""

    broker: int
    topic: str
    partition: int
    end_offset: int
    batches: int
    bytes_rate: float | None
    records_rate: float | None
    last_append_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The data to show: some partitions, and the sums over all of them."""

    rows: tuple[Row, ...]
    partitions: int
    batches: int
    bytes_rate: float
    records_rate: float


def sample(logs: Logs, at: float) -> Sample:
    """Take a reading of the counters."""
    appended = np.stack([logs.columns["appended_bytes"], logs.columns["appended_records"]])
    return Sample(at=at, labels=logs.labels, appended=appended, settled=logs.columns["settled"] == 1)


def rates(before: Sample, now: Sample) -> Doubles:
    """Bytes and records per second of the partitions of ``now``, shape (2, partitions), NaN where they are not known.

    A rate is not known if the partition is new, if its backlog was not read at the first reading, or if its counters were reset.
    """
    seconds = now.at - before.at
    if seconds <= 0:
        return np.full(now.appended.shape, np.nan)
    place = pc.fill_null(pc.index_in(now.labels, value_set=before.labels), -1).to_numpy()
    then = np.append(np.where(before.settled, before.appended, np.nan), [[np.nan], [np.nan]], axis=1)  # -1 selects the column of NaN
    grown: Doubles = now.appended - then[:, place]
    grown[grown < 0] = np.nan
    return grown / seconds


class BatchPace:
    """The readings of the last seconds."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque()

    def rates(self, now: Sample) -> Doubles:
        """Add a reading, and return the rates since the oldest one that is kept; shape as in `rates`.

        If the oldest reading does not contain a partition, its rate is measured from the first reading with it.
        """
        while len(self._samples) > 1 and now.at - self._samples[1].at >= WINDOW_SECONDS:
            self._samples.popleft()
        known = np.full(now.appended.shape, np.nan)
        for before in self._samples:
            if not np.isnan(known).any():
                break
            known = np.where(np.isnan(known), rates(before, now), known)
        self._samples.append(now)
        return known


def report(logs: Logs, rates_of_logs: Doubles, limit: int) -> Report:
    """Choose the ``limit`` partitions with the most appended bytes, in the order of the page.

    Args:
        rates_of_logs: rates of all partitions, shape as in `rates`.
    """
    most = np.argsort(-logs.columns["appended_bytes"], kind="stable")[:limit]
    bytes_rate, records_rate = np.nansum(rates_of_logs, axis=1).tolist()
    return Report(
        rows=tuple(_rows(logs, rates_of_logs, np.sort(most).tolist())),
        partitions=len(logs.labels),
        batches=int(logs.columns["appended_batches"].sum()),
        bytes_rate=bytes_rate,
        records_rate=records_rate,
    )


def _rows(logs: Logs, rates_of_logs: Doubles, items: list[int]) -> Iterable[Row]:
    columns = logs.columns
    for item in items:
        found = _TOPIC.search(logs.labels[item].as_py())
        assert found is not None  # every series of a partition has a topic
        yield Row(
            broker=int(columns["broker"][item]),
            topic=found[1],
            partition=int(columns["partition"][item]),
            end_offset=int(columns["log_end_offset"][item]),
            batches=int(columns["appended_batches"][item]),
            bytes_rate=_or_none(rates_of_logs[0, item]),
            records_rate=_or_none(rates_of_logs[1, item]),
            last_append_ms=int(columns["last_append_ms"][item]),
        )


def _or_none(rate: float) -> float | None:
    return None if np.isnan(rate) else float(rate)


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
