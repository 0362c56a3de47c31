"""Which partitions of groups are in danger of a loss, for the judge and for the metric of its alert: each is compared with itself."""

from collections.abc import Mapping

import numpy as np

from streaming.cluster.consumers.group_lag import ABSENT
from streaming.cluster.consumers.group_snapshot import GroupSnapshot
from streaming.cluster.consumers.group_sums import CommitFacts, earliest_of
from streaming.cluster.verdicts.group_bounds import DEFAULT_BOUNDS, GroupBounds
from streaming.cluster.verdicts.group_catching_up import outruns
from streaming.cluster.verdicts.group_held import held_up
from streaming.cluster.verdicts.group_usage import Usage
from streaming.common.arrays import Longs

TRANSACTION, GROUP = "transaction", "group"
"""Why the next record is in danger: an open transaction keeps the group from it, or the group itself is behind."""


def certain_losses(facts: CommitFacts) -> Longs:
    """When retention deletes the next record of each commit; `ABSENT` also where its limits are assumed: nobody is woken by a guess."""
    return np.where(facts.assumed, ABSENT, facts.loss_ms)


def endangered_losses(snapshot: GroupSnapshot, usage: Mapping[str, Usage], now_ms: int) -> Longs:
    """The same of the commits that are in danger, `ABSENT` for the others.

    Where retention is short, every group is close to it, and one that keeps up is in no danger: less time has to be left than the next
    record is old, or the group stands still at it, and it must not outrun deletion
    at its rate. This is what the judge calls soon, and what the alert's metric shows.
    """
    found = snapshot.found
    loss_ms, next_ms = certain_losses(found), found.appended.latest_ms
    as_of_ms = now_ms - found.data_age_ms
    age = np.where(next_ms >= 0, np.maximum(as_of_ms - next_ms, 0), 0)
    endangered = (loss_ms >= 0) & ((loss_ms - as_of_ms < age) | found.stopped) & ~outruns(snapshot, usage)
    return np.where(endangered, loss_ms, ABSENT)


def pair_losses(snapshot: GroupSnapshot, loss_ms: Longs) -> Longs:
    """The earliest of some losses over the partitions of each pair of group and topic."""
    return earliest_of(loss_ms, snapshot.pairs.first)


def losses_by_cause(snapshot: GroupSnapshot, loss_ms: Longs, bounds: GroupBounds = DEFAULT_BOUNDS) -> dict[str, Longs]:
    """The earliest of some losses of each pair, by what causes them, as of the snapshot: to end the transaction mends one of the two."""
    held = held_up(snapshot, snapshot.at_ms, bounds.held_cause_ms).certain
    return {
        TRANSACTION: pair_losses(snapshot, np.where(held, loss_ms, ABSENT)),
        GROUP: pair_losses(snapshot, np.where(held, ABSENT, loss_ms)),
    }
