"""What a scrape costs, by metric and by topic: the metrics of the last page, and the topics as the table has them now."""

from collections import Counter
from collections.abc import Iterable

import numpy as np
import pyarrow.compute as pc

from streaming.broker.protocol.status_json import MOST_TOPICS, Cost, Share
from streaming.cluster.view.family import Family
from streaming.pages.exposition.costs import Costs
from streaming.pages.exposition.kept_lines import lines_of

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
