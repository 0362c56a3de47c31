"""The last hour of a partition as charts: how fast it grows, and its last stable offset against its end; each time in words, too."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor

from streaming.broker.protocol.listing_json import Minute
from streaming.common.formatting import format_age, format_time
from streaming.pages.listings.list_cells import count
from streaming.pages.site.page_charts import HEIGHT, Chart, ChartLine, ChartMark, area_path, bounds, line_path, y_of
from streaming.pages.site.page_words import bytes_rate, records_rate

_MOST = 4
_ROUND = (1, 2, 5, 10, 20, 50, 100, 200, 500)
_ROOM = 12
"""Percent of a chart's height that a text above its line needs."""


def marks(low: float, high: float, text: Callable[[float], str], *, unit: int = 1000, least: float = 1.0) -> tuple[ChartMark, ...]:
    """Lines from ``low`` to ``high``, five at most.

    Args:
        low: the value at the bottom of the chart.
        high: the one at its top.
        text: what stands for a value.
        unit: the factor between two units of the text: 1,000, or 1,024 of bytes.
        least: the smallest difference that the text shows.
    """
    step = _step(high - low, unit, least)
    values = [number * step for number in range(ceil(low / step), floor(high / step) + 1)]
    return tuple(_mark(value, low, high, text) for value in values)


def _step(span: float, unit: int, least: float) -> float:
    steps = (least * number * float(unit) ** power for power in itertools.count() for number in _ROUND)
    return next(step for step in steps if span <= step * _MOST)


def _mark(value: float, low: float, high: float, text: Callable[[float], str]) -> ChartMark:
    y = y_of(value, low, high, HEIGHT)
    return ChartMark(y=f"{y}%", text=text(value), below=float(y) < _ROOM)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hour:
    """When its minutes ended, in UTC without the day, and how long ago the first one did."""

    times: tuple[str, ...]
    left: str


def hour_charts(minutes: Sequence[Minute], now_ms: int) -> list[Chart]:
    """The charts, none if nothing is known: a line has two ends."""
    if sum(each.log_end_offset >= 0 for each in minutes) < 2:
        return []
    times = tuple(format_time(each.at_ms, "minutes").rpartition("T")[2] for each in minutes)
    hour = _Hour(times=times, left=format_age((now_ms - minutes[0].at_ms) / 1000))
    return [
        _rate(hour, "bytes", "Bytes a second", [each.bytes_rate for each in minutes], bytes_rate, unit=1024),
        _rate(hour, "records", "Records a second", [each.records_rate for each in minutes], records_rate, least=0.1),
        _offsets(hour, minutes),
    ]


def _rate(
    hour: _Hour, key: str, heading: str, values: list[float], words: Callable[[float], str], *, unit: int = 1000, least: float = 1.0
) -> Chart:
    _, high = bounds(values)
    last = next((value for value in reversed(values) if value >= 0), -1.0)
    title = f"{heading}, from {hour.left} to now: at most {words(high)}, now {words(last)}"
    return Chart(
        key=key,
        heading=heading,
        title=title if last >= 0 else f"{heading}: not known",
        lines=(ChartLine(path=line_path(values, 0.0, high), title=heading, name=""),),
        marks=marks(0.0, high, words, unit=unit, least=least),
        points=tuple(f"{time}: {_known(value, words)}" for time, value in zip(hour.times, values, strict=True)),
        left=hour.left,
        right="now",
    )


def _known(value: float, words: Callable[[float], str]) -> str:
    return words(value) if value >= 0 else "not known"


def _offsets(hour: _Hour, minutes: Sequence[Minute]) -> Chart:
    ends, stable = [float(each.log_end_offset) for each in minutes], [float(each.last_stable_offset) for each in minutes]
    low, high = bounds(ends, stable)
    apart = [end - here for end, here in zip(ends, stable, strict=True) if end >= 0 and here >= 0]
    both = f"Log end offset and last stable offset, from {hour.left} to now"
    title = f"{both}: {apart[-1]:,.0f} offsets apart now" if apart else "Offsets: not known"
    return Chart(
        key="offsets",
        heading="Last stable offset against the end",
        title=title,
        lines=(
            ChartLine(path=line_path(ends, low, high), title="log end offset", name="end"),
            ChartLine(path=line_path(stable, low, high), title="last stable offset", name="stable"),
        ),
        marks=marks(low, high, count),
        points=tuple(
            f"{time}: end {_known(end, count)}, stable {_known(here, count)}"
            for time, end, here in zip(hour.times, ends, stable, strict=True)
        ),
        left=hour.left,
        right="now",
        area=area_path(ends, stable, low, high),
    )
