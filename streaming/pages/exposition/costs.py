"""What the last page cost: its series and bytes by metric, and the seconds that it took to make; and the message about that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from threading import Lock

import numpy as np
import pyarrow.compute as pc

from streaming.broker.protocol.status_json import MOST_TOPICS, Cost, Share
from streaming.cluster.view.family import Family
from streaming.pages.exposition.kept_lines import lines_of
from streaming.pages.exposition.series import Choice

_TOPIC = r'(?:^|,)topic="(?P<topic>(?:[^"\\]|\\.)*)"'


def cost_message(costs: Costs, families: Iterable[Family]) -> Cost:
    """The message. ``families``: of a page as it would be made now, besides the observer's own."""
    last, seconds = costs.last
    if last is None:
        return Cost()
    metrics = [Share(name=name, series=series, bytes=size) for name, (series, size) in last.of_metrics.items()]
    topics = _by_topic(families)
    return Cost(
        at_ms=last.at_ms,
        series=sum(each.series for each in metrics),
        bytes=last.size,
        duration_ms=round(seconds * 1000),
        series_dropped=last.dropped,
        metrics=sorted(metrics, key=_largest_first),
        topics=topics[:MOST_TOPICS],
        omitted_topics=max(len(topics) - MOST_TOPICS, 0),
    )


class Costs:
    """The cost of the last page. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._last: PageCost | None = None
        self._seconds = -1.0

    def note(self, choice: Choice, sizes: Sequence[int], own: bytes, size: int, now: float) -> None:
        """A page was made.

        Args:
            choice: its families besides the observer's own.
            sizes: the bytes of each.
            own: the part of the page with the observer's own families.
            size: the bytes of the whole page.
            now: Unix seconds.
        """
        found = {family.metric.name: (family.series, bytes_of) for family, bytes_of in zip(choice.families, sizes, strict=True)}
        cost = PageCost(
            at_ms=round(now * 1000),
            size=size,
            dropped=choice.partition_series_dropped + choice.topic_series_dropped + choice.label_series_dropped,
            of_metrics=found | _of_text(own),
        )
        with self._lock:
            self._last = cost

    def took(self, seconds: float) -> None:
        """It took so long to make the last page."""
        with self._lock:
            self._seconds = seconds

    @property
    def last(self) -> tuple[PageCost | None, float]:
        """The last page, None if there was none, and the seconds that it took; -1 not known."""
        with self._lock:
            return self._last, self._seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCost:
    """One page of ``size`` bytes, made at ``at_ms``, Unix milliseconds."""

    at_ms: int
    size: int
    dropped: int  # so many series were left out
    of_metrics: dict[str, tuple[int, int]]  # series and bytes by the metric's name


def _of_text(page: bytes) -> dict[str, tuple[int, int]]:
    """Series and bytes by metric, read from a text: lines about a metric follow its HELP."""
    series, sizes = Counter[str](), Counter[str]()
    name = ""
    for line in page.splitlines(keepends=True):
        words = line.split(b" ", 3)
        if words[0] == b"#" and len(words) > 2:
            name = words[2].decode()
        elif name and not line.startswith(b"#"):
            series[name] += 1
        sizes[name] += len(line)
    return {each: (series[each], sizes[each]) for each in sizes if each}


def _by_topic(families: Iterable[Family]) -> list[Share]:
    series, sizes = Counter[str](), Counter[str]()
    for family in families:
        if not family.series:
            continue
        names = pc.struct_field(pc.extract_regex(family.labels, _TOPIC), "topic").dictionary_encode()
        named = np.asarray(pc.is_valid(names.indices))
        if not named.any():
            continue
        codes = pc.fill_null(names.indices, 0).to_numpy(zero_copy_only=False)[named]
        lengths = pc.binary_length(lines_of(family)).to_numpy(zero_copy_only=False)[named]
        count, size = np.bincount(codes, minlength=len(names.dictionary)), np.bincount(codes, lengths, len(names.dictionary))
        for name, many, length in zip(names.dictionary.to_pylist(), count.tolist(), size.tolist(), strict=True):
            if many:
                topic = name.replace('\\"', '"').replace("\\n", "\n").replace("\\\\", "\\")
                series[topic] += many * len(family.samples)
                sizes[topic] += int(length)
    return sorted((Share(name=name, series=series[name], bytes=sizes[name]) for name in series), key=_largest_first)


def _largest_first(share: Share) -> tuple[int, str]:
    return -share.bytes, share.name
