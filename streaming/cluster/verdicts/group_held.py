"""Which groups an open transaction holds up, and for which nothing shows whether that is more than the moment that each one takes."""

from dataclasses import dataclass

import numpy as np

from streaming.cluster.consumers.commit_times import is_ahead
from streaming.cluster.consumers.group_lag import ABSENT
from streaming.cluster.consumers.group_snapshot import GroupSnapshot
from streaming.common.arrays import Flags, Longs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeldUp:
    """One item for each commit. ``certain``: its next record waits for longer than a moment; ``perhaps``: nothing shows whether it does.

    ``since_ms``: since when it certainly does, `ABSENT` where only the transaction shows that it does, or nothing.
    """

    certain: Flags
    perhaps: Flags
    since_ms: Longs


def held_up(snapshot: GroupSnapshot, now_ms: int, from_ms: int) -> HeldUp:
    """What waits for a transaction for ``from_ms`` or longer. It was appended after its transaction had begun, and between its bounds."""
    held, appended = snapshot.found.lags.held, snapshot.found.appended
    since_ms, open_ms = snapshot.progress.held_since_ms, snapshot.found.holding_ms
    begun_ms, as_of_ms = np.maximum(open_ms, appended.earliest_ms), now_ms - snapshot.found.data_age_ms
    watched = (since_ms >= 0) & (as_of_ms - since_ms >= from_ms)
    brief = ~watched & (begun_ms >= 0) & (as_of_ms - begun_ms < from_ms) & (appended.latest_ms <= now_ms) & ~is_ahead(begun_ms, now_ms)
    waits = (appended.latest_ms < 0) | (appended.latest_ms > now_ms) | watched
    lasts = waits | ((open_ms >= 0) & (as_of_ms - open_ms >= from_ms))
    return HeldUp(
        certain=held & lasts & ~brief,
        perhaps=held & ~lasts & ~brief,
        since_ms=np.where(held & waits, since_ms, ABSENT),
    )
