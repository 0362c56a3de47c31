"""The open transactions that partitions of consumer groups wait for: they hold back records, or the group's own commits."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from streaming.kafka.names import OFFSETS_TOPIC
from streaming.metrics.group_transactions import holding, with_transaction
from streaming.metrics.view import View
from streaming.protocol.group_json import GroupPartition


def with_transactions(partitions: Sequence[GroupPartition], shown: View, topics: Sequence[str]) -> list[GroupPartition]:
    """The partitions with what is known of the transactions that they wait for.

    Args:
        topics: the names of topics, by their numbers in the view.
    """
    names = [topics[topic] for topic in shown.logs["topic"].tolist()]
    logs = list(zip(names, shown.logs["partition"].tolist(), strict=True))
    leading_last = np.argsort(shown.logs["leader"], kind="stable").tolist()
    item = {logs[number]: number for number in leading_last}
    held = [item[log] for each in partitions if each.held and (log := (each.topic, each.partition)) in item]
    first = {logs[each.log]: each for each in shown.logs.open.first_of(held)}
    waiting = [each for of in partitions for each in of.pending]
    own = [item[log] for each in waiting if (log := (OFFSETS_TOPIC, each.coordinator)) in item]
    found = shown.logs.open.of(own, [each.producer_id for each in waiting])
    waited_for = {(logs[each.log][1], each.producer_id): each for each in found}
    with_them = []
    for of in partitions:
        holds = first.get((of.topic, of.partition)) if of.held else None
        pending = [with_transaction(each, waited_for.get((each.coordinator, each.producer_id))) for each in of.pending]
        with_them.append(replace(of, held_by=None if holds is None else holding(holds), pending=pending))
    return with_them
