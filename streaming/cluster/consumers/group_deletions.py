"""What it means that an offset is before the first segment on disk: it is only in remote storage, or it was deleted in this round."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from streaming.cluster.consumers.group_lag import ABSENT, CODES, LagReason, Places
from streaming.cluster.consumers.group_logs import GroupLogs
from streaming.cluster.view.exported import RetentionResults
from streaming.common.arrays import Flags, Longs


def with_deletions(
    logs: GroupLogs, places: Places, start: Longs, retention: Callable[[], RetentionResults], *, once: bool
) -> tuple[GroupLogs, Places]:
    """The logs with the log starts that positions show, and the positions with what is so of those before a first segment.

    An agent lists segments when it answers, so its answer is newer than the log start of the round. Where nothing is in remote storage,
    what is before the first segment was deleted, so the log begins there at the earliest. Where that is not known, the next round knows it.

    Args:
        start: where each commit is read from, by the log start of the round.
        retention: called where an offset is before the first segment, as few are.
        once: there is no next round, so the limits count that are assumed: a log begins on this disk unless remote storage is known.
    """
    below = (places.reason == CODES[LagReason.REMOTE]) & (places.offset == start)
    if not below.any():
        return logs, places
    remote, local = (flags[logs.of_row] for flags in _of_limits(retention(), logs.item, once=once))
    log_start, shows = logs.log_start.copy(), below & local & (logs.log_start[logs.of_row] >= 0)
    np.maximum.at(log_start, logs.of_row[shows], places.next_segment[shows])
    log_start = np.where(logs.log_start >= 0, np.minimum(log_start, np.maximum(logs.high_watermark, logs.log_start)), ABSENT)
    reason = np.where(below & ~remote, CODES[LagReason.FILLING], places.reason)
    return replace(logs, log_start=log_start), replace(places, reason=reason)


def _of_limits(retention: RetentionResults, items: Longs, *, once: bool) -> tuple[Flags, Flags]:
    """Of which observed logs records may be in remote storage, and of which none is; neither is so where that is not known."""
    known = [limits if limits is None or limits.remote_storage or once or not limits.assumed else None for limits in retention.limits]
    remote = np.array([limits is not None and limits.remote_storage for limits in known], np.bool_)
    local = np.array([limits is not None and not limits.remote_storage for limits in known], np.bool_)
    place = np.searchsorted(retention.items, items)
    there = np.append(retention.items, ABSENT)[place] == items
    return np.append(remote, False)[place] & there, np.append(local, False)[place] & there
