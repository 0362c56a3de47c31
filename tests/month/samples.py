"""Series of a month as promtool reads them: what is steady, or grows steadily, is one word, however long it lasts."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.month.streams import START

_MOVING = "_timestamp_seconds"
"""Ends the names of metrics whose values are times: promtool's clock begins at 0 with the first page."""

_GONE = "stale"
"""What a scrape leaves of a series that is not on the page any more."""


@dataclass(slots=True)
class _Series:
    words: list[str] = field(default_factory=list)
    first: float = 0.0
    step: float = 0.0
    count: int = 0  # of the values that are not in a word yet
    upto: int = 0  # the number of the next sample

    def add(self, number: int, value: float) -> None:
        if number > self.upto:
            self.end()
            self.words.append(_GONE)
            self.words += [f"_x{number - self.upto - 1}"] if number > self.upto + 1 else []
        if self.count == 1:
            self.step = value - self.first
        elif self.count and value != self.first + self.count * self.step:
            self._close()
        if not self.count:
            self.first, self.step = value, 0.0
        self.count += 1
        self.upto = number + 1

    def end(self) -> None:
        if self.count:
            self._close()

    def _close(self) -> None:
        grows = f"{self.first!r}{self.step:+.17g}x{self.count - 1}" if self.count > 1 else repr(self.first)
        self.words.append(grows)
        self.count = 0


class Recording:
    """The samples of pages that are scraped one after the other, the first of them so many seconds after the beginning of the month."""

    def __init__(self, job: str, begins_s: float = 0) -> None:
        self._job = job
        self._clock_s = START + begins_s
        self._series: dict[str, _Series] = {}
        self.pages = 0

    def page(self, lines: Iterator[str]) -> None:
        """Of the next scrape; one that failed has none."""
        for line in lines:
            name, _, text = line.rpartition(" ")
            value = float(text)
            if name.partition("{")[0].endswith(_MOVING):
                value = round(value - self._clock_s, 3)
            self._series.setdefault(name, _Series()).add(self.pages, value)
        self.pages += 1

    def input_series(self) -> Iterator[dict[str, str]]:
        """As ``input_series`` of a unit test of rules."""
        for name, series in self._series.items():
            series.end()
            over = [] if series.upto == self.pages else [_GONE]
            metric, _, labels = name.partition("{")
            labels = labels.removesuffix("}")
            own = "" if 'job="' in labels else f',job="{self._job}",instance="segtail:9712"'
            yield {"series": f"{metric}{{{(labels + own).removeprefix(',')}}}", "values": " ".join([*series.words, *over])}
