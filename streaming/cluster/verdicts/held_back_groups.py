"""Which consumer groups wait for an open transaction: as readers of what it holds back, and with commits of their own in it."""

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from streaming.broker.protocol.group_verdicts import GroupVerdict
from streaming.cluster.consumers.group_lag import ABSENT
from streaming.cluster.verdicts.group_danger import certain_losses
from streaming.cluster.verdicts.group_judge import JudgedGroups
from streaming.cluster.verdicts.links import TopicPartition
from streaming.kafka.formats.names import OFFSETS_TOPIC


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBackGroups:
    """Names of groups, each set of them sorted where it is asked for.

    ``held``: by the partition whose last stable offset holds them up; ``losses_ms``: by the same, when the first of them loses records
    there, where that is certain. ``committing``: by the producer and the partition of `__consumer_offsets`. ``deserted``: those that are
    known to have no member.
    """

    held: dict[TopicPartition, set[str]] = field(default_factory=dict)
    losses_ms: dict[TopicPartition, int] = field(default_factory=dict)
    committing: dict[tuple[int, int], set[str]] = field(default_factory=dict)
    deserted: frozenset[str] = frozenset()

    def readers(self, partition: TopicPartition) -> list[str]:
        """The groups that are held up in a partition."""
        return sorted(self.held.get(partition, ()))

    def loss_ms(self, partition: TopicPartition) -> int:
        """When the first of these groups loses records; -1 if none does as far as is known."""
        return self.losses_ms.get(partition, -1)

    def committers(self, producer_id: int, partition: TopicPartition) -> list[str]:
        """The groups whose commits are in a transaction, if the partition is one of `__consumer_offsets`."""
        return sorted(self.committing.get((producer_id, partition[1]), ())) if partition[0] == OFFSETS_TOPIC else []

    def gone_with(self, producer_id: int) -> Collection[str]:
        """The groups that commit in a producer's transaction, if none of them has a member: then the producer is gone, too.

        Of a producer that commits for no group nothing shows that it is gone.
        """
        groups = {name for (producer, _), names in self.committing.items() if producer == producer_id for name in names}
        return sorted(groups) if groups <= self.deserted else []


def held_back_groups(judged: JudgedGroups | None) -> HeldBackGroups:
    """Those of a round; none if nothing is known of groups."""
    if judged is None:
        return HeldBackGroups()
    rows, logs = judged.snapshot.rows, judged.snapshot.logs
    held: dict[TopicPartition, set[str]] = {}
    losses_ms: dict[TopicPartition, int] = {}
    certain_ms = certain_losses(judged.snapshot.found)
    for row in np.flatnonzero(judged.commits.severity[GroupVerdict.HELD] != ABSENT).tolist():
        partition = logs.topics[logs.of_row[row]], int(rows.partition[row])
        held.setdefault(partition, set()).add(rows.group_names[rows.group[row]])
        if (loss_ms := int(certain_ms[row])) >= 0:
            losses_ms[partition] = min(loss_ms, losses_ms.get(partition, loss_ms))
    committing: dict[tuple[int, int], set[str]] = {}
    for each in judged.snapshot.pending:
        committing.setdefault((each.producer_id, each.coordinator), set()).add(each.group)
    deserted = frozenset(name for name, facts in judged.snapshot.groups.items() if facts.members == 0)
    return HeldBackGroups(held=held, losses_ms=losses_ms, committing=committing, deserted=deserted)
