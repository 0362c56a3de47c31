"""The last hour of a partition as charts: how fast it grows, and its last stable offset against its end."""

from collections.abc import Callable, Sequence

from streaming.broker.protocol.partition_json import Minute
from streaming.common.formatting import format_age
from streaming.pages.site.page_charts import Chart, ChartLine, area_path, bounds, line_path
from streaming.pages.site.page_words import bytes_rate, records_rate


def hour_charts(minutes: Sequence[Minute], now_ms: int) -> list[Chart]:
    """The charts, none if nothing is known: a line has two ends."""
    if sum(each.log_end_offset >= 0 for each in minutes) < 2:
        return []
    left = format_age((now_ms - minutes[0].at_ms) / 1000)
    return [
        _rate("bytes", "Bytes a second", [each.bytes_rate for each in minutes], bytes_rate, left),
        _rate("records", "Records a second", [each.records_rate for each in minutes], records_rate, left),
        _offsets(minutes, left),
    ]


def _rate(key: str, heading: str, values: list[float], words: Callable[[float], str], left: str) -> Chart:
    _, high = bounds(values)
    last = next((value for value in reversed(values) if value >= 0), -1.0)
    title = f"{heading}, from {left} to now: at most {words(high)}, now {words(last)}"
    return Chart(
        key=key,
        heading=heading,
        title=title if last >= 0 else f"{heading}: not known",
        lines=(ChartLine(path=line_path(values, 0.0, high), title=heading, name=""),),
        top=words(high),
        bottom="0",
        left=left,
        right="now",
    )


def _offsets(minutes: Sequence[Minute], left: str) -> Chart:
    ends, stable = [float(each.log_end_offset) for each in minutes], [float(each.last_stable_offset) for each in minutes]
    low, high = bounds(ends, stable)
    apart = [end - here for end, here in zip(ends, stable, strict=True) if end >= 0 and here >= 0]
    title = (
        f"Log end offset and last stable offset, from {left} to now: {apart[-1]:,.0f} offsets apart now" if apart else "Offsets: not known"
    )
    return Chart(
        key="offsets",
        heading="Last stable offset against the end",
        title=title,
        lines=(
            ChartLine(path=line_path(ends, low, high), title="log end offset", name="end"),
            ChartLine(path=line_path(stable, low, high), title="last stable offset", name="stable"),
        ),
        top=f"{high:,.0f}",
        bottom=f"{low:,.0f}",
        left=left,
        right="now",
        area=area_path(ends, stable, low, high),
    )
