"""The family of records on disk: of each partition, or their sums by topic."""

import numpy as np
import pyarrow as pa

from streaming.cluster.view.family import Family, Samples, labels
from streaming.cluster.view.table import RECORD_KINDS
from streaming.cluster.view.view import View, sum_by
from streaming.common.arrays import Longs
from streaming.common.definitions.offset_metrics import RECORDS


def of_partitions(shown: View) -> Family:
    """One series for each partition and kind, where the records are counted."""
    counts = shown.records[:, shown.logs.columns["slot"]]
    known = counts[0] >= 0
    return Family(metric=RECORDS, labels=shown.logs.labels.filter(pa.array(known)), samples=_samples(counts[:, known]))


def of_topics(shown: View) -> Family:
    """Their sums by topic on a broker."""
    topics, logs = shown.topics, shown.logs.columns
    counts = shown.records[:, logs["slot"]]
    known = counts[0] >= 0
    sums = sum_by(logs["topic"][known], counts[:, known], len(topics.labels))
    order = topics.order[np.isin(topics.order, logs["topic"][known])]
    return Family(metric=RECORDS, labels=topics.labels.take(pa.array(order)), samples=_samples(sums[:, order]))


def _samples(counts: Longs) -> tuple[Samples, ...]:
    return tuple(Samples(label=labels(kind=kind), values=values) for kind, values in zip(RECORD_KINDS, counts, strict=True))
