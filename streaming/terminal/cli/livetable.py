"""The data of a live table: the partitions with the most appended bytes, and how fast each grows, from two readings of the metrics."""

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streaming.cluster.view.exported import Logs
from streaming.common.arrays import Longs

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
