"""What of the offsets between a committed one and the log start were records: counted, or known to be some, or perhaps none of them.

A log start that is on disk with what is before it lets them be counted, and so does a tracker that saw them go. Else a producer snapshot
may bound them. A topic whose log holds records and no marker has no transactions, so what was deleted there were records. Of all others
the offsets may have been markers: the last one of each transaction is, and a group that has read everything stands before it.
"""

from dataclasses import dataclass, replace

import numpy as np

from streaming.cluster.consumers.group_counting import records_before
from streaming.cluster.consumers.group_lag import ABSENT, KNOWN, Ends, Lags, Places
from streaming.cluster.consumers.group_memory import GroupProgress
from streaming.cluster.consumers.group_shares import done_between, first_undone
from streaming.common.arrays import Flags, Longs
from streaming.kafka.groups.commit_table import CommitRows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LostRecords:
    """``records``: 0 where none were lost, `ABSENT` where they cannot be counted; ``doubtful``: then perhaps none of them was a record."""

    records: Longs
    doubtful: Flags


def lost_records(rows: CommitRows, lag: Lags, ends: Ends, places: Places, *, deleted: Places, watched: Longs) -> LostRecords:
    """What was deleted before it was read.

    Args:
        deleted: the positions of the committed offsets that are below the log start; of share groups of the first that they are not done
            with.
        watched: what the rounds so far have seen lost of each, `ABSENT` where they have not seen all of it.
    """
    before, edition = records_before(lag.start, places, ends, lag.reads_uncommitted)
    undone = first_undone(rows)
    done = done_between(rows, undone, lag.start)  # whether it was records is not known
    there = deleted.offset == undone
    counted = there & (deleted.reason == KNOWN) & (deleted.edition == edition) & (edition != ABSENT)
    gone = np.maximum(before - np.where(lag.reads_uncommitted, deleted.data, deleted.kept), 0)
    unread, most = np.maximum(gone - done.most, 0), np.minimum(gone, lag.below)
    bounded = there & (deleted.deleted_most >= 0) & (deleted.next_segment == lag.start)
    exact = bounded & (deleted.deleted_least == deleted.deleted_most) & (~rows.share | (deleted.deleted_most == 0))
    table = (lag.below == 0, counted & (unread == most), watched >= 0, exact)
    records = np.select(table, (0, unread, watched, deleted.deleted_most), ABSENT)
    surely = (bounded & (deleted.deleted_least > done.most)) | _without_transactions(lag, ends, places)
    return LostRecords(records=records, doubtful=(records == ABSENT) & (lag.reason == KNOWN) & ~surely)


def stopped_before(progress: GroupProgress, lag: Lags, ends: Ends, places: Places, lost: LostRecords) -> GroupProgress:
    """For whoever looks once: since when a commit stands whose next record is not the first that was readable, as others have gone.

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


def _without_transactions(lag: Lags, ends: Ends, places: Places) -> Flags:
    """Whether there are records from the log start on, and no marker among them."""
    counted = (places.reason == KNOWN) & (places.offset == lag.start) & (ends.counted == KNOWN) & (places.edition == ends.edition)
    plain: Flags = counted & (ends.data > places.data) & (ends.control == places.control)
    return plain
