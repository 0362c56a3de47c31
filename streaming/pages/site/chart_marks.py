"""Lines across a chart at round values, to read it by."""

from collections.abc import Callable
from itertools import count
from math import ceil, floor

from streaming.pages.site.page_charts import HEIGHT, ChartMark, y_of

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
    steps = (least * number * float(unit) ** power for power in count() for number in _ROUND)
    return next(step for step in steps if span <= step * _MOST)


def _mark(value: float, low: float, high: float, text: Callable[[float], str]) -> ChartMark:
    y = y_of(value, low, high, HEIGHT)
    return ChartMark(y=f"{y}%", text=text(value), below=float(y) < _ROOM)
