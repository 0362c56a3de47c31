"""The consumer groups that may have a problem, with their partitions: chosen by their sums, which exist for all of them."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from streaming.api.group_pages import group_detail
from streaming.api.group_waits import with_transactions
from streaming.metrics.group_losses import leading_items, with_losing_limits
from streaming.metrics.group_snapshot import GroupSnapshot
from streaming.metrics.uncommitted import waiting_by_group
from streaming.metrics.view import View
from streaming.protocol.group_json import GroupDetail, GroupPartition
from streaming.verdicts.group_problems import LOSS_WITHIN_MS

MOST_GROUPS = 200
"""So many groups are judged; of more, those with the largest lag."""


def suspect_groups(
    snapshot: GroupSnapshot | None,
    is_exported: Callable[[str], bool],
    shown: View,
    topics: Sequence[str],
    now_ms: int,
    server: str = "",
) -> tuple[list[GroupDetail], int]:
    """The groups, and how many more of them are left out.

    Args:
        topics: the names of topics, by their numbers in the view.
        server: where clients reach the cluster.
    """
    if snapshot is None:
        return [], 0
    sums, names = snapshot.pairs, snapshot.rows.group_names
    losing = (sums.loss_ms >= 0) & (sums.loss_ms - now_ms <= LOSS_WITHIN_MS)
    some = np.flatnonzero((sums.held > 0) | (sums.stopped > 0) | (sums.below > 0) | losing)
    lags: dict[str, int] = dict.fromkeys(waiting_by_group(snapshot.pending), 0)
    for number, lag in zip(snapshot.rows.group[sums.first[some]].tolist(), sums.lag_offsets[some].tolist(), strict=True):
        lags[names[number]] = lags.get(names[number], 0) + max(lag, 0)
    chosen = sorted(filter(is_exported, lags), key=lambda name: (-lags[name], name))
    details = [detail for name in chosen[:MOST_GROUPS] if (detail := group_detail(snapshot, name)) is not None]
    logs = list(zip(snapshot.logs.topics, snapshot.logs.partition.tolist(), strict=True))  # twice, if commits name it by name and by id
    growth, items = dict(zip(logs, snapshot.byte_rate.tolist(), strict=True)), leading_items(shown)

    def known(partitions: Sequence[GroupPartition]) -> list[GroupPartition]:
        return with_transactions(with_losing_limits(partitions, shown, items, growth, now_ms), shown, topics)

    found = [replace(each, partitions=known(each.partitions), server=server) for each in details]
    return found, max(len(chosen) - MOST_GROUPS, 0)
