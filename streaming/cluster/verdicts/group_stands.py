"""Which partitions stand still, by their groups' own rhythm: long before they count as stopped, where a loss is near.

Whoever looks once sees no rates, and a rate of the last minutes fades slowly. Both know since when a commit stands.
"""

from collections.abc import Mapping

import numpy as np

from streaming.cluster.consumers.group_lag import ABSENT
from streaming.cluster.consumers.group_rhythms import WITHIN_TIMES
from streaming.cluster.consumers.group_snapshot import GroupSnapshot
from streaming.cluster.verdicts.group_usage import Usage
from streaming.common.arrays import Flags, Longs

PART_OF_LEFT = 10
"""What stands for less than this part of the time that is left is no sign of a loss: a pause of minutes is nothing where hours are left."""


def stands_still(snapshot: GroupSnapshot, usage: Mapping[str, Usage], since_ms: Longs, now_ms: int) -> Flags:
    """Whether commits stand for longer than their groups usually pause, and for a good part of the time until the next record is deleted.

    Args:
        since_ms: since when each stands although a record is readable, `ABSENT` for those that do not.
    """
    loss_ms, as_of_ms = snapshot.found.loss_ms, now_ms - snapshot.found.data_age_ms
    interval_ms = np.array([usage[name].interval_ms for name in snapshot.rows.group_names], np.int64)[snapshot.rows.group]
    stood_ms = np.where(since_ms != ABSENT, as_of_ms - since_ms, ABSENT)
    overdue = (interval_ms != ABSENT) & (stood_ms > WITHIN_TIMES * interval_ms)
    stands: Flags = overdue & (loss_ms != ABSENT) & (stood_ms * PART_OF_LEFT >= loss_ms - as_of_ms)
    return stands
