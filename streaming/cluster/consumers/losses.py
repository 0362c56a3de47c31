"""What it means that an offset is before the first segment on disk: it is only in remote storage, or it was deleted in this round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from streaming.cluster.consumers.group_counting import records_before
from streaming.cluster.consumers.group_lag import ABSENT, CODES, KNOWN, Ends, LagReason, Lags, Places, done_between, first_undone
from streaming.cluster.consumers.group_logs import GroupLogs
from streaming.cluster.consumers.group_memory import GroupProgress
from streaming.cluster.view.exported import Observed, RetentionResults
from streaming.common.arrays import Flags, Longs
from streaming.kafka.groups.commit_table import CommitRows
from streaming.rules.group_loss import NOTHING, Losses, losses
from streaming.rules.space_outlook import growth_now

_NONE: Longs = np.empty(0, np.int64)


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
    """The observed logs with records that may be in remote storage, and those without any; neither is set where that is not known."""
    known = [limits if limits is None or limits.remote_storage or once or not limits.assumed else None for limits in retention.limits]
    remote = np.array([limits is not None and limits.remote_storage for limits in known], np.bool_)
    local = np.array([limits is not None and not limits.remote_storage for limits in known], np.bool_)
    place = np.searchsorted(retention.items, items)
    there = np.append(retention.items, ABSENT)[place] == items
    return np.append(remote, False)[place] & there, np.append(local, False)[place] & there


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
    """The logs whose limits are assumed, as indexes in `Observed`."""
    assumed = np.array([limits is not None and limits.assumed for limits in retention.limits], np.bool_)
    place = np.searchsorted(retention.items, items)
    there = np.append(retention.items, ABSENT)[place] == items
    found: Flags = np.append(assumed, False)[place] & there
    return found


def lost_records(rows: CommitRows, lag: Lags, ends: Ends, places: Places, *, deleted: Places, watched: Longs) -> LostRecords:
    """What was deleted before it was read.

    What of the offsets between a committed one and the log start were records: counted, or known to be some, or perhaps none of them.
    A log start that is on disk with what is before it lets them be counted, and so does a tracker that saw them go. Else a producer
    snapshot may bound them. A topic whose log holds records and no marker has no transactions, so what was deleted there were
    records. Of all others the offsets may have been markers: the last one of each transaction is, and a group that has read
    everything stands before it.

    Args:
        deleted: the positions of the committed offsets that are below the log start; of share groups of the first that they are not done
            with.
        watched: what the rounds so far have seen lost of each, `ABSENT` where they have not seen all of it.
    """
    before, edition = records_before(lag.start, places, ends, lag.reads_uncommitted)
    undone = first_undone(rows)
    done = done_between(rows, undone, lag.start)  # whether it was records is not known
    there = deleted.offset == undone
    decided = lag.reads_uncommitted | ~ends.undecided
    counted = there & decided & (deleted.reason == KNOWN) & (deleted.edition == edition) & (edition != ABSENT)
    gone = np.maximum(before - np.where(lag.reads_uncommitted, deleted.data, deleted.kept), 0)
    unread, most = np.maximum(gone - done.most, 0), np.minimum(gone, lag.below)
    bounded = there & decided & (deleted.deleted_most >= 0) & (deleted.next_segment == lag.start)
    exact = bounded & (deleted.deleted_least == deleted.deleted_most) & (~rows.share | (deleted.deleted_most == 0))
    table = (lag.below == 0, counted & (unread == most), watched >= 0, exact)
    records = np.select(table, (0, unread, watched, deleted.deleted_most), ABSENT)
    surely = (bounded & (deleted.deleted_least > done.most)) | _without_transactions(lag, ends, places)
    return LostRecords(records=records, doubtful=(records == ABSENT) & (lag.reason == KNOWN) & ~surely)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LostRecords:
    """``records``: 0 where none were lost, `ABSENT` where they cannot be counted; ``doubtful``: then perhaps none of them was a record."""

    records: Longs
    doubtful: Flags


def _without_transactions(lag: Lags, ends: Ends, places: Places) -> Flags:
    """Whether there are records from the log start on, no marker among them, and no transaction that waits for one."""
    counted = (places.reason == KNOWN) & (places.offset == lag.start) & (ends.counted == KNOWN) & (places.edition == ends.edition)
    plain: Flags = counted & (ends.open_from == ABSENT) & (ends.data > places.data) & (ends.control == places.control)
    return plain


def stopped_before(progress: GroupProgress, lag: Lags, ends: Ends, places: Places, lost: LostRecords) -> GroupProgress:
    """The progress as a command that polls once has it: since when a commit stands if the first records that it could read are gone.

    Where records have been deleted unread, it stands since it was made: what is left gets younger with each deletion. Where compaction has
    removed some, at least since the next one is there, and perhaps since it was made. When those that have gone became readable is not on
    disk.
    """
    stopped = progress.stopped_since_ms != ABSENT
    stands = stopped & (lag.below > 0) & (lost.records != 0) & ~lost.doubtful
    compacted = stopped & (lag.next_offset > lag.start) & _without_transactions(lag, ends, places)
    return replace(
        progress,
        stopped_since_ms=np.where(stands, progress.unmoved_ms, progress.stopped_since_ms),
        perhaps_since_ms=np.where(stands | compacted, progress.unmoved_ms, progress.perhaps_since_ms),
        stopped_earlier=(progress.stopped_earlier | (compacted & (progress.unmoved_ms < progress.stopped_since_ms))) & ~stands,
    )
