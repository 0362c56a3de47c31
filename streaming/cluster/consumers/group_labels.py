"""The labels of consumer groups' series, made again only if there are other groups or topics."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.cluster.consumers.group_logs import GroupLogs
from streaming.cluster.consumers.group_sums import PairSums
from streaming.cluster.view.export import Export
from streaming.cluster.view.family import TEXT, escape, labels, text
from streaming.common.arrays import Longs
from streaming.kafka.groups.commit_table import CommitRows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairLabels:
    """The pairs of group and topic that are exported. ``shown``: their indexes, in the order of the page; ``labels``: of these.

    ``rank``: the place of each pair in ``shown``, -1 if it is not exported.
    """

    shown: Longs
    labels: pa.LargeStringArray
    rank: Longs


class LabelMaker:
    """Keeps the labels from round to round. For one thread."""

    def __init__(self, export: Export) -> None:
        self._export = export
        self._made: tuple[Longs, list[str], PairLabels] | None = None

    def of(self, rows: CommitRows, logs: GroupLogs, pairs: PairSums) -> PairLabels:
        """The labels of these pairs."""
        if self._made is None or not np.array_equal(self._made[0], pairs.number) or self._made[1] != logs.topics:
            self._made = pairs.number, logs.topics, self._make(rows, logs, pairs)
        return self._made[2]

    def _make(self, rows: CommitRows, logs: GroupLogs, pairs: PairSums) -> PairLabels:
        groups = [rows.group_names[number] for number in rows.group[pairs.first].tolist()]
        topics = [logs.topics[log] for log in logs.of_row[pairs.first].tolist()]
        wanted = {name: self._export.has_consumer(name) for name in set(groups)}
        exported = {name: self._export.has_topic(name) for name in set(topics)}
        names = zip(groups, topics, strict=True)
        found = [(labels(group=group, topic=topic), pair) for pair, (group, topic) in enumerate(names) if wanted[group] and exported[topic]]
        found = sorted(dict(found).items())  # a name that a group had with another type before, too
        shown = np.array([pair for _, pair in found], np.int64)
        rank = np.full(len(pairs), -1, np.int64)
        rank[shown] = np.arange(len(shown))
        return PairLabels(shown=shown, labels=pa.array([label for label, _ in found], TEXT), rank=rank)


def partition_labels(pairs: PairLabels, pair_of: Longs, partition: Longs) -> pa.LargeStringArray:
    """The labels of partitions, whose pairs are all exported."""
    numbers = pc.cast(pa.array(partition), TEXT)
    return pc.binary_join_element_wise(pairs.labels.take(pa.array(pairs.rank[pair_of])), text(',partition="'), numbers, text('"'), text(""))


def with_label(labels: pa.LargeStringArray, name: str, value: str) -> pa.LargeStringArray:
    """The labels with one more."""
    return pc.binary_join_element_wise(labels, text(f'{name}="{escape(value)}"'), text(","))
