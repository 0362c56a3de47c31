"""When retention will delete offsets of observed logs, and by which limits: the rule of `streaming.rules.group_loss` for a page."""

import numpy as np

from streaming.cluster.view.exported import Observed, RetentionResults
from streaming.common.arrays import Flags, Longs
from streaming.rules.group_loss import NOTHING, Losses, losses
from streaming.rules.growth import growth_now
from streaming.rules.segment_columns import ABSENT

_NONE: Longs = np.empty(0, np.int64)


def losses_of(observed: Observed, retention: RetentionResults, items: Longs, offsets: Longs, now_ms: int) -> Losses:
    """Compute when retention deletes offsets, `ABSENT` where that is not known.

    Args:
        items: the log of each offset, as an index in ``observed``.
        offsets: at or above the log start.
    """
    listed = retention.listed
    where = retention.items[listed.items]  # of each listed log its index in `observed`
    if not len(where) or not len(items):
        return NOTHING.spread(_NONE, len(items))
    owner = np.minimum(np.searchsorted(where, items), len(where) - 1)
    known = np.flatnonzero(where[owner] == items)
    concerned, owner = np.unique(owner[known], return_inverse=True)  # one group reads few of all logs
    logs = listed.logs.take(concerned)
    growth = growth_now(logs, retention.watched[concerned], observed.columns["active_first_timestamp"][where[concerned]], now_ms)
    away = retention.columns["away"][listed.items[concerned]]
    return losses(logs, growth, owner, offsets[known], now_ms, away).spread(known, len(items))


def limits_assumed(retention: RetentionResults, items: Longs) -> Flags:
    """Of which logs, as indexes in `Observed`, the limits are assumed."""
    assumed = np.array([limits is not None and limits.assumed for limits in retention.limits], np.bool_)
    place = np.searchsorted(retention.items, items)
    there = np.append(retention.items, ABSENT)[place] == items
    found: Flags = np.append(assumed, False)[place] & there
    return found
